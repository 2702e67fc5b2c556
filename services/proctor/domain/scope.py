"""The scope of a decision: how far its evidence reaches past the wording of the items.

Every approval rests on the comparison of wordings. That finds memory of a *wording*; memory of a short fact answers
every wording alike, and only evidence of another kind reaches it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Self


class Scope(StrEnum):
    """What a decision rests on: other wordings of the items, and the channels beyond them that ran with a result."""

    WORDING = "wording"
    WORDING_EXPOSURE = "wording+exposure"
    WORDING_FRESH = "wording+fresh"
    WORDING_EXPOSURE_FRESH = "wording+exposure+fresh"

    @classmethod
    def of(cls, beyond: Iterable[str]) -> Self:
        """The scope with these channels of `channels.BEYOND_WORDING` beside the comparison of wordings."""
        return cls("+".join([cls.WORDING.value, *sorted(set(beyond))]))


#: Where the same leak was seen in other wordings, and by how much.
SEEN_IN: Final = "lettered multiple choice (D 7.2 points) and GSM8K (D 4.7 to 6.7 points)"
#: What wording alone was seen to miss, and what it was seen to find.
MEASURED: Final = (
    "Measured: a pre-trained model fine-tuned on leaked facts, 16 exposures of each, scored 50.0 % canonically and "
    "49.8 % reworded (D 0.2 points) and was approved, while twelve points of its score were leaked; on "
    f"{SEEN_IN} the same leak shows."
)
#: What reaches further, and how a suite asks for it.
REACHING_FURTHER: Final = "require fresh or exposure evidence in scoring_config.required_channels"
#: What an approval of scope `wording` means.
NOT_RULED_OUT: Final = (
    "Scope: wording. Memory of short facts answers every wording of a question alike, so this approval does not rule "
    "it out."
)
#: What its reader can do.
TO_COVER_IT: Final = f"To cover it, {REACHING_FURTHER}."
#: What such an approval says before anything else.
WORDING_ALONE: Final = f"{NOT_RULED_OUT} {MEASURED} {TO_COVER_IT}"
