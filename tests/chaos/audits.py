"""The client of a chaos run: puts audits on record and starts them, as `proctor audit submit` does."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from celery import Celery
from kombu.exceptions import OperationalError

from proctor.domain.messages import StartAudit
from proctor.formats.suites import load_suite
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.records.store import AuditState, Records
from tests.chaos.arithmetic import Benchmark
from tests.chaos.cluster import Cluster

#: How soon an operator looks again at an audit that failed.
_ATTENTION_S = 2.0


class Client:
    """Starts audits in a cluster. A failed one it starts again, as an operator would; that is counted."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._records = cluster, Records(cluster.settings.records_url)
        self._artifacts = open_artifacts(cluster.settings)
        self.restarts: list[str] = []
        self._noticed: dict[str, float] = {}
        # Not Proctor's own application: that is one a process, and keeps its connections to the first broker.
        self._app = Celery("chaos-client", broker=cluster.settings.broker_url)

    def submit(self, benchmark: Benchmark, endpoint: str = "in-process") -> str:
        """Put an audit on record and start it; its id."""
        folder = self._cluster.home / "suites"
        path = folder / f"{benchmark.name}.json"
        if not path.exists():
            benchmark.write(folder, endpoint)
        settings = self._cluster.settings
        data = gather(load_suite(path), folder, settings.bundle)
        audit_id = submit(data, settings, self._records, self._artifacts).record.audit_id
        self._start(audit_id)
        return audit_id

    def _start(self, audit_id: str) -> None:
        message = StartAudit(audit_id=audit_id)
        # The broker may be down at this moment. What is on record is accepted: the reconciler begins it then.
        with suppress(OperationalError):
            self._app.send_task(
                message.task,
                kwargs={"message": message.plain()},
                queue=message.queue,
                ignore_result=True,
                retry=False,
            )

    def state(self, audit_id: str) -> AuditState:
        """Where an audit is."""
        return self._records.audit(audit_id).state

    def decided(self, audit_id: str) -> bool:
        """Whether an audit has its decision; one that failed is started again."""
        record = self._records.audit(audit_id)
        if record.state is AuditState.FAILED and self._noticed.get(audit_id, 0.0) < time.monotonic() - _ATTENTION_S:
            self._noticed[audit_id] = time.monotonic()
            self.restarts.append(f"{audit_id}: {record.detail}")
            self._start(audit_id)
        return record.state is AuditState.DECIDED

    def close(self) -> None:
        """Give back the connections."""
        self._records.close()
        self._app.close()


def report_bytes(home: Path, audit_id: str) -> bytes:
    """The report of an audit as it lies on disk."""
    return (home / "reports" / audit_id / "report.json").read_bytes()
