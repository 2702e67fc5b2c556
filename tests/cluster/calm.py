"""Audits that are disturbed in the tests, and what their reports are when nothing disturbs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.chaos.arithmetic import Benchmark
from tests.cluster.audits import Gateway
from tests.cluster.sums import NAME

#: Long enough that everything is replaced twice in the middle of it.
REPLACED: Final = Benchmark("replaced", items=1_000)
#: Audits that are under way side by side while faults are done.
SHAKEN: Final = tuple(Benchmark(f"shaken{number}", items=300 + 100 * number) for number in range(3))


class Calm(NamedTuple):
    """An audit that nothing disturbed."""

    suite: Path
    report_digest: str


def calm_runs(gateway: Gateway, benchmarks: Sequence[Benchmark], folder: Path) -> Mapping[str, Calm]:
    """Benchmark's name → its suite, and how it ends; all of them side by side."""
    suites = {benchmark.name: benchmark.write(folder / benchmark.name, NAME) for benchmark in benchmarks}
    begun = {name: gateway.submit(suite) for name, suite in suites.items()}
    ended = gateway.decided(begun.values(), within_s=300)
    return {
        name: Calm(suites[name], str(ended[audit_id]["decision"]["report_digest"])) for name, audit_id in begun.items()
    }
