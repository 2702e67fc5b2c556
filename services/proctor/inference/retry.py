"""When and how often a request is sent again. Pure but for the random numbers passed in."""

from __future__ import annotations

import random
from datetime import UTC
from email.utils import parsedate_to_datetime

_BASE_S = 0.25
_CEILING_S = 8.0
#: A longer wait than any deadline is the same as no; the bound keeps a hostile header from meaning "for ever".
_MAX_RETRY_AFTER_S = 600.0


class RetryBudget:
    """How many repeats a whole shard may have, so that trouble does not multiply into load."""

    def __init__(self, repeats: int) -> None:
        self._left = repeats

    def spend(self) -> bool:
        """Take one repeat; False when there is none left."""
        if self._left <= 0:
            return False
        self._left -= 1
        return True


def backoff_s(attempt: int, rng: random.Random) -> float:
    """Seconds to wait after attempt 1, 2, …: full jitter under an exponential ceiling.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    return rng.random() * min(_CEILING_S, _BASE_S * 2.0**attempt)


def retry_after_s(header: str | None, *, now: float) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, section 10.2.3: seconds or a date); None if absent or senseless."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), _MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment.timestamp() - now, 0.0), _MAX_RETRY_AFTER_S)
