"""The null model: answers at once, with 200 tokens. What is then measured is everything around a model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from benchmarking.stories import made_up
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.backend import Answer, Probe, answered

#: What it says of itself; a suite pins it.
DIGEST: Final = "sha256:" + "0" * 64
#: 150 words, which is what a tokeniser of English makes 200 tokens of.
TOKENS, _WORDS = 200, 150
#: Different answers: as many as no shard repeats one often, and as few as are made in a moment.
_ANSWERS: Final = 2_048
_SEED: Final = 7


@cache
def texts() -> tuple[str, ...]:
    """Worked solutions that end in a number, all of them that the model knows. The same in every process."""
    rng = np.random.default_rng(_SEED)
    words = np.array(" ".join(story.question for story in made_up(64, _SEED)).split())
    drawn = words[rng.integers(len(words), size=(_ANSWERS, _WORDS - 2))]
    numbers = rng.integers(2, 600, _ANSWERS)
    return tuple(f"{' '.join(row)}\n#### {number}" for row, number in zip(drawn, numbers, strict=True))


def text_for(prompt: str) -> str:
    """The model's answer to a prompt: always the same one."""
    return texts()[zlib.crc32(prompt.encode()) % _ANSWERS]


class NullBackend:
    """The null model as a backend of an inference worker."""

    def __init__(self, spec: EndpointSpec) -> None:
        self._spec = spec
        texts()

    async def probe(self) -> Probe:
        """It always is there."""
        return Probe(True, DIGEST, "null model")

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """An answer to each trial, in no time."""
        return [
            answered(
                trial,
                self._spec,
                Answer(text_for(trial.prompt), "stop", len(trial.prompt) // 4, TOKENS, DIGEST),
                max_tokens=decoding.max_tokens,
                latency_s=0.0,
            )
            for trial in trials
        ]

    async def close(self) -> None:
        """Nothing is open."""
