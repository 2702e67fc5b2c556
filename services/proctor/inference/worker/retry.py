"""When and how often a request is sent again. Pure but for the random numbers passed in."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_BASE_S = 0.25
_CEILING_S = 8.0
#: A longer wait than any deadline is the same as no; the bound keeps a hostile header from meaning "for ever".
_MAX_WAIT_S = 600.0
#: What OpenAI and those who speak its protocol limit, as in `x-ratelimit-remaining-tokens`.
_LIMITED = ("requests", "tokens")
#: Beside one repeat a trial: enough for an endpoint that limits its rate; one that is down runs out of it soon.
_SPARE_REPEATS = 8
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONGEST_HEADER = 64


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


def repeats_for(n_trials: int) -> int:
    """How often requests for so many trials may be sent again in all."""
    return _SPARE_REPEATS + n_trials


def backoff_s(attempt: int, rng: random.Random) -> float:
    """Seconds to wait after attempt 1, 2, …: full jitter under an exponential ceiling.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    return rng.random() * min(_CEILING_S, _BASE_S * 2.0**attempt)


def asked_wait_s(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds for which the headers of a refusal ask not to be asked again; None where they ask for nothing.

    `retry-after-ms` and Retry-After say it outright. Otherwise a limit of OpenAI's (`x-ratelimit-remaining-…`) that is
    used up counts until its `x-ratelimit-reset-…`; one that has some left does not, because that moment is when it is
    full again, not when the next request fits.

    Args:
        headers: the response's, under names in lower case.
        now: seconds since 1970, for a Retry-After that is a date.
    """
    in_ms = _number(headers.get("retry-after-ms"))
    if in_ms is not None:
        return min(in_ms / 1000.0, _MAX_WAIT_S)
    if (wait := retry_after_s(headers.get("retry-after"), now=now)) is not None:
        return wait
    used_up = [name for name in _LIMITED if _number(headers.get(f"x-ratelimit-remaining-{name}")) == 0]
    waits = [duration_s(headers.get(f"x-ratelimit-reset-{name}")) for name in used_up]
    return max((wait for wait in waits if wait is not None), default=None)


def retry_after_s(header: str | None, *, now: float) -> float | None:
    """Seconds of a Retry-After header (RFC 9110, section 10.2.3: seconds or a date); None if absent or senseless."""
    if header is None:
        return None
    if (seconds := _number(header)) is not None:
        return min(seconds, _MAX_WAIT_S)
    try:
        moment = parsedate_to_datetime(header[:_LONGEST_HEADER].strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max(moment.timestamp() - now, 0.0), _MAX_WAIT_S)


def duration_s(header: str | None) -> float | None:
    """Seconds of a duration as OpenAI writes it (`6m0s`, `1.5s`, `12ms`), or of a plain number; None if senseless."""
    if (seconds := _number(header)) is not None:
        return min(seconds, _MAX_WAIT_S)
    text = (header or "").strip()[:_LONGEST_HEADER]
    if not _DURATION.fullmatch(text):
        return None
    return min(sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text)), _MAX_WAIT_S)


def _number(header: str | None) -> float | None:
    text = (header or "").strip()[:_LONGEST_HEADER]
    return float(text) if _NUMBER.fullmatch(text) else None
