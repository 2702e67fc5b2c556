#!/usr/bin/env python3
"""Time the making and admitting of variants: rules and gate, a library that knows them, the encoder.

Each rule strategy rewords every question and the gate screens what it made, over worker processes and without an
encoder; a second request for variants that the library holds is answered; and Proctor's encoder, in fp32 and in bf16
with its rechecks, takes turns with plain `SentenceTransformer.encode` on the same texts. All in one run.

  scripts/bench_perturbation.py
  scripts/bench_perturbation.py --questions gsm8k/test.jsonl --pairs gsm8k/rephrased.jsonl
  scripts/bench_perturbation.py --texts 0 --format json       # without the encoder, which needs torch
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarking.encoders import beside_plain, reworded
from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text, medians_s
from benchmarking.stories import made_up, read, read_pairs
from proctor.domain.item import Item, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import screen
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.engine import reword
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import make_chain
from proctor.perturbation.strategies.registry import rule_strategies
from proctor.runtime.garbage import prepare_for_many_objects
from proctor.runtime.records.store import Records

#: Where the speed is promised, and what is promised there.
PROCESSES, LEAST_RULES_PER_S, LEAST_WARM_PER_S = 2, 5_000, 50_000
#: A strategy's variants an item, as a suite asks for by default.
VARIANTS: Final = PerturbationSection().num_variants_per_item
_SHARD_ITEMS: Final = 64
_RULES: Final = rule_strategies()
#: A strategy that most items have a place for, and a window that admits whatever the gate passes on.
_WARM: Final = PerturbationSection(
    perturbation_strategy="distractor", min_semantic_distance=0.0, max_semantic_distance=2.0, min_yield=0.0
)


class Made(NamedTuple):
    """Rewordings that the rules made, and those of them that the gate passed on to the encoder."""

    made: int
    passed: int
    cpu_s: float
    """Processor time that it took: what other processes take of a shared machine is not in it."""


class OneDirection:
    """Stands in for an encoder where the library is measured: every text has the same vector, and is noted."""

    name, digest, fingerprint = "one direction", "none", "none"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text."""
        self.asked += texts
        return np.ones((len(texts), 1), dtype=np.float32)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    options = _parse(arguments)
    items = read(options.questions)[: options.items] if options.questions else made_up(options.items, options.seed)
    packages: list[str] = ["numpy", "pydantic"]
    figures: list[Figure] = []
    claims: list[Claim] = []
    # As the workers and the service do.
    prepare_for_many_objects()
    parts = [_rules(items, options.processes, options.rounds), _warm(items, options.rounds)]
    if options.texts:
        packages += ["torch", "sentence-transformers"]
        pairs = read_pairs(options.pairs) if options.pairs else reworded(items)
        parts.append(beside_plain(pairs[: max(1, options.texts // 2)], options.rounds))
    for part, promised in parts:
        figures += part
        claims += promised
    shown = as_json if options.format == "json" else as_text
    print(shown(machine(packages), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=Path, metavar="FILE", help="JSONL with question and answer [made-up ones]")
    parser.add_argument(
        "--pairs", type=Path, metavar="FILE", help="JSONL with original and rephrased, for the encoder [made by rules]"
    )
    parser.add_argument("--items", type=int, default=1_319, metavar="N", help="questions at most [1,319]")
    parser.add_argument("--processes", type=int, default=PROCESSES, metavar="N", help=f"workers [{PROCESSES}]")
    parser.add_argument("--texts", type=int, default=512, metavar="N", help="for the encoder; 0 leaves it out [512]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--seed", type=int, default=0, help="of made-up questions [0]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if min(options.items, options.processes, options.rounds) < 1 or options.texts < 0:
        parser.error("--items, --processes and --rounds need a number from 1 on, --texts one from 0 on")
    return options


def make(items: Sequence[Item], seed: int, strategies: Sequence[str] = tuple(_RULES)) -> Made:
    """Reword items by each of the strategies alone, and screen what they made, item by item."""
    chains = [make_chain(name, _RULES) for name in strategies]
    settings = PerturbationSection(perturbation_strategy=chains[0].name)
    made = passed = 0
    started_s = time.process_time()
    for item in items:
        for chain in chains:
            candidates = chain.candidates(item, seed=seed, limit=VARIANTS)
            made += len(candidates)
            passed += sum(not isinstance(screen(item, candidate, settings), Rejection) for candidate in candidates)
    return Made(made, passed, time.process_time() - started_s)


def _rules(items: Sequence[Item], processes: int, rounds: int) -> tuple[list[Figure], list[Claim]]:
    shards = [items[start : start + _SHARD_ITEMS] for start in range(0, len(items), _SHARD_ITEMS)]
    # A round's seed is its own, so that no round finds texts that an earlier one has read.
    seeds = itertools.count()
    counts: list[Made] = []
    # Started anew and not forked: a process in which torch has threads may not be.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=prepare_for_many_objects) as pool:

        def task() -> None:
            counts.append(_together(pool.map(make, shards, itertools.repeat(next(seeds)))))

        seconds = medians_s({"rules": task}, rounds=rounds)["rules"]
    # The first round does not count.
    made, passed, cpu_s = (statistics.median(column) for column in zip(*counts[1:], strict=True))
    where = f"{processes} processes, {len(_RULES)} strategies, {len(items):,} items"
    figures = [
        Figure("rule strategies and gate: rewordings made and screened", made / seconds, "/s", where),
        Figure("of which pass on to the encoder", passed / seconds, "/s", f"{passed:,.0f} of {made:,.0f}"),
        Figure("for each second of processor time", made / cpu_s, "/s", "a core that does nothing else"),
        *(Figure(f"{name} and gate, one process", *_alone(name, items, rounds)) for name in _RULES),
    ]
    promised = processes == PROCESSES
    claim = Claim("rule strategies and gate, variants/s on 2 cores", made / seconds, LEAST_RULES_PER_S, at_least=True)
    return figures, [claim] if promised else []


def _together(parts: Iterable[Made]) -> Made:
    made, passed, cpu_s = zip(*parts, strict=True)
    return Made(sum(made), sum(passed), sum(cpu_s))


def _alone(strategy: str, items: Sequence[Item], rounds: int) -> tuple[float, str, str]:
    """Rate of one strategy on a part of the items, its unit and a note."""
    few, seeds, counts = items[: 4 * _SHARD_ITEMS], itertools.count(), list[Made]()
    seconds = medians_s({"one": lambda: counts.append(make(few, next(seeds), [strategy]))}, rounds=rounds)["one"]
    made, passed, _ = counts[-1]
    return made / seconds, "/s", f"{passed:,} of {made:,} pass" if made else "no place in these items"


def _warm(items: Sequence[Item], rounds: int) -> tuple[list[Figure], list[Claim]]:
    with warm_library(items) as (ask, variants, embedded):
        seconds = medians_s({"warm": ask}, rounds=rounds)["warm"]
    rate = variants / seconds
    distinct = len(set(embedded))
    figures = [
        Figure("warm library: variants answered", rate, "/s", f"{variants:,} variants, SQLite, one process"),
        Figure("texts embedded, when they were made", len(embedded), "", f"{distinct:,} distinct ones; none when warm"),
    ]
    claims = [
        Claim("warm library, variants/s", rate, LEAST_WARM_PER_S, at_least=True),
        Claim("times that a text is embedded", len(embedded) / max(1, distinct), 1),
    ]
    return figures, claims


@contextmanager
def warm_library(items: Sequence[Item]) -> Iterator[tuple[Callable[[], int], int, list[str]]]:
    """A request that the library can answer whole, the number of its variants, and every text that was embedded."""
    chain, encoder = make_chain(_WARM.perturbation_strategy, _RULES), OneDirection()
    with tempfile.TemporaryDirectory() as folder:
        records = Records(f"sqlite:///{Path(folder) / 'records.db'}")
        library = VariantLibrary(records)

        def ask() -> int:
            results = reword(items, _WARM, chain=chain, encoder=encoder, library=library)
            return sum(len(result.outcome.variants) for result in results)

        try:
            yield ask, ask(), encoder.asked
        finally:
            records.close()


if __name__ == "__main__":
    sys.exit(main())
