"""Holm's correction of a family of tests.

It bounds the chance of a single false rejection, however the tests depend on each other. A family is named beforehand;
a test that is left out of it because of its result makes the bound void.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given (Holm 1979, Scandinavian Journal of Statistics 6, 65–70)."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)
