"""How precisely a number of items measures one accuracy, and how many items a precision takes.

Half-widths are those of the normal interval, z √(p(1 − p) / n), which is what "within ± k points" means in a plan. An
accuracy that was measured gets Wilson's interval (`evidence.intervals.wilson`), which holds its coverage near 0 and 1.
"""

from __future__ import annotations

import math

from proctor.evidence.intervals import z_quantile
from proctor.evidence.search import MAX_ITEMS

LEVEL = 0.95


def half_width(n: int, accuracy: float, *, level: float = LEVEL) -> float:
    """Half the width of the interval of one accuracy at n independent items, as a fraction."""
    return z_quantile((1 + level) / 2) * math.sqrt(accuracy * (1 - accuracy) / n)


def items_for(width: float, accuracy: float, *, level: float = LEVEL) -> int:
    """Items by which the accuracy is known to ± `width`, a fraction above 0.

    Raises:
        ValueError: for more than ten million.
    """
    wanted = (z_quantile((1 + level) / 2) / width) ** 2 * accuracy * (1 - accuracy)
    if wanted > MAX_ITEMS:
        raise ValueError(f"more than {MAX_ITEMS:,} items")
    # Rounding must not turn a whole number of items into one more.
    return max(1, math.ceil(wanted - 1e-9))
