"""An operator who steers audits while all else goes wrong: what is paused goes on afterwards as if nothing had been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

from proctor.domain.errors import BadInputError
from proctor.router.control import pause
from proctor.runtime.records.store import Records
from tests.chaos.cluster import Cluster


@dataclass(frozen=True)
class PauseAudit:
    """An audit that runs is paused for a while. Nobody sends word of it: the router's steps and reconciler see it."""

    draw: int
    name: str = "audit paused"
    _paused: list[str] = field(default_factory=list, compare=False)

    def hold_s(self, cluster: Cluster) -> float:
        return 2.0

    def inject(self, cluster: Cluster) -> bool:
        with _records(cluster) as records, suppress(BadInputError):
            running = records.running_audits()
            if running:
                audit_id = running[self.draw % len(running)].audit_id
                pause(records, audit_id)
                self._paused.append(audit_id)
        return bool(self._paused)

    def undo(self, cluster: Cluster) -> None:
        with _records(cluster) as records:
            while self._paused:
                _resume(records, self._paused.pop())


@contextmanager
def _records(cluster: Cluster) -> Iterator[Records]:
    with closing(Records(cluster.settings.records_url)) as records:
        yield records


def _resume(records: Records, audit_id: str) -> None:
    # One that has failed meanwhile is resumed too, so that it runs when the client starts it again.
    while True:
        record = records.audit(audit_id)
        if record.state.final or not record.inputs["paused"]:
            return
        records.advance(
            audit_id,
            record.state,
            expected=[record.state],
            expected_inputs=record.inputs,
            detail=record.detail,
            inputs={**record.inputs, "paused": False},
        )
