"""Looking at audits again and again until they end."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from proctor.gateway.pace import PaceMeter
from proctor.gateway.status import AuditStatus

#: Between two looks, in seconds: a short audit's end is seen at once, and an audit of hours is not asked ten times a
#: second.
_SHORTEST_S: Final = 0.1
_LONGEST_S: Final = 0.5
#: Of the time that was watched so far.
_SHARE: Final = 0.05


def nothing_to_check() -> None:
    """For who watches audits whose services are not its own."""


def watch(
    look: Callable[[], Sequence[AuditStatus]],
    *,
    check: Callable[[], None] = nothing_to_check,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[AuditStatus, ...]]:
    """Audits as they are now and after each pause, with their pace, until all have ended.

    Args:
        look: the audits as they are.
        check: called between looks; raises when it is in vain to go on.
        clock: seconds, never going back.
        sleep: waits so many seconds.
    """
    meters: dict[str, PaceMeter] = defaultdict(PaceMeter)
    began = clock()
    while True:
        seen, now = look(), clock()
        yield tuple(meters[status.audit_id].measured(status, now) for status in seen)
        if all(status.ended for status in seen):
            return
        check()
        sleep(min(_LONGEST_S, max(_SHORTEST_S, _SHARE * (clock() - began))))
