#!/usr/bin/env python3
"""Time Proctor's evidence beside the article's scorer, and `proctor compare` from start to answer.

A million items in ten variants are paired by id, tested, scored and given intervals by Proctor; the article's code
tests one item at a time, and so is timed on fewer items and counted up; scipy's t-test over all items at once is its
vectorised form. All take turns in one run. Past 20,000 informative items Proctor's exact tail is approximated: what
that costs in accuracy stands beside the figures.

  scripts/bench_evidence.py
  scripts/bench_evidence.py --items 100000 --rounds 3 --format json
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from benchmarking.article import compute_contamination_score
from benchmarking.machine import machine
from benchmarking.report import Claim, Figure, as_json, as_text, medians_s
from benchmarking.tails import TailError, tail_errors
from proctor.domain.estimate import Estimate
from proctor.evidence.answers import BoolArray, PairedAnswers
from proctor.evidence.intervals import contamination_score, mean_share, score_inflation, wilson
from proctor.evidence.perturbation.exchangeability import EXACT_LIMIT, TailResult, exchangeability_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.families import FAMILIES

VARIANTS: Final = 10
LEVEL: Final = 0.95
#: Where the speed is promised, and what is promised there.
ITEMS, LARGEST_S, LEAST_RATIO = 1_000_000, 0.2, 1_500.0
COMPARED_ITEMS, LARGEST_COMPARE_S = 200, 1.0


class Sample(NamedTuple):
    """Simulated answers, as arrays of a large audit hold them."""

    item_ids: tuple[str, ...]
    canonical: BoolArray
    reworded: BoolArray
    """Shape (items, variants)."""

    def first(self, items: int) -> Sample:
        """The first so many items."""
        return Sample(self.item_ids[:items], self.canonical[:items], self.reworded[:items])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 where a claim fails."""
    options = _parse(arguments)
    sample = draw(options.items, np.random.default_rng(options.seed))
    few = sample.first(options.loop_items)
    seconds = medians_s(
        {
            "proctor": lambda: weigh(sample),
            "pairing": lambda: pair(sample),
            "scipy": lambda: vectorised(sample),
            "article": lambda: loop(few),
        },
        rounds=options.rounds,
    )
    loop_rate = len(few.item_ids) / seconds["article"]
    article_s = options.items / loop_rate
    ratio = article_s / seconds["proctor"]
    compare_s = _compare_seconds(options.rounds)
    size = f"{options.items:,} items × {VARIANTS} variants"
    figures = [
        Figure(f"Proctor: {size} paired, tested, scored, with intervals", seconds["proctor"], "s"),
        Figure("of which pairing by id", seconds["pairing"], "s", "ids checked, patterns counted"),
        Figure("article's loop over items", article_s, "s", f"{loop_rate:,.0f} items/s, counted up"),
        Figure("scipy's ttest_1samp over all items at once", seconds["scipy"], "s", "the article's p-values alone"),
        Figure("article's loop / Proctor", ratio, "times"),
        Figure("scipy at once / Proctor", seconds["scipy"] / seconds["proctor"], "times"),
        Figure(f"proctor compare, 2 × {COMPARED_ITEMS} items", compare_s, "s", "process start and imports included"),
        *map(_tail_figure, tail_errors(FAMILIES["beta_1_1"], VARIANTS, (1_000, EXACT_LIMIT, ITEMS))),
    ]
    claims = [Claim(f"proctor compare on 2 × {COMPARED_ITEMS} items in under 1 s", compare_s, LARGEST_COMPARE_S)]
    # With fewer items nothing is promised, and a claim that holds would say nothing.
    if options.items == ITEMS:
        claims += [
            Claim(f"{size} in under {LARGEST_S} s", seconds["proctor"], LARGEST_S),
            Claim("times the article's loop on the same machine", ratio, LEAST_RATIO, at_least=True),
        ]
    shown = as_json if options.format == "json" else as_text
    print(shown(machine(("numpy", "scipy")), figures, claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _tail_figure(error: TailError) -> Figure:
    return Figure(
        f"approximated tail, {error.items:,} informative items: largest error for p from 0.5 to 1e-6",
        error.relative,
        "of p",
        error.exact,
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=ITEMS, metavar="N", help=f"[{ITEMS:,}, where speed is promised]")
    parser.add_argument("--loop-items", type=int, default=2_000, metavar="N", help="of the article's loop [2,000]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if min(options.items, options.loop_items, options.rounds) < 1:
        parser.error("--items, --loop-items and --rounds need a number from 1 on")
    return options


def draw(items: int, rng: np.random.Generator) -> Sample:
    """A clean model whose every answer is a coin of its own: hardly an item is alike in all wordings."""
    simulated = FAMILIES["beta_1_1"].draw(rng, audits=1, items=items, variants=VARIANTS)
    reworded = np.arange(VARIANTS) < simulated.right[0][:, None]
    return Sample(tuple(f"item-{place}" for place in range(items)), simulated.canonical[0], reworded)


def pair(sample: Sample) -> PairedAnswers:
    """Graded answers as the channel takes them, with their patterns counted."""
    right = np.count_nonzero(sample.reworded, axis=1)
    answers = PairedAnswers.of(sample.item_ids, sample.canonical, right, np.full(right.shape, VARIANTS))
    assert answers.patterns is not None
    return answers


def weigh(sample: Sample) -> tuple[TailResult, float, Estimate, Estimate, Estimate, Estimate]:
    """Both tests, D, the Contamination Score and both accuracies, each with its interval."""
    answers = pair(sample)
    patterns = answers.patterns
    return (
        exchangeability_test(answers),
        studentised_test(answers),
        score_inflation(answers, LEVEL),
        contamination_score(answers, LEVEL),
        wilson(int(np.count_nonzero(answers.canonical)), answers.n, LEVEL),
        mean_share(patterns.reworded_share, patterns.counts, LEVEL),
    )


def vectorised(sample: Sample) -> object:
    """The article's p-values by one call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return stats.ttest_1samp(sample.reworded.astype(float), sample.canonical.astype(float)[:, None], axis=1)


def loop(sample: Sample) -> list[object]:
    """The article's scorer, item by item."""
    with warnings.catch_warnings():
        # Answers that are all alike have no spread; the article's code divides by it.
        warnings.simplefilter("ignore", RuntimeWarning)
        return [
            compute_contamination_score(canonical, reworded)
            for canonical, reworded in zip(sample.canonical.tolist(), sample.reworded.tolist(), strict=True)
        ]


def _compare_seconds(rounds: int) -> float:
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / name for name in ("a.csv", "b.csv")]
        for log, accuracy in zip(logs, (0.7, 0.6), strict=True):
            write_log(log, rng.random(COMPARED_ITEMS) < accuracy)
        command = [sys.executable, "-m", "proctor", "compare", *map(str, logs), "--format", "json"]
        return medians_s({"compare": _runs(command)}, rounds=rounds)["compare"]


def _runs(command: Sequence[str]) -> Callable[[], object]:
    return lambda: subprocess.run(command, check=True, capture_output=True)


def write_log(path: Path, right: BoolArray) -> None:
    """A log of one run, with a question and a text for each item."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("id", "question", "text", "finish_reason", "correct"))
        for place, correct in enumerate(right.tolist()):
            text = f"Step by step, the answer to question {place} comes out. " * 10
            writer.writerow((place, f"What is the answer to question {place}?", text, "stop", correct))


if __name__ == "__main__":
    sys.exit(main())
