"""`proctor compare`: two logs, one paired verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.logs.log_command import LogCommand
from proctor.cli.options import format_option

if TYPE_CHECKING:
    from proctor.evidence.paired.results import Comparison, ExtractorComparison

_LOG = click.Path(path_type=Path, dir_okay=False)
#: Enough to see what is missing; JSON has all of them.
_SHOWN_EXCLUDED = 10
_RIGHT = ("A right", "B right", "only A", "only B")
_HEADINGS = ("extractor", "items", *_RIGHT, "A − B in points", "p", "mde", "verdict")


@click.command(cls=LogCommand)
@click.argument("a", metavar="A", type=_LOG)
@click.argument("b", metavar="B", type=_LOG)
@click.option(
    "--filter",
    "filter_name",
    metavar="NAME",
    help="The logs' own filter whose figures come first. [default: the first that A names and B has]",
)
@click.option(
    "--extractor",
    metavar="NAME",
    help="Put first what this extractor of Proctor's makes of the same texts: numeric or exact.",
)
@click.option(
    "--tolerance",
    "tolerance_points",
    metavar="POINTS",
    type=float,
    help="Also test whether the runs are equivalent within this many percentage points.",
)
@click.option(
    "--across-protocols",
    is_flag=True,
    help="Compare runs that were made under different protocols as well, and say what differs.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap interval.")
@format_option
def compare(
    a: Path,
    b: Path,
    filter_name: str | None,
    extractor: str | None,
    tolerance_points: float | None,
    across_protocols: bool,
    seed: int,
    output: str,
) -> None:
    """Compare the runs in logs A and B on the items that both answered.

    A log is eval_trust JSON, lm-evaluation-harness --log_samples JSONL, Inspect's .eval or .json, lighteval's details
    (Parquet), the JSON report of a Proctor audit, or CSV with the columns id and correct (question, expected, answer,
    text, finish_reason, tokens and error where known); which one is seen from its content. Items are paired by id, and
    by the question's digest where both logs have it. Error rows are left out and listed.

    delta is A's accuracy minus B's; p is McNemar's exact test, mde the smallest difference that this many items show
    with 80 % power. Where one run was cut at a token limit more often, the comparison is invalid.

    Where the logs have several filters, scorers or metrics, each is compared. Where they have texts and expected
    answers, the texts are graded again by the extractors proctor:numeric and proctor:exact as far as they apply. The
    conclusion says whether the extractors agree; one that finds an answer in less than half of a run's texts has no
    vote in that.

    Runs of different protocols are refused: where both logs record a setting (token limit, template, examples,
    extractor, harness, engine, seed, …) and it is not the same, a difference may be the setting's. --across-protocols
    compares them all the same. What a log does not record is unknown, listed, and refuses nothing. The
    results_TIME.json beside lm-evaluation-harness' samples_TASK_TIME.jsonl is read, too.

    \b
    Example:
      proctor compare new.jsonl old.jsonl --tolerance 3
      proctor compare new.jsonl old.eval --extractor numeric --across-protocols
    """
    from proctor.cli.terminal import print_json
    from proctor.studies.comparison import as_json, compare_logs

    comparison = compare_logs(
        a,
        b,
        filter_name=filter_name,
        extractor=extractor,
        tolerance_points=tolerance_points,
        seed=seed,
        across_protocols=across_protocols,
    )
    if output == "json":
        print_json(as_json(comparison))
    else:
        _print(comparison)


def _print(comparison: Comparison) -> None:
    from proctor.cli.logs.protocols import print_protocols
    from proctor.cli.terminal import say, table

    for name, log, read_as in (("A", comparison.a, comparison.format_a), ("B", comparison.b, comparison.format_b)):
        say(f"{name}: {log} ({read_as})")
    say("")
    say(table(_HEADINGS, [_row(one) for one in comparison.extractors]))
    say("(in brackets: 95 % intervals; p: McNemar's exact test; mde: found with 80 % power, in points)")
    excluded = comparison.primary.excluded
    if excluded:
        say(f"\nNot compared: {len(excluded):,}")
        for item in excluded[:_SHOWN_EXCLUDED]:
            say(f"  {' '.join(f'{item.id}: {item.reason}'.split())}")
        if len(excluded) > _SHOWN_EXCLUDED:
            say(f"  and {len(excluded) - _SHOWN_EXCLUDED:,} more; --format json lists them all")
    if comparison.only_in_one:
        say(f"\nIn one log alone, and not compared: {', '.join(comparison.only_in_one)}")
    print_protocols(comparison.protocol)
    say(f"\n{comparison.conclusion}")


def _row(one: ExtractorComparison) -> tuple[object, ...]:
    delta = (one.delta.value, one.delta.low, one.delta.high)
    # Defined wherever an item was compared, and without one there is no comparison.
    value, low, high = (100 * (bound or 0.0) for bound in delta)
    return (
        one.extractor,
        f"{one.n:,}",
        f"{one.n_a_correct:,} ({100 * one.n_a_correct / one.n:.1f} %)",
        f"{one.n_b_correct:,} ({100 * one.n_b_correct / one.n:.1f} %)",
        one.only_a,
        one.only_b,
        f"{value:+.1f} [{low:.1f}, {high:.1f}]",
        f"{one.p_value:.4f}" if one.p_value >= 0.0001 else "< 0.0001",
        "–" if one.mde is None else f"{100 * one.mde:.1f}",
        one.verdict.value if one.votes else "no vote",
    )
