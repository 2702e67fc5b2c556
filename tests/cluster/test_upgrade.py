"""`helm upgrade` in the middle of an audit, and `helm rollback`: nothing is lost, and nothing counted twice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from tests.cluster import sums
from tests.cluster.audits import Gateway
from tests.cluster.calm import REPLACED, Calm
from tests.cluster.deployment import with_sums
from tests.cluster.release import Record, Release
from tests.support import wait_until

_ROLLED = {"proctor.dev/rolled": "1"}
#: So that the audit lasts at least four minutes, whatever the machine: two rollouts of everything fall into them.
_ANSWER_S = 0.06


@pytest.fixture(scope="module")
def under_way(release: Release, monitoring: str, gateway: Gateway, calm: Mapping[str, Calm]) -> Iterator[str]:
    """An audit that has its first answers. From here on a Prometheus looks on."""
    sums.slow_down(release, answer_s=_ANSWER_S)
    try:
        audit_id = gateway.submit(calm[REPLACED.name].suite)
        wait_until(lambda: bool(_done(gateway, audit_id)), timeout_s=180, what="the first answers")
        yield audit_id
    finally:
        sums.hurry(release)


def _done(gateway: Gateway, audit_id: str) -> int:
    trials = gateway.audits([audit_id]).get(audit_id, {}).get("trials") or {}
    return int(trials.get("done", 0))


def _annotated(release: Release) -> set[bool]:
    """Whether routers have the annotation of the upgrade; both, where some do."""
    return {_ROLLED.items() <= (pod["metadata"].get("annotations") or {}).items() for pod in release.pods("router")}


def test_an_upgrade_during_an_audit_replaces_all_pods(
    release: Release, gateway: Gateway, under_way: str, record_property: Record
) -> None:
    began, done = time.monotonic(), _done(gateway, under_way)
    # An annotation on every pod: all of them are replaced.
    release.upgrade(with_sums(release.namespace, more={"pods": {"annotations": _ROLLED}}))
    record_property("upgrade", f"{time.monotonic() - began:.0f} s, begun at {done} of {REPLACED.trials} trials")
    assert _annotated(release) == {True}


def test_so_does_a_rollback_and_after_both_nothing_is_lost_or_doubled(
    release: Release, gateway: Gateway, under_way: str, calm: Mapping[str, Calm], record_property: Record
) -> None:
    began = time.monotonic()
    release.rollback()
    done = _done(gateway, under_way)
    record_property("rollback", f"{time.monotonic() - began:.0f} s, over at {done} of {REPLACED.trials} trials")
    assert _annotated(release) == {False}
    assert 0 < done < REPLACED.trials, "the audit was not under way for as long as all was replaced twice"
    sums.hurry(release)
    audit = gateway.decided([under_way], within_s=300)[under_way]
    assert audit["trials"]["done"] == REPLACED.trials
    assert audit["trials"]["dead"] == 0
    assert audit["decision"]["report_digest"] == calm[REPLACED.name].report_digest
