"""Levels that several floors hold to, so that none of them can disagree with another."""

from __future__ import annotations

from typing import Final

#: The article's: the largest p-value that counts as significant where nothing else is said.
SIGNIFICANCE_ALPHA: Final = 0.05
#: Of the trials of an arm or a shard. A failed answer is missing, and missing answers may hide as much inflation as
#: there are of them: no more than the article's limit of 5 %.
MAX_FAILED_SHARE: Final = 0.05
#: Of a study that is planned, and of what a sample is said to have been able to find: statistics' usual one.
POWER: Final = 0.80
