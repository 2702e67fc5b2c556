"""A Valkey that loses what it acknowledged, in the middle of audits: each ends with one right decision all the same.

What is decided before such a loss is in the record store, and its ledger is of no more use; so these are runs of their
own, of audits that are under way when it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.arithmetic import Benchmark
from tests.chaos.cluster import Cluster
from tests.chaos.faults import EmptyValkey, FailOver, Fault, Standing, recorded
from tests.chaos.hooks import SLOW_MODEL
from tests.chaos.run import Extent, Lane, Outcome, run_lanes

pytestmark = pytest.mark.timeout(600)

#: Two audits that take some seconds where a shard takes half a one, as it does until the run is over.
_LANES = (Lane(Benchmark("first", 300)), Lane(Benchmark("second", 300)))
_SLOWLY = Standing("model slow", SLOW_MODEL, 90.0, "0.5")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_lanes(tmp_path_factory.mktemp("calm"), _LANES, Extent(rounds=1))
    outcome.findings.raise_if_broken()
    return outcome


class Once:
    """A fault that comes when so many shards of the first audits are answered."""

    def __init__(self, fault: Fault, shards: int) -> None:
        self._fault, self._shards, self.name = fault, shards, fault.name

    def hold_s(self, cluster: Cluster) -> float:
        return self._fault.hold_s(cluster)

    def inject(self, cluster: Cluster) -> bool:
        return recorded(cluster) >= self._shards and self._fault.inject(cluster)

    def undo(self, cluster: Cluster) -> None:
        self._fault.undo(cluster)


def run(home: Path, fault: Fault, calm: Outcome) -> Outcome:
    faults: Iterator[Fault] = iter((_SLOWLY, Once(fault, 4)))
    extent = Extent(rounds=1, faults=2, every_s=0.0, limit_s=90, patience_s=30)
    return run_lanes(home, _LANES, extent, faults, calm_reports=calm.reports)


def ends_right(outcome: Outcome, fault: Fault) -> None:
    assert outcome.faults[fault.name] == 1
    # Grades of answers whose record was lost come all the same. They are of other completions than those that count,
    # and the scorer leaves them: the checker sees to it that the manifest has none of them.
    violations = [text for text in outcome.findings.violations if "by answers that do not count" not in text]
    assert not violations, "\n".join(violations)
    assert outcome.findings.decisions == {1: len(_LANES)}
    assert outcome.findings.reports_compared == len(_LANES)


def test_a_failover_to_a_replica_that_lags_counts_nothing_twice(tmp_path: Path, calm: Outcome) -> None:
    fault = FailOver(unheard=4)
    outcome = run(tmp_path, fault, calm)
    ends_right(outcome, fault)
    # What the replica had not heard of was answered, and recorded, again.
    counted = [row for row in outcome.events if row["event"] == "record" and row["outcome"] in ("recorded", "complete")]
    assert len(counted) >= outcome.findings.shards + fault.unheard


def test_audits_whose_valkey_was_emptied_fail_with_that_cause_and_end_when_they_are_started_again(
    tmp_path: Path, calm: Outcome
) -> None:
    fault = EmptyValkey()
    outcome = run(tmp_path, fault, calm)
    ends_right(outcome, fault)
    assert outcome.restarts
    assert all("the ledger lost keys of this audit" in text for text in outcome.restarts)
