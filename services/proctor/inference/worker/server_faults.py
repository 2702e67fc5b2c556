"""What model servers say when they are at fault themselves, and no prompt is: whatever status they say it under. Pure.

An engine that died takes nothing down with it: the server around it may stay ready for ever, and refuses every prompt
in these words. vLLM says them with 500 mostly, and has said them with 400 (vllm-project/vllm#5822); its backend for
Triton passes on the words alone.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

#: Of vLLM, by its exceptions EngineDeadError, AsyncEngineDeadError and MQEngineDeadError; then of CUDA and its kin,
#: whose errors stay with a process until it ends.
_DIED: Final = re.compile(
    r"EngineCore encountered an issue"
    r"|EngineDeadError"
    r"|AsyncLLMEngine is dead"
    r"|Background loop (?:has errored|is stopped)"
    r"|Engine loop (?:has died|is not running)"
    r"|Engine process (?:\(pid \d{1,10}\) )?died"
    r"|device-side assert"
    r"|illegal memory access"
    r"|(?:CUDA|HIP|NCCL) error(?!: out of memory)",
    re.IGNORECASE,
)
_NO_MEMORY: Final = re.compile(r"out of memory|OutOfMemory", re.IGNORECASE)
#: Such phrases in one reply that are looked for in its request.
_LOOKED_FOR: Final = 8


def engine_died(words: str, *, asked: bytes = b"") -> bool:
    """Whether a server says that its engine is dead, so that it can answer nobody until it is started again.

    Args:
        words: its.
        asked: the request, which a refusal may repeat: what stands in it too says nothing of the server.
    """
    return _says(_DIED, words, asked)


def lacks_memory(words: str, *, asked: bytes = b"") -> bool:
    """Whether a server says that it had no memory for a request, and may have some later. The same of the arguments."""
    return _says(_NO_MEMORY, words, asked)


def _says(what: re.Pattern[str], words: str, asked: bytes) -> bool:
    said = [found.group().lower().encode() for found in islice(what.finditer(words), _LOOKED_FOR)]
    if not said or not asked:
        return bool(said)
    request = asked.lower()
    return any(phrase not in request for phrase in said)
