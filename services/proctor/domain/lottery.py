"""What a single answer owes to the luck of the draw."""

from __future__ import annotations

from proctor.domain.base import Frozen
from proctor.domain.estimate import Estimate


class Lottery(Frozen):
    """Greedy answers against the strict majority of k samples of the same items. Intervals are Wilson's, over items."""

    n: int
    k: int
    """Samples an item."""
    greedy_wrong: int
    rescued: int
    """Wrong greedy answers that a strict majority of samples gets right."""
    rate: Estimate
    """rescued / greedy_wrong: the lottery rate. Undefined (None) where no greedy answer is wrong."""
    greedy_right: int
    lost: int
    """Right greedy answers where a strict majority of samples is wrong."""
    reverse_rate: Estimate
    """lost / greedy_right. Undefined (None) where no greedy answer is right."""
    tied: int
    """Items with as many right as wrong samples; only an even k has them. They count as neither."""
    accuracy_greedy: Estimate
    accuracy_majority: Estimate
    """Share of items that a strict majority gets right."""
