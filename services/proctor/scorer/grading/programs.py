"""Judging code that a model wrote by running it, as far as the operator lets it be run."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from proctor.domain.errors import CodeExecutionError
from proctor.domain.program import RunProgram
from proctor.domain.trial import Outcome
from proctor.grading.programs import Tried, try_answer
from proctor.runtime.sandbox.sandbox import open_sandbox
from proctor.runtime.settings import CodeExecution

#: Programs whose outcome is remembered: a report shows answers that were graded before.
_MAX_KEPT: Final = 65_536


class Programs:
    """Tries programs on their tests, each once; callable as an extractor's `judge`. For several threads at once."""

    def __init__(
        self, allowed: Callable[[], CodeExecution], *, opened: Callable[[], RunProgram] = open_sandbox
    ) -> None:
        """Nothing is opened before it is needed."""
        self._allowed, self._open = allowed, opened
        self._run: RunProgram | None = None
        self._kept: OrderedDict[bytes, Outcome] = OrderedDict()
        self._lock = threading.Lock()

    def check(self) -> RunProgram:
        """What runs programs here.

        Raises:
            CodeExecutionError: where it is switched off, or there is no sandbox.
        """
        if self._allowed() is CodeExecution.OFF:
            raise CodeExecutionError(
                "the answers are code, which is graded by running it, and that is switched off here; set "
                "PROCTOR_CODE_EXECUTION=sandbox for the scorer and whoever submits, after reading docs/security.md"
            )
        with self._lock:
            if self._run is None:
                self._run = self._open()
            return self._run

    def tried(self, code: str, target: str) -> Tried:
        """How code does on the tests of a target, run now. Raises as `check`."""
        return try_answer(code, target, self.check())

    def __call__(self, code: str, target: str, /) -> Outcome:
        """What code is worth; the same code and tests have one outcome for as long as this process lasts."""
        key = hashlib.sha256(f"{len(code)}:{code}{target}".encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                return kept
        outcome = self.tried(code, target).outcome
        with self._lock:
            # Where two threads had the same one in hand, the first word holds.
            outcome = self._kept.setdefault(key, outcome)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return outcome
