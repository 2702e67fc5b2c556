"""What a router tells at a scrape beside what its processes record: audits, the ledger's promises, and what waits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final

import sqlalchemy as sa
from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from proctor.domain.errors import StoreError
from proctor.router.work import Work, look
from proctor.runtime.metrics.catalogue import OLDEST_UNFINISHED, SCALING_WORK, SHARDS
from proctor.runtime.metrics.collectors import AuditsCollector, LedgerCollector
from proctor.runtime.metrics.rotations import RotationsCollector
from proctor.runtime.metrics.scores import ScoresCollector
from proctor.runtime.records.engine import open_engine
from proctor.runtime.settings import Settings

logger = logging.getLogger(__name__)

#: Scrapes that come together share a look: an autoscaler asks once for each service.
_FRESH_S: Final = 1.0


class WorkCollector(Collector):
    """What waits for each service, looked up at the scrape; left out while the stores do not answer.

    The whole deployment's number, and the same on every router.
    """

    def __init__(self, settings: Settings, *, fresh_s: float = _FRESH_S) -> None:
        self._settings, self._fresh_s = settings, fresh_s
        self._engine: sa.Engine | None = None
        self._one_at_a_time = threading.Lock()
        self._seen: tuple[float, Work | None] | None = None

    def collect(self) -> Iterator[Family]:
        """The work by service, the shards by state, and the oldest audit's age by state."""
        work = self._work()
        if work is None:
            return
        waiting = GaugeMetricFamily(SCALING_WORK.name, SCALING_WORK.help, labels=SCALING_WORK.labels)
        for service, count in work.by_service.items():
            waiting.add_metric([service], count)
        shards = GaugeMetricFamily(SHARDS.name, SHARDS.help, labels=SHARDS.labels)
        for place, count in work.shards.items():
            shards.add_metric([place.value], count)
        oldest = GaugeMetricFamily(OLDEST_UNFINISHED.name, OLDEST_UNFINISHED.help, labels=OLDEST_UNFINISHED.labels)
        for state, age_s in work.oldest_s.items():
            oldest.add_metric([state.value], age_s)
        yield from (waiting, shards, oldest)

    def _work(self) -> Work | None:
        with self._one_at_a_time:
            if self._seen is None or time.monotonic() - self._seen[0] > self._fresh_s:
                # A failure is shared, too, or those who wait would each wait for it again.
                found = self._look()
                self._seen = time.monotonic(), found
            return self._seen[1]

    def _look(self) -> Work | None:
        if self._engine is None:
            self._engine = open_engine(self._settings.records_url, poolclass=sa.pool.NullPool)
        try:
            return look(self._engine, self._settings.ledger_url, self._settings.broker_url)
        except (StoreError, sa.exc.SQLAlchemyError) as error:
            logger.warning("what waits for the services cannot be told: %s", type(error).__name__)
            return None


def collectors(settings: Settings) -> Iterable[Collector]:
    """All of a router's."""
    return (
        AuditsCollector(settings.records_url),
        LedgerCollector(settings.ledger_url),
        WorkCollector(settings),
        ScoresCollector(settings.records_url, settings.metrics_scores),
        RotationsCollector(settings.benchmarks),
    )
