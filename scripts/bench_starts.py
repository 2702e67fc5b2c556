#!/usr/bin/env python3
"""Time what each worker takes from its start until it consumes: seconds, and seconds of a processor.

A pool that scales from nothing, a rollout and a pod that died wait for it. Beside Proctor's workers stands a worker of
Celery alone, by Celery's own command line: what nobody on Celery is below.

  scripts/bench_starts.py
  scripts/bench_starts.py --rounds 9 inference
  scripts/bench_starts.py --format json
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarking.machine import machine
from benchmarking.report import Figure, as_json, as_text
from benchmarking.servers import environment, peak_bytes, processor_s, python, valkey
from proctor.domain.errors import StackError
from proctor.domain.messages import SERVICES

_CELERY: Final = "celery alone"
_START_S: Final = 120.0
#: Between two looks whether it consumes: what a figure may be too large by.
_LOOK_S: Final = 0.005


class Start(NamedTuple):
    """One start of a worker."""

    seconds: float
    processor_s: float
    peak_bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-starts-") as name, valkey(Path(name)) as url:
        folder = Path(name)
        starts: dict[str, Callable[[], Start]] = {_CELERY: lambda: _celery(folder, url)}
        starts |= {service: _worker(folder / service, url, service) for service in options.services}
        found = _rounds(starts, options.rounds)
    figures = [_figure(name, seen) for name, seen in found.items()]
    print(
        (as_json if options.format == "json" else as_text)(machine(["celery", "pydantic", "sqlalchemy"]), figures, [])
    )
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("services", nargs="*", help=f"workers: {', '.join(SERVICES)} [all]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="starts of each that count [5]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if unknown := [service for service in options.services if service not in SERVICES]:
        parser.error(f"no such worker: {', '.join(unknown)}; there are {', '.join(SERVICES)}")
    if options.rounds < 1:
        parser.error("--rounds needs a number of starts, 1 or more")
    options.services = options.services or list(SERVICES)
    return options


def _rounds(starts: Mapping[str, Callable[[], Start]], rounds: int) -> dict[str, list[Start]]:
    """In turns, after a round that does not count: it writes bytecode, and makes the record store's tables."""
    found: dict[str, list[Start]] = {name: [] for name in starts}
    for turn in range(rounds + 1):
        for name, start in starts.items():
            seen = start()
            if turn:
                found[name].append(seen)
            if sys.stderr.isatty():
                print(f"\r{turn}/{rounds} {name:<20}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return found


def _figure(name: str, starts: Sequence[Start]) -> Figure:
    seconds, processor, peak = (statistics.median(column) for column in zip(*starts, strict=True))
    return Figure(name, processor, "s of a processor", f"{seconds:.2f} s, {peak / 2**20:.0f} MiB")


def _worker(home: Path, url: str, service: str) -> Callable[[], Start]:
    home.mkdir()
    ready = home / "run" / f"worker-{service}.ready"
    variables = {"PROCTOR_HOME": str(home), "PROCTOR_BROKER_URL": f"{url}/0", "PROCTOR_LEDGER_URL": f"{url}/1"}
    return lambda: _start(python("proctor", "worker", service), home.with_suffix(".log"), variables, ready.exists)


def _celery(folder: Path, url: str) -> Start:
    log = folder / "celery.log"
    argv = python("celery", "--broker", f"{url}/5", "worker", "--pool=solo", "--loglevel=INFO")
    argv += ["--without-gossip", "--without-mingle"]
    return _start(argv, log, {}, lambda: " ready." in log.read_text("utf-8", "replace"))


def _start(argv: Sequence[str], log: Path, variables: Mapping[str, str], consumes: Callable[[], bool]) -> Start:
    """Start a process, wait until it consumes, and have it leave.

    Raises:
        StackError: it ended, or took too long.
    """
    with log.open("wb") as stream:
        began_s = time.monotonic()
        child = subprocess.Popen(argv, env=environment(variables), stdout=stream, stderr=subprocess.STDOUT)
        try:
            while not consumes():
                if child.poll() is not None or time.monotonic() - began_s > _START_S:
                    raise StackError(f"{log.stem} did not start: {log.read_text('utf-8', 'replace')[-2_000:]}")
                time.sleep(_LOOK_S)
            return Start(time.monotonic() - began_s, processor_s(child.pid), peak_bytes(child.pid))
        finally:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=30)
            child.kill()
            child.wait()


if __name__ == "__main__":
    sys.exit(main())
