"""The Contamination Score of what was audited of late, by model and suite: read from the record store at a scrape.

The one metric that names what grows with use. The names are those of the operator's own record, there are only so many
of them at a time, and PROCTOR_METRICS_SCORES says how many: a score that rises from version to version cannot be told
without saying of which model.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import sqlalchemy as sa
from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from proctor.domain.channel_results import Verdict
from proctor.domain.errors import StoreError
from proctor.domain.problems import visible
from proctor.runtime.metrics.catalogue import CONTAMINATION_SCORE
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.tables import AUDIT_MEASURES

logger = logging.getLogger(__name__)

#: Decisions that are looked through, the newest.
LOOKED_AT: Final = 2_000
#: Characters of a name in a label.
MAX_NAME: Final = 80
_DIGEST_SIGNS: Final = 8
#: Audits take minutes: a score may be so old.
_FRESH_S: Final = 30.0
_C = AUDIT_MEASURES.c


class Scored(NamedTuple):
    """The score of one audit, with the bounds of its interval."""

    model_digest: str
    protocol_digest: str
    estimate: float
    low: float
    high: float


class Line(NamedTuple):
    """A model and a suite: its newest version, and the one before it that was measured alike."""

    model: str
    suite: str
    newest: Scored
    previous: Scored | None


def lines(rows: Iterable[tuple[str, str, Scored]], most: int) -> list[Line]:
    """What is told of audits, the newest of which comes first. Pure.

    Another protocol digest is another measure: a version that was measured otherwise is not the one before.
    """
    found: dict[tuple[str, str], Line] = {}
    for model, suite, scored in rows:
        line = found.get((model, suite))
        if line is None:
            if len(found) < most:
                found[model, suite] = Line(model, suite, scored, None)
            continue
        alike = scored.protocol_digest == line.newest.protocol_digest
        if line.previous is None and alike and scored.model_digest != line.newest.model_digest:
            found[model, suite] = line._replace(previous=scored)
    return list(found.values())


def label_of(name: str) -> str:
    """A name as a label's value: nothing in it that would not show, and no longer than it may be.

    What is cut ends in a digest of the whole, so that two long names stay two.
    """
    shown = visible(name)
    if len(shown) <= MAX_NAME:
        return shown
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_SIGNS]
    return f"{shown[: MAX_NAME - _DIGEST_SIGNS - 1]}~{digest}"


class ScoresCollector(Collector):
    """The scores on record; left out while the store does not answer, and where there are to be none.

    The whole deployment's, and the same on every router.
    """

    def __init__(self, records_url: str, most: int, *, fresh_s: float = _FRESH_S) -> None:
        self._records_url, self._most, self._fresh_s = records_url, most, fresh_s
        self._engine: sa.Engine | None = None
        self._one_at_a_time = threading.Lock()
        self._seen: tuple[float, list[Line]] = (float("-inf"), [])

    def collect(self) -> Iterator[Family]:
        """Up to six samples a model and suite."""
        if not self._most:
            return
        family = GaugeMetricFamily(
            CONTAMINATION_SCORE.name, CONTAMINATION_SCORE.help, labels=CONTAMINATION_SCORE.labels
        )
        try:
            found = self._lines()
        except (StoreError, sa.exc.SQLAlchemyError) as error:
            logger.warning("scores cannot be read for the metrics: %s", type(error).__name__)
            return
        for line in found:
            for audited, scored in (("newest", line.newest), ("previous", line.previous)):
                if scored is not None:
                    names = [label_of(line.model), label_of(line.suite), audited]
                    family.add_metric([*names, "estimate"], scored.estimate)
                    family.add_metric([*names, "low"], scored.low)
                    family.add_metric([*names, "high"], scored.high)
        yield family

    def _lines(self) -> list[Line]:
        with self._one_at_a_time:
            if time.monotonic() - self._seen[0] > self._fresh_s:
                self._seen = time.monotonic(), lines(self._rows(), self._most)
            return self._seen[1]

    def _rows(self) -> list[tuple[str, str, Scored]]:
        if self._engine is None:
            # As in AuditsCollector: no connection that a forked process would inherit.
            self._engine = open_engine(self._records_url, poolclass=sa.pool.NullPool)
        figures = _C.score, _C.score_low, _C.score_high
        statement = (
            sa.select(_C.model_id, _C.suite_id, _C.model_digest, _C.protocol_digest, *figures)
            .where(_C.verdict != Verdict.INVALID, *(figure.is_not(None) for figure in figures))
            .order_by(_C.decided_at.desc(), _C.audit_id.desc())
            .limit(LOOKED_AT)
        )
        with self._engine.connect() as connection:
            return [(model, suite, Scored(*rest)) for model, suite, *rest in connection.execute(statement)]
