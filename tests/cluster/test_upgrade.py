"""`helm upgrade` in the middle of an audit, and `helm rollback`: nothing is lost, and nothing counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.arithmetic import Benchmark
from tests.cluster.audits import Gateway
from tests.cluster.deployment import with_sums
from tests.cluster.release import Release
from tests.support import wait_until

#: Long enough that an upgrade of everything falls into it.
BENCHMARK = Benchmark("upgraded", items=4_000)


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

    def is_being_answered() -> bool:
        trials = gateway.audits([audit_id]).get(audit_id, {}).get("trials") or {}
        return bool(trials.get("done", 0))

    wait_until(is_being_answered, timeout_s=180, what="the first answers")
    return audit_id


def test_an_upgrade_during_an_audit_loses_and_doubles_nothing(
    release: Release, gateway: Gateway, suite: Path, calm: str
) -> None:
    audit_id = _submit_and_wait_for_answers(gateway, suite)
    # An annotation on every pod: all of them are replaced.
    release.upgrade(with_sums(release.namespace, more={"pods": {"annotations": {"proctor.dev/rolled": "1"}}}))
    audit = gateway.decided([audit_id], within_s=300)[audit_id]
    assert audit["trials"]["done"] == BENCHMARK.trials
    assert audit["trials"]["dead"] == 0
    assert audit["decision"]["report_digest"] == calm


def test_a_rollback_during_an_audit_does_not_either(release: Release, gateway: Gateway, suite: Path, calm: str) -> None:
    audit_id = _submit_and_wait_for_answers(gateway, suite)
    release.rollback()
    audit = gateway.decided([audit_id], within_s=300)[audit_id]
    assert audit["decision"]["report_digest"] == calm
    pods = release.pods("router")
    assert all("proctor.dev/rolled" not in pod["metadata"].get("annotations", {}) for pod in pods)
