"""Who leads, by a Lease of coordination.k8s.io/v1, as client-go decides it. Pure.

Nobody's clock is compared with another's: a holder's lease has run out when this process has seen its record stay as it
is, by its own steady clock, for as long as the record says that it holds. Two that decide so at the same time write on
the same version of the object, and the server takes one of them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

#: How long a record holds that nobody changes; client-go's defaults, as are the next two.
LEASE_S: Final = 15.0
#: A holder that could not renew for so long leads no more. The rest of the lease is for a step that was under way.
RENEW_DEADLINE_S: Final = 10.0
#: Between two tries.
RETRY_S: Final = 2.0


class Record(NamedTuple):
    """What a Lease says."""

    holder: str
    """Empty where it was released."""
    duration_s: float
    mark: str
    """Another one with each renewal, by whoever it was."""


class Act(StrEnum):
    """What a candidate does now."""

    CREATE = "create"
    """There is no Lease yet."""
    ACQUIRE = "acquire"
    RENEW = "renew"
    WAIT = "wait"


class Observed:
    """What one candidate has seen of a Lease, by its own clock.

    Args:
        identity: the candidate's, which nobody else has.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._record: Record | None = None
        self._since_s = 0.0

    @property
    def record(self) -> Record | None:
        """What it saw last; None where there was no Lease."""
        return self._record

    def see(self, record: Record | None, now_s: float) -> Act:
        """What to do about a record that was read, or written, now."""
        if record != self._record or record is None:
            self._record, self._since_s = record, now_s
        if record is None:
            return Act.CREATE
        if record.holder == self._identity:
            return Act.RENEW
        if not record.holder or now_s - self._since_s >= record.duration_s:
            return Act.ACQUIRE
        return Act.WAIT
