"""`helm upgrade` in the middle of an audit, and `helm rollback`: nothing is lost, and nothing counted twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.chaos.arithmetic import Benchmark
from tests.cluster.audits import Gateway
from tests.cluster.deployment import with_sums
from tests.cluster.release import Record, Release
from tests.support import wait_until

#: Long enough that an upgrade of everything falls into it.
BENCHMARK = Benchmark("upgraded", items=4_000)
_ROLLED = {"proctor.dev/rolled": "1"}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BENCHMARK.write(tmp_path_factory.mktemp("upgraded"), "sums")


@pytest.fixture(scope="module")
def calm(release: Release, adding: None, monitoring: str, gateway: Gateway, suite: Path) -> str:
    """The digest of the report that nothing disturbed. From here on a Prometheus looks on."""
    release.upgrade(with_sums(release.namespace))
    audit_id = gateway.submit(suite)
    return str(gateway.decided([audit_id], within_s=300)[audit_id]["decision"]["report_digest"])


def _submit_and_wait_for_answers(gateway: Gateway, suite: Path) -> str:
    audit_id = gateway.submit(suite)
    wait_until(lambda: bool(_done(gateway, audit_id)), timeout_s=180, what="the first answers")
    return audit_id


def _done(gateway: Gateway, audit_id: str) -> int:
    trials = gateway.audits([audit_id]).get(audit_id, {}).get("trials") or {}
    return int(trials.get("done", 0))


def test_an_upgrade_during_an_audit_loses_and_doubles_nothing(
    release: Release, gateway: Gateway, suite: Path, calm: str, record_property: Record
) -> None:
    audit_id = _submit_and_wait_for_answers(gateway, suite)
    began, done = time.monotonic(), _done(gateway, audit_id)
    # An annotation on every pod: all of them are replaced.
    release.upgrade(with_sums(release.namespace, more={"pods": {"annotations": _ROLLED}}))
    record_property("upgrade", f"{time.monotonic() - began:.0f} s, begun at {done} of {BENCHMARK.trials} trials")
    audit = gateway.decided([audit_id], within_s=300)[audit_id]
    assert audit["trials"]["done"] == BENCHMARK.trials
    assert audit["trials"]["dead"] == 0
    assert audit["decision"]["report_digest"] == calm
    assert all(_ROLLED.items() <= pod["metadata"]["annotations"].items() for pod in release.pods("router"))


def test_a_rollback_during_an_audit_does_not_either(release: Release, gateway: Gateway, suite: Path, calm: str) -> None:
    audit_id = _submit_and_wait_for_answers(gateway, suite)
    release.rollback()
    audit = gateway.decided([audit_id], within_s=300)[audit_id]
    assert audit["decision"]["report_digest"] == calm
    assert not any(_ROLLED.items() <= pod["metadata"]["annotations"].items() for pod in release.pods("router"))
