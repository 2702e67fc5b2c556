"""KEDA scales inference by the ledger's work, from no pod to several and back to none, and no shard is lost by it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.arithmetic import Benchmark
from tests.cluster.audits import Gateway
from tests.cluster.deployment import with_sums
from tests.cluster.kit import is_ready
from tests.cluster.prometheus import reached_prometheus
from tests.cluster.release import Record, Release
from tests.support import wait_until

#: 10⁵ trials.
BENCHMARK = Benchmark("scaled", items=25_000)
MOST_PODS = 4
_COUNTED = {
    "shards handed back": 'proctor_shard_redeliveries_total{cause="handed_back"}',
    "shards whose worker was lost": 'proctor_shard_redeliveries_total{cause!="handed_back"}',
    "duplicates suppressed": "proctor_duplicates_suppressed_total",
}


#: Folder for what the cluster did, in the form that scripts/simulate_autoscaling.py takes, and the values it had. The
#: audit is left to itself then.
_RECORD = os.environ.get("PROCTOR_RECORD_SCALING")


class Seen(NamedTuple):
    """How many pods there were at a time of day."""

    at_s: float
    wanted: int
    ready: int


class Watching:
    """Counts a component's pods, every half second, until it is told to stop."""

    def __init__(self, release: Release, component: str) -> None:
        self.seen: list[Seen] = []
        self._release, self._component = release, component
        self._stop = threading.Event()
        self._began_s = time.time()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.5):
            pods = self._release.pods(self._component)
            self.seen.append(Seen(time.time(), len(pods), sum(map(is_ready, pods))))

    def first(self, ready: int) -> float | None:
        """Seconds until so many pods were ready for the first time."""
        return next((round(one.at_s - self._began_s, 1) for one in self.seen if one.ready >= ready), None)


def _record(folder: Path, release: Release, monitoring: str, seen: Sequence[Seen]) -> None:
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        # A scrape is five seconds old at most, a series is gone five minutes after its pod.
        work = prometheus.over('max(proctor_scaling_work{service="inference"})', seen[0].at_s, seen[-1].at_s)
    lines = ["at_s,replicas,ready,work"]
    for one in seen:
        _, value = min(work, key=lambda known: abs(known[0] - one.at_s))
        lines.append(f"{one.at_s - seen[0].at_s:.2f},{one.wanted},{one.ready},{value:g}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "audit.csv").write_text("\n".join(lines) + "\n")
    (folder / "audit-values.json").write_text(json.dumps(with_sums(release.namespace), indent=1) + "\n")


def _at_most(release: Release, pods: int) -> None:
    changed = json.dumps({"spec": {"maxReplicaCount": pods}})
    name = f"{release.name}-inference"
    release.cluster.kubectl("-n", release.namespace, "patch", "scaledobject", name, "--type=merge", "-p", changed)


def _counted(release: Release, monitoring: str, metric: str, seconds: float) -> int:
    """By how much a counter rose, over all pods that there were; a scrape is missed where a pod is gone before it."""
    span = f"{metric}[{seconds:.0f}s]"
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        (found,) = prometheus.query(f"sum(max_over_time({span}) - min_over_time({span}))")
    return round(float(found["value"][1]))


def test_inference_goes_from_no_pod_to_several_and_back_with_an_audit_of_a_hundred_thousand_trials(
    release: Release,
    adding: None,
    monitoring: str,
    gateway: Gateway,
    tmp_path: Path,
    record_property: Record,
) -> None:
    wait_until(lambda: not release.pods("inference"), timeout_s=120, what="inference without work to be gone")
    suite = BENCHMARK.write(tmp_path, "sums")
    with Watching(release, "inference") as watching:
        began = time.monotonic()
        audit_id = gateway.submit(suite)
        wait_until(lambda: watching.first(MOST_PODS) is not None, timeout_s=240, what="as many pods as there may be")
        if not _RECORD:
            # In the middle of the work: three of four are told to leave, with shards in hand.
            _at_most(release, 1)
            wait_until(lambda: len(release.pods("inference")) == 1, timeout_s=60, what="all pods but one to leave")
            _at_most(release, MOST_PODS)
        audit = gateway.decided([audit_id], within_s=600)[audit_id]
        took = time.monotonic() - began
        wait_until(lambda: not release.pods("inference"), timeout_s=120, what="inference to be gone again")
        back = time.monotonic() - began - took
    most = max(one.ready for one in watching.seen)
    figures = {
        "trials": BENCHMARK.trials, "seconds": round(took, 1), "first pod ready": watching.first(1),
        "most pods": most, "most pods ready after": watching.first(most), "back to none after": round(back, 1),
        **{what: _counted(release, monitoring, metric, took + back) for what, metric in _COUNTED.items()},
    }  # fmt: skip
    record_property("scaling", json.dumps(figures))
    if _RECORD:
        _record(Path(_RECORD), release, monitoring, watching.seen)
    assert audit["trials"]["done"] == BENCHMARK.trials == 100_000
    assert audit["trials"]["dead"] == 0
    assert most == MOST_PODS
