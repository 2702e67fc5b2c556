"""Searching where a condition first holds; it must hold everywhere beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Past this no benchmark goes, and "never" is the more useful answer.
MAX_ITEMS: Final = 10_000_000
#: Halvings of (0, 1): to the last digit of a float.
_HALVINGS: Final = 60


def smallest_fraction(holds: Callable[[float], bool]) -> float | None:
    """The smallest fraction above 0 at which a condition holds; None where it does not at 1."""
    if not holds(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_count(holds: Callable[[int], bool], *, width: float = 0.0, most: int = MAX_ITEMS) -> int | None:
    """The smallest count from 1 at which a condition holds; None where it does at none up to about `most`.

    Args:
        holds: the condition.
        width: relative width to which the count is found; 0 for the count itself.
        most: where doubling ends.
    """
    high = 1
    while not holds(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while high - low > max(1.0, width * high):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
