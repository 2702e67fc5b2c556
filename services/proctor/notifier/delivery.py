"""What became of one attempt to send something."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Fate(StrEnum):
    """What is known of an attempt."""

    SENT = "sent"
    LATER = "later"
    """It was not sent, and may be in a while."""
    REFUSED = "refused"
    """It was not sent, and will not be however often it is tried."""
    UNKNOWN = "unknown"
    """It may have been sent."""


class Delivery(NamedTuple):
    """An attempt's end, in words that hold no address and no key."""

    fate: Fate
    why: str = ""


SENT: Final = Delivery(Fate.SENT)
#: Answers after which the same request may be taken: the server is busy, or not there behind its proxy's back.
_PASSING: Final = frozenset({408, 425, 429, 500, 503})
#: A proxy's word on a server that may have taken the request before it was silent.
_NOBODY_KNOWS: Final = frozenset({502, 504})


def of_status(status: int) -> Delivery:
    """What an HTTP status that is no success says of a message."""
    why = f"it was answered with HTTP {status}"
    if status in _NOBODY_KNOWS:
        return Delivery(Fate.UNKNOWN, f"{why}, by a proxy")
    return Delivery(Fate.LATER if status in _PASSING else Fate.REFUSED, why)
