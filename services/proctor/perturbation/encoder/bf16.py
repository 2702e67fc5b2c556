"""The encoder in bf16, on processors that compute in it: more than twice as quick, with errors in the third decimal."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from proctor.domain.canonical import json_digest
from proctor.perturbation.encoder.protocol import ResolvedEncoder, Vectors
from proctor.perturbation.encoder.rough import ObservedErrors
from proctor.perturbation.encoder.sentence_encoder import SentenceEncoder
from proctor.runtime.settings import EncoderPrecision

log = logging.getLogger(__name__)

#: A forward pass: the arithmetic costs less than in fp32, so the overhead of a pass weighs more.
_BATCH_TOKENS: Final = 2_200
_CPUINFO: Final = Path("/proc/cpuinfo")
#: x86 and Arm. Without them torch computes bf16 too, but slower than fp32.
_BF16_FLAGS: Final = re.compile(r"^(?:flags|Features)\s*:.*\b(?:amx_bf16|avx512_bf16|bf16)\b", re.MULTILINE)


class Bf16Encoder:
    """A sentence encoder whose matrix products may be computed in bf16.

    By autocast, so one model serves both: a copy of the model in bf16 was a quarter quicker still, with errors twice
    as large and the weights in memory a second time.
    """

    def __init__(self, exact: SentenceEncoder) -> None:
        self.exact = exact
        self.errors = ObservedErrors()
        self.name = f"{exact.name} (bf16)"
        self.digest = exact.digest
        self.fingerprint = json_digest([exact.fingerprint, EncoderPrecision.BF16])

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self.exact.loaded

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of fp32; raises as `SentenceEncoder.encode`."""
        return self.exact.encode(texts)

    def encode_roughly(self, texts: Sequence[str]) -> Vectors:
        """The vectors of bf16; raises as `SentenceEncoder.encode`."""
        self.exact.load()
        import torch

        # One block for all batches: autocast keeps the weights that it converted as long as the block lasts.
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.exact.encode(texts, batch_tokens=_BATCH_TOKENS)


def at_precision(encoder: SentenceEncoder, precision: EncoderPrecision) -> ResolvedEncoder:
    """The encoder as the settings want it.

    Where the processor has no bf16, the encoder itself: its distances are fp32's to the last digit, so its fingerprint
    is too. The log says so once.
    """
    if precision is EncoderPrecision.FP32:
        return encoder
    if has_bf16():
        return Bf16Encoder(encoder)
    _say_that_there_is_none()
    return encoder


def has_bf16(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether the processor says that it computes in bf16; no where it says nothing.

    torch knows too, but takes a second to ask, and whoever finds all variants in the library needs no torch.
    """
    try:
        return _BF16_FLAGS.search(cpuinfo.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


@cache
def _say_that_there_is_none() -> None:
    log.warning("PROCTOR_ENCODER_PRECISION is bf16 and this processor has none: distances are measured in fp32")
