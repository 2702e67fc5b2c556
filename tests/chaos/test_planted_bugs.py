"""The chaos harness bites: it finds each of four planted bugs, which go unnoticed without a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.runtime.timing import Timing
from tests.chaos.arithmetic import Benchmark
from tests.chaos.cluster import ONE_OF_EACH
from tests.chaos.crash_points import CRASH_POINTS
from tests.chaos.faults import CrashAt, Fault, LoseMessage, Standing
from tests.chaos.hooks import SLOW_MODEL
from tests.chaos.run import Extent, Lane, Outcome, run_lanes

pytestmark = pytest.mark.timeout(600)

#: As quick as a delivery over a busy machine allows, so that a planted bug shows in seconds.
_QUICKEST = Timing(reconcile_interval_s=0.5, lease_s=2.0, visibility_timeout_s=3.0, answer_time_s=4.0)
_EIGHT_SHARDS = (Lane(Benchmark("planted", 128)),)
#: So many that shards are still asked when the broker delivers again what the first answers' router died with.
_FORTY_SHARDS = (Lane(Benchmark("planted", 640)),)


def _crash(name: str) -> CrashAt:
    return CrashAt(next(point for point in CRASH_POINTS if point.name == name))


@pytest.mark.parametrize(
    ("plant", "faults", "invariant"),
    [
        ("bare_decrement", [Standing("model slow", SLOW_MODEL, 60.0, "0.7"), _crash("record")], "invariant 2"),
        ("acknowledge_first", [_crash("storing")], "invariant 1"),
        ("no_reconciler", [_crash("fetch-inference")], "invariant 3"),
        ("chord", [Standing("model slow", SLOW_MODEL, 60.0, "0.3"), LoseMessage("inference.chorded")], "invariant 1"),
    ],
)
def test_the_harness_finds_a_planted_bug(plant: str, faults: list[Fault], invariant: str, tmp_path: Path) -> None:
    def run(folder: str, faults: list[Fault]) -> Outcome:
        many = plant == "bare_decrement"
        extent = Extent(rounds=1, limit_s=30 if many else 10, patience_s=0, every_s=0.0)
        lanes = _FORTY_SHARDS if many else _EIGHT_SHARDS
        return run_lanes(tmp_path / folder, lanes, extent, faults, roles=ONE_OF_EACH, timing=_QUICKEST, plant=plant)

    run("calm", []).findings.raise_if_broken()
    found = run("chaos", faults).findings.violations
    assert any(text.startswith(invariant) for text in found), found
