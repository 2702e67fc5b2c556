"""Seeded choices that are the same on every platform and under every library version."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from proctor.perturbation.candidate import seeded_rank

T = TypeVar("T")

_DRAW_BYTES: Final = 8
_SCALE: Final = 1 << (8 * _DRAW_BYTES)
#: Enough for most texts; a longer one stretches the digest, whose beginning stays what it was.
_FIRST_DRAWS: Final = 64


class Draws:
    """Independent uniform draws, decided by the values of `parts`.

    A stream of hash output read in steps of 64 bits, so a remainder is uniform to 2**-64 times its modulus.
    """

    def __init__(self, *parts: Any) -> None:
        self._stream = hashlib.shake_256(seeded_rank(*parts))
        self._bytes = self._stream.digest(_FIRST_DRAWS * _DRAW_BYTES)
        self._at = 0

    def below(self, bound: int) -> int:
        """An integer from 0 to `bound` - 1; `bound` is at least 1."""
        return self._next() % bound

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self._next() < share * _SCALE

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options, which may not be none."""
        return options[self.below(len(options))]

    def some_of(self, options: Sequence[T], count: int) -> list[T]:
        """`count` of the options (all, where there are fewer) in a random order, none twice."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(min(count, len(left)))]

    def _next(self) -> int:
        if self._at == len(self._bytes):
            self._bytes = self._stream.digest(2 * len(self._bytes))
        value = int.from_bytes(self._bytes[self._at : self._at + _DRAW_BYTES])
        self._at += _DRAW_BYTES
        return value
