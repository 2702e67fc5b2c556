"""A chaos run: many small audits, without faults and with them, and what the checker and the log say of it.

python -m tests.chaos.run --faults 1000 --trials 1000000
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.localstack.triton_server import obstacle
from proctor.runtime.timing import Timing
from tests.chaos import checker, figures
from tests.chaos.arithmetic import POISON, Benchmark
from tests.chaos.audits import Client, report_bytes
from tests.chaos.cluster import QUICK, Cluster, Role
from tests.chaos.crash_points import CRASH_POINTS
from tests.chaos.faults import Fault
from tests.chaos.findings import Findings
from tests.chaos.schedule import schedule
from tests.chaos.stores import Stores

#: Two of what is asked most, so that one may die while the other works; and one whose tasks run in children.
ROLES = (
    Role("router", 0), Role("router", 1), Role("perturbation"), Role("inference", 0, concurrency=2),
    Role("inference", 1, concurrency=2), Role("scorer", concurrency=2), Role("registry"),
)  # fmt: skip
#: Faults that are held at the same time. More, and nobody is left to recover.
_HELD = 3
#: Items of an audit that is over soon; and so many that the poisoned prompt is less of its arm than one may lose.
_SMALL = 40


@dataclass(frozen=True)
class Lane:
    """Audits of one suite, one after the other."""

    benchmark: Benchmark
    endpoint: str = "in-process"


def lanes(items: int, *, count: int, small: int = 0, triton: bool = False) -> tuple[Lane, ...]:
    """Lanes of a run: audits of so many items, small ones, one over HTTP, one with a prompt that kills whoever asks it,
    and one that has all arms, asks each prompt several times and has training data searched.

    The large ones have several parts; the small ones come often to what an audit does once.
    """
    return (
        *(Lane(Benchmark(f"sums-{n}", items)) for n in range(count)),
        *(Lane(Benchmark(f"small-{n}", _SMALL)) for n in range(small)),
        Lane(Benchmark("http", _SMALL), "http"),
        *([Lane(Benchmark("triton", _SMALL), "triton")] if triton else []),
        Lane(Benchmark("poisoned", _SMALL, poisoned=True)),
        *all_arms(),
        *looked_at(),
    )


def all_arms() -> tuple[Lane, ...]:
    """Audits with fresh items, control items, several answers to each prompt, and training data that are searched."""
    return (Lane(Benchmark("arms", _SMALL, variants=2, fresh=30, control=30, replicates=3, leaked=6), "http"),)


def looked_at() -> tuple[Lane, ...]:
    """Sequential audits, of which some stop before their whole sample is asked."""
    return tuple(Lane(Benchmark(f"looks-{n}", 120, sequential=True)) for n in range(2))


@dataclass
class Outcome:
    """What came of a run."""

    findings: Findings = field(default_factory=Findings)
    trials: int = 0
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    events: list[dict[str, Any]] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    reports: dict[str, str] = field(default_factory=dict)
    deaths: int = 0

    @property
    def rate(self) -> float:
        """Trials a second."""
        return self.trials / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Extent:
    """How much a run does: it ends when trials and faults are enough, or time is up; then its audits come to an end."""

    trials: int = 0
    faults: int = 0
    rounds: int = 1_000_000
    """Audits of one lane at most."""
    limit_s: float = 120.0
    every_s: float = 1.0
    """Between two faults."""
    patience_s: float = 120.0
    """Past the limit, an audit that has not ended in this time never will: the checker says what it is."""


class Run:
    """Audits of some lanes in a cluster, kept going for as long as is asked."""

    def __init__(self, cluster: Cluster, of: Sequence[Lane]) -> None:
        self.cluster, self._lanes, self._client = cluster, of, Client(cluster)
        self._under_way: dict[Lane, str] = {}
        self._begun = Counter[Lane]()
        self._held: list[tuple[float, Fault]] = []
        self.decided: list[tuple[Lane, str]] = []

    def drive(self, extent: Extent, faults: Iterator[Fault], calm_reports: dict[str, str]) -> Outcome:
        """Run, with faults on the way; then let everything come to rest, and have the stores checked."""
        outcome, began = Outcome(), time.monotonic()
        next_fault, over, fault = began, False, None
        while self._under_way or not over:
            now = time.monotonic()
            over = over or now - began > extent.limit_s or self._has_done(extent, outcome)
            self._end_faults(now, all_of_them=over)
            if not over and now >= next_fault and len(self._held) < _HELD:
                fault = fault or next(faults, None)
                if fault is not None and self._begins(fault, now):
                    outcome.faults[fault.name] += 1
                    fault, next_fault = None, now + extent.every_s
            self.cluster.tend()
            self._take_on(0 if over else extent.rounds)
            if now - began > extent.limit_s + extent.patience_s:
                break
            time.sleep(0.02)
        outcome.seconds, outcome.trials = time.monotonic() - began, self._trials
        return self._rest(outcome, calm_reports)

    def _has_done(self, extent: Extent, outcome: Outcome) -> bool:
        if self._under_way == {} and all(self._begun[lane] >= extent.rounds for lane in self._lanes):
            return True
        enough = self._trials >= extent.trials and outcome.faults.total() >= extent.faults
        return bool(extent.trials or extent.faults) and enough and not self._armed()

    def _armed(self) -> bool:
        return any(self.cluster.control.standing(f"crash-{point.name}") is not None for point in CRASH_POINTS)

    @property
    def _trials(self) -> int:
        return sum(lane.benchmark.trials for lane, _ in self.decided)

    def _begins(self, fault: Fault, now: float) -> bool:
        if fault.name in {other.name for _, other in self._held} or not fault.inject(self.cluster):
            return False
        self._held.append((now + fault.hold_s(self.cluster), fault))
        return True

    def _end_faults(self, now: float, *, all_of_them: bool) -> None:
        for end, fault in [row for row in self._held if row[0] <= now or all_of_them]:
            fault.undo(self.cluster)
            self._held.remove((end, fault))

    def _take_on(self, rounds: int) -> None:
        """Note what is decided, and begin the next audit of each lane that has not had its rounds."""
        for lane in self._lanes:
            audit = self._under_way.get(lane)
            if audit is not None and self._client.decided(audit):
                self.decided.append((lane, self._under_way.pop(lane)))
            if lane not in self._under_way and self._begun[lane] < rounds:
                self._begun[lane] += 1
                self._under_way[lane] = self._client.submit(lane.benchmark, lane.endpoint)

    def _rest(self, outcome: Outcome, calm_reports: dict[str, str]) -> Outcome:
        for point in CRASH_POINTS:
            self.cluster.control.withdraw(f"crash-{point.name}")
        settings = self.cluster.settings
        stores = Stores(self.cluster.home, settings.broker_url, settings.ledger_url)
        # A router that died may leave credits, which end like leases, and a message that no worker had.
        for at_rest in (lambda: not stores.waiting(), lambda: not stores.held()):
            self.cluster.tend_until(at_rest, timeout_s=10 * settings.timing.visibility_timeout_s)
        outcome.findings = checker.check(stores, calm_reports, fatal=POISON)
        for role in self.cluster.overstayed:
            outcome.findings.broken(5, role, "was asked to leave, and did not within its grace")
        outcome.events, outcome.restarts = self.cluster.control.events(), self._client.restarts
        outcome.deaths = self.cluster.deaths
        for lane, audit in self.decided:
            digest = hashlib.sha256(report_bytes(self.cluster.home, audit)).hexdigest()
            outcome.reports.setdefault(f"chaos-{lane.benchmark.name}", digest)
        self._client.close()
        return outcome


def run_lanes(
    home: Path,
    of: Sequence[Lane],
    extent: Extent,
    faults: Iterable[Fault] = (),
    *,
    roles: Sequence[Role] = ROLES,
    timing: Timing = QUICK,
    calm_reports: dict[str, str] | None = None,
    plant: str = "",
) -> Outcome:
    """A run in a folder of its own. Without `calm_reports` its reports are compared with nothing."""
    triton = any(lane.endpoint == "triton" for lane in of)
    with Cluster(home, roles, timing=timing, model_server=True, triton=triton, plant=plant) as cluster:
        return Run(cluster, of).drive(extent, iter(faults), calm_reports or {})


def main() -> None:
    """A calm run, then a long one with faults; prints the table, and fails where an invariant does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--faults", type=int, default=1650)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="the run ends after so long, whatever it has reached"
    )
    parser.add_argument("--every", type=float, default=0.7, metavar="SECONDS", help="between two faults")
    parser.add_argument("--items", type=int, default=2500, help="of a large audit; each is asked in four wordings")
    parser.add_argument("--lanes", type=int, default=3, help="large audits at a time")
    parser.add_argument("--small", type=int, default=2, help="small ones, beside one over HTTP and the poisoned one")
    parser.add_argument("--calm-seconds", type=float, default=30.0, help="of the run to compare with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help="folder for logs and stores; a temporary one that stays, by default")
    arguments = parser.parse_args()
    home = arguments.home or Path(tempfile.mkdtemp(prefix="proctor-chaos-"))
    triton = obstacle() is None
    of = lanes(arguments.items, count=arguments.lanes, small=arguments.small, triton=triton)
    print(f"everything is kept in {home}", flush=True)
    calm = run_lanes(home / "calm", of, Extent(limit_s=arguments.calm_seconds))
    calm.findings.raise_if_broken()
    extent = Extent(arguments.trials, arguments.faults, limit_s=60 * arguments.minutes, every_s=arguments.every)
    faults = schedule(ROLES, arguments.seed, triton=triton)
    chaos = run_lanes(home / "chaos", of, extent, faults, calm_reports=calm.reports)
    print(table(calm, chaos))
    sys.exit(1 if chaos.findings.violations else 0)


def table(calm: Outcome, chaos: Outcome) -> str:
    """The figures of a run, one a line, as Markdown."""
    found, recovery, crashed = chaos.findings, figures.recovery(chaos.events), figures.crashes(chaos.events)
    fewest = min((crashed.get(point.name, 0), point.name) for point in CRASH_POINTS)
    rows = [
        ("trials (audits)", f"{found.trials:,} ({found.audits:,})"),
        ("faults", f"{chaos.faults.total():,} of {len(chaos.faults)} kinds, {chaos.deaths:,} workers died"),
        ("lost", f"{found.lost}"),
        ("counted twice", f"{found.counted_twice}"),
        ("decisions an audit", ", ".join(f"{n} in {times}" for n, times in sorted(found.decisions.items()))),
        (
            "reports equal to the calm run's",
            f"{found.reports_compared - found.reports_that_differ} of {found.reports_compared}",
        ),
        ("dead-lettered trials (a poisoned prompt)", f"{found.dead_lettered:,}"),
        ("duplicates suppressed", f"{figures.duplicates_suppressed(chaos.events):,}"),
        (
            f"recovery of a shard (lease {QUICK.lease_s:g} s)",
            f"p50 {recovery.p50_s:.1f} s, p99 {recovery.p99_s:.1f} s, longest {recovery.longest_s:.1f} s "
            f"({recovery.shards} shards)",
        ),
        (
            "throughput under chaos / calm",
            f"{chaos.rate:,.0f} / {calm.rate:,.0f} trials/s = {chaos.rate / calm.rate:.2f}",
        ),
        ("crash points", f"{len(crashed)} of {len(CRASH_POINTS)}, the rarest {fewest[0]} times ({fewest[1]})"),
        (
            "attempts lost; shards handed back; outages",
            f"{figures.lost_attempts(chaos.events):,}; {figures.handed_back(chaos.events):,}; "
            f"{figures.outages(chaos.events):,}",
        ),
        ("messages of a worker whose clock was ahead", f"{found.postdated}"),
        ("shards of training data searched", f"{found.searched:,}"),
        ("looks at sequential audits, and audits that stopped at one", f"{found.looks:,}, {found.stopped:,}"),
        ("shards graded ahead", f"{found.graded_ahead:,} of {found.shards:,}"),
        ("audits that failed and were started again", f"{len(chaos.restarts)}"),
        ("violations", f"{len(found.violations)}"),
    ]
    lines = ["| figure | seen |", "|---|---|", *(f"| {name} | {seen} |" for name, seen in rows), ""]
    lines += [f"- {name}: {times}" for name, times in sorted(chaos.faults.items())]
    lines += [f"VIOLATION {text}" for text in found.violations[:50]]
    lines += [f"started again: {text[:300]}" for text in chaos.restarts[:20]]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
