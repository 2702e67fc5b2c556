"""A point estimate with its interval."""

from __future__ import annotations

from proctor.domain.base import Frozen


class Estimate(Frozen):
    """A point estimate with its confidence interval. `value` is None where it is undefined (0/0), and the
    bounds are None where the interval is unbounded on that side."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
