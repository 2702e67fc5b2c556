"""The short chaos run: every kind of fault and every crash point once.

`make chaos` runs the long one; docs/faults.md says what both of them do.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

from tests.chaos import figures
from tests.chaos.crash_points import CRASH_POINTS, CrashPoint
from tests.chaos.run import ROLES, Extent, all_arms, lanes, looked_at, run_lanes
from tests.chaos.schedule import kinds

pytestmark = pytest.mark.timeout(600)


def test_every_fault_and_every_crash_point_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    # So many items that they are two chunks, and two parts of a stage.
    of = lanes(1100, count=1, small=1)
    calm = run_lanes(tmp_path / "calm", of, Extent(rounds=1))
    calm.findings.raise_if_broken()
    rng = random.Random(5)
    faults = kinds(ROLES, rng)
    rng.shuffle(faults)
    extent = Extent(faults=len(faults), every_s=0.4, limit_s=120)
    chaos = run_lanes(tmp_path / "chaos", of, extent, faults, calm_reports=calm.reports)
    chaos.findings.raise_if_broken()
    assert chaos.faults.keys() == {fault.name for fault in faults}
    assert figures.crashes(chaos.events).keys() == {point.name for point in CRASH_POINTS}
    assert figures.duplicates_suppressed(chaos.events) > 0
    # Whether a breaker opens, or a worker that leaves has a shard to hand back, is chance in so short a run. The long
    # one counts both, and `test_pools` and `test_worker_leaves` have tests of them.
    assert chaos.findings.reports_compared == chaos.findings.audits > len(of)
    assert chaos.findings.searched > 0
    # Audits that stopped at a look, in the same report as in the calm.
    assert chaos.findings.stopped > 0
    assert {f"chaos-{lane.benchmark.name}" for lane in looked_at()} < chaos.reports.keys()
    # The lane with all arms among them: fresh items, control items, several answers to each prompt, a search.
    assert {f"chaos-{lane.benchmark.name}" for lane in all_arms()} < chaos.reports.keys()


def test_the_checker_shares_no_code_with_what_it_checks() -> None:
    for name in ("checker", "stores", "reading", "accounts", "remains", "findings"):
        tree = ast.parse((Path(__file__).parent / f"{name}.py").read_text())
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not [module for module in modules if module.split(".")[0] == "proctor"], modules


def test_a_crash_point_names_something_that_exists() -> None:
    import importlib

    def found(point: CrashPoint) -> bool:
        module, _, path = point.target.partition(":")
        owner: object = importlib.import_module(module)
        for part in path.split("."):
            owner = getattr(owner, part)
        return callable(owner)

    assert all(found(point) for point in CRASH_POINTS)
