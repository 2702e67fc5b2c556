"""The rotation of a dataset of one's own: which items are asked, which are held out, which are spent,
and when it is due.

Kept in a JSON file beside the items. What it says of an item is its id and the digest of what it asks, never the item.
"""

from __future__ import annotations

import calendar
from datetime import date
from enum import StrEnum
from typing import Final

from pydantic import Field

from proctor.domain.base import Frozen

#: Of a file of items, `questions.jsonl`, the state is `questions.rotation.json`.
STATE_SUFFIX: Final = ".rotation.json"
#: And the items that are not asked lie in `questions.pool.jsonl` and `questions.retired.jsonl`.
POOL: Final = ".pool"
RETIRED: Final = ".retired"
MAX_STATE_BYTES: Final = 33_554_432


class Every(StrEnum):
    """How often the items are changed."""

    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    HALF_YEARLY = "half-yearly"
    YEARLY = "yearly"

    def after(self, day: date) -> date:
        """The day on which a rotation is due after one on `day`: the same day of a later month, or its last."""
        months = {Every.MONTHLY: 1, Every.QUARTERLY: 3, Every.HALF_YEARLY: 6, Every.YEARLY: 12}[self]
        year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
        return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


class Held(Frozen):
    """An item by its name and by what it asks."""

    item_id: str = Field(min_length=1, max_length=256)
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")


class Retired(Held):
    """An item that is not asked again."""

    reason: str = Field(min_length=1, max_length=500)
    on: date


class Rotation(Frozen):
    """The state of a dataset."""

    version: int = Field(default=1, ge=1, le=1)
    every: Every
    seed: int
    """By which the held-out items stand in the order in which they are taken."""
    begun: date
    rotated: date
    due: date
    active: tuple[Held, ...]
    """Items that may be shown."""
    pool: tuple[Held, ...]
    """Items that no model was shown."""
    retired: tuple[Retired, ...] = ()
    shown: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Model → ids of the items that it was shown, retired ones included."""
