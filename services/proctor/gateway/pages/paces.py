"""How quickly the audits go that somebody looks at, from one look to the next."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from proctor.gateway.pace import PaceMeter
from proctor.gateway.status import AuditStatus

#: Audits that are looked at of late; of the others the pace is forgotten.
_MOST: Final = 256


class Paces:
    """Meters of the audits that were looked at last."""

    def __init__(self) -> None:
        self._meters: OrderedDict[str, PaceMeter] = OrderedDict()

    def measured(self, status: AuditStatus, now_s: float) -> AuditStatus:
        """The status with the pace since earlier looks, whoever's they were."""
        meter = self._meters.pop(status.audit_id, None) or PaceMeter()
        if not status.ended:
            self._meters[status.audit_id] = meter
        while len(self._meters) > _MOST:
            self._meters.popitem(last=False)
        return meter.measured(status, now_s)
