"""What a scrape reads: the files that a worker's processes record in, the record store's audits, and the version."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import sqlalchemy as sa
from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.metrics.catalogue import AUDITS, BUILD_INFO, LEDGER_PROMISES
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.tables import AUDITS as AUDITS_TABLE
from proctor.runtime.redis.promises import Verdict, judge, read_facts

logger = logging.getLogger(__name__)

_LIVE_GAUGES = "gauge_live*_*.db"
#: A scrape waits no longer for the ledger; Prometheus itself gives up after ten seconds.
_LEDGER_TIMEOUT_S = 2.0


class ProcessesCollector(Collector):
    """The sums over a worker's processes, the dead ones' counts included.

    Gauges of processes that are gone are dropped first. Celery's signal of a process' end is not enough for that: one
    that is killed sends none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Without a registry: it is this collector that is registered.
        self._files = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]

    def collect(self) -> Iterable[Family]:
        """Every metric of the worker's processes."""
        for path in self._folder.glob(_LIVE_GAUGES):
            if not _lives(int(path.stem.rpartition("_")[2])):
                # Two scrapes may come at a time.
                path.unlink(missing_ok=True)
        families: Iterable[Family] = self._files.collect()  # type: ignore[no-untyped-call]
        return families


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class AuditsCollector(Collector):
    """Audits by state, counted in the record store at each scrape; left out when the store does not answer.

    The whole deployment's number, so one service serves it: summed over several workers it would be wrong.
    """

    def __init__(self, records_url: str) -> None:
        self._records_url = records_url
        self._engine: sa.Engine | None = None

    def collect(self) -> Iterator[Family]:
        """One sample a state, 0 where there is no audit."""
        family = GaugeMetricFamily(AUDITS.name, AUDITS.help, labels=AUDITS.labels)
        try:
            counts = self._counts()
        except (StoreError, sa.exc.SQLAlchemyError) as error:
            logger.warning("audits cannot be counted for the metrics: %s", type(error).__name__)
            return
        for state in AuditState:
            family.add_metric([state.value], counts.get(state.value, 0))
        yield family

    def _counts(self) -> dict[str, int]:
        if self._engine is None:
            # A connection a scrape: one that was kept would be inherited by processes that are forked later. The tables
            # are there: the worker has looked before it began.
            self._engine = open_engine(self._records_url, poolclass=sa.pool.NullPool)
        statement = sa.select(AUDITS_TABLE.c.state, sa.func.count().label("n")).group_by(AUDITS_TABLE.c.state)
        with self._engine.connect() as connection:
            return {row.state: row.n for row in connection.execute(statement)}


class LedgerCollector(Collector):
    """How the ledger's Redis keeps its promises, asked at each scrape; left out while it does not answer.

    It may be configured anew while a router runs.
    """

    def __init__(self, ledger_url: str) -> None:
        self._ledger_url = ledger_url

    def collect(self) -> Iterator[Family]:
        """One sample a promise and verdict, 1 at the one that holds."""
        family = GaugeMetricFamily(LEDGER_PROMISES.name, LEDGER_PROMISES.help, labels=LEDGER_PROMISES.labels)
        try:
            found = judge(read_facts(self._ledger_url, timeout_s=_LEDGER_TIMEOUT_S))
        except (StoreError, BadInputError) as error:
            logger.warning("the ledger's promises cannot be read for the metrics: %s", error)
            return
        for one in found:
            for verdict in Verdict:
                family.add_metric([one.promise.value, verdict.value], one.verdict is verdict)
        yield family


class BuildInfoCollector(Collector):
    """The version that runs."""

    def __init__(self, version: str, worker: str) -> None:
        self._values = (version, worker)

    def collect(self) -> Iterator[Family]:
        """Its one sample."""
        family = GaugeMetricFamily(BUILD_INFO.name, BUILD_INFO.help, labels=BUILD_INFO.labels)
        family.add_metric(self._values, 1)
        yield family
