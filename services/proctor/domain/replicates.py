"""How often each prompt is asked, and by which seed each time."""

from __future__ import annotations

import hashlib
from typing import Final, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from proctor.domain.trial import Decoding

#: Of a prompt: beyond this the spread between wordings and items is all that is left.
MAX_REPLICATES: Final = 64
#: Seeds have so many bits: a signed 32-bit number is what every backend takes.
_SEED_BITS: Final = 31


class AnswerDecoding(Decoding):
    """How answers are drawn from the model under audit, and how many to each prompt."""

    # Not written where it is 1, so that suites keep the fingerprints of the time before it.
    replicates: int = Field(default=1, ge=1, le=MAX_REPLICATES, exclude_if=lambda replicates: replicates == 1)
    """How often each prompt of the benchmark and of control items is asked, each time by a seed of its own; more than
    once takes a temperature above 0."""

    @model_validator(mode="after")
    def _replicates_differ(self) -> Self:
        if self.replicates > 1 and self.temperature == 0.0:
            raise PydanticCustomError(
                "equal_replicates",
                "asks each prompt {replicates} times at temperature 0, where every answer to it is the same",
                {
                    "replicates": self.replicates,
                    "mend": "set a temperature above 0 (0.01 for an endpoint whose greedy answers vary), or leave "
                    "replicates out",
                },
            )
        return self

    @property
    def of_one(self) -> Decoding:
        """How a single answer is drawn, as every stage sends it."""
        return Decoding(**{name: getattr(self, name) for name in Decoding.model_fields})


def of_replicate(decoding: Decoding, replicate: int) -> Decoding:
    """How the answer of this number is drawn: the first by the suite's seed, or 0, and each other by one drawn from it.

    A seed that is left out would be the server's: some take the same for every request, whose answers would be one.
    """
    seed = decoding.seed or 0
    if replicate:
        drawn = hashlib.sha256(f"{seed}/{replicate}".encode()).digest()
        seed = int.from_bytes(drawn[:8]) >> (64 - _SEED_BITS)
    return decoding.model_copy(update={"seed": seed})
