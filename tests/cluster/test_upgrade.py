"""`helm upgrade` in the middle of an audit, and `helm rollback`: nothing is lost, and nothing counted twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.chaos.arithmetic import Benchmark
from tests.cluster.audits import Gateway
from tests.cluster.deployment import with_sums
from tests.cluster.release import Release
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


def test_an_upgrade_and_a_rollback_during_an_audit_lose_and_double_nothing(
    release: Release, gateway: Gateway, suite: Path, calm: str
) -> None:
    audit_id = gateway.submit(suite)

    def trials() -> dict[str, int]:
        return gateway.audits([audit_id]).get(audit_id, {}).get("trials") or {}

    wait_until(lambda: bool(trials().get("done")), timeout_s=180, what="the first answers")
    # An annotation on every pod: all of them are replaced.
    release.upgrade(with_sums(release.namespace, more={"pods": {"annotations": _ROLLED}}))
    assert all(_ROLLED.items() <= pod["metadata"]["annotations"].items() for pod in release.pods("router"))
    done_by_then = trials().get("done", BENCHMARK.trials)
    release.rollback()
    audit = gateway.decided([audit_id], within_s=300)[audit_id]
    print(f"{done_by_then} of {BENCHMARK.trials} trials were done when it was upgraded", file=sys.stderr)
    assert audit["trials"]["done"] == BENCHMARK.trials
    assert audit["trials"]["dead"] == 0
    assert audit["decision"]["report_digest"] == calm
    assert not any(_ROLLED.items() <= pod["metadata"]["annotations"].items() for pod in release.pods("router"))
