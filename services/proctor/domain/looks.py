"""The looks of a sequential audit: which items each has, what it saw, and why the audit stopped."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.estimate import Estimate


class LookItems(Frozen):
    """What is asked between two looks."""

    n_items: int
    items: str
    """Digest of the ItemIndex."""
    fresh: str | None = None
    """Digest of the ItemIndex of the fresh items; None where none are asked."""
    control: str | None = None
    """The same of the control items."""


class LookSeen(Frozen):
    """What a look found, at its own level."""

    number: int
    """From 1."""
    n_items: int
    """Items that were to be asked by then, in all."""
    information: float
    """Their share of the sample; 0 to 1."""
    level: float
    """Of the intervals of this look alone: those of all looks together hold the suite's."""
    alpha: float
    """Largest p of this look alone that counts as significant."""
    inflation: Estimate
    """Score inflation in points, or what of it goes beyond the control items."""
    score: Estimate
    """The Contamination Score, or what of it goes beyond the control items'."""
    p_value: float
    """Of this look alone."""
    decision_chance: float | None = None
    """Chance that the last look approves or blocks, by what is seen here; None at the last one itself."""


class Stop(StrEnum):
    """Why a sequential audit asked no further items."""

    APPROVED = "approved"
    BLOCKED = "blocked"
    FUTILE = "futile"
    """No further item was likely to decide."""
    UNUSABLE = "unusable"
    """A required channel is invalid or was not audited, so that no further item could approve or block."""
    LAST = "last"
    """The whole sample was asked."""


class SequentialRecord(Frozen):
    """How a sequential audit came to its end."""

    sizes: tuple[int, ...]
    """Items by each planned look, in all."""
    looks: tuple[LookSeen, ...] = Field(min_length=1)
    """Those that were taken, in order; the last is the one that decided."""
    stop: Stop
    p_value: float
    """Of all looks together: the smallest level at which one of them is significant."""
    level: float
    """Of the intervals of all looks together."""

    @property
    def n_planned(self) -> int:
        """The greatest number of items."""
        return self.sizes[-1]

    @property
    def n_asked(self) -> int:
        """Items that were to be asked until the stop."""
        return self.looks[-1].n_items


class LooksSoFar(Frozen):
    """Which look a manifest is of, and what the earlier ones saw."""

    sizes: tuple[int, ...]
    """Items by each planned look, in all."""
    seen: tuple[LookSeen, ...] = ()
    """What the earlier looks found, in order."""

    @property
    def number(self) -> int:
        """Of the look that is to be taken, from 1."""
        return len(self.seen) + 1
