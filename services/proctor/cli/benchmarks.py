"""`proctor benchmarks`: what the audits of many models say of a benchmark's items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.opened_records import opened_records
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table

if TYPE_CHECKING:
    from proctor.studies.item_health import BenchmarkHealth, ItemHealth


@click.group()
def benchmarks() -> None:
    """Say which items of a benchmark every model seems to know."""


@benchmarks.command("list")
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="Most benchmarks.")
@home_option
@format_option
def list_benchmarks(limit: int, home: Path, output: str) -> None:
    """List the benchmarks that were asked of late, by name and digest.

    JSON keys: benchmarks[] (name, digest, last).
    """
    from proctor.cli.audits.reaching import home_settings

    with opened_records(home_settings(home)) as records:
        found = records.measures.benchmarks(limit=limit)
    if output == "json":
        print_json({"benchmarks": [one._asdict() for one in found]})
    elif found:
        say(table(("benchmark", "digest", "last audit"), [(one.name, one.digest, one.last) for one in found]))
    else:
        say("No decided audit has figures on record.")


@benchmarks.command()
@click.argument("benchmark", metavar="NAME|DIGEST")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Items that are listed.")
@home_option
@format_option
def health(benchmark: str, limit: int, home: Path, output: str) -> None:
    """Say of each item of a benchmark how many models know it in its published wording and not in others.

    DIGEST is that of the benchmark's file, or the one that `proctor benchmarks list` prints; a NAME stands for one
    benchmark or is refused with the digests that it could mean. Counted are the audits on record whose evidence was
    valid, one of each model's name. Nothing is claimed of an item that fewer than 5 models were asked. The test, and
    what it cannot tell: docs/trends.md.

    \b
    Examples:
      proctor benchmarks health gsm8k
      proctor benchmarks health gsm8k --limit 1000 --format json

    JSON keys: benchmark_name, benchmark_digest, models, models_not_counted, weights, items, items_tested, items_known,
    enough, null_hypothesis, caution, listed[] (rank, item_id, models, canonical_right, reworded_right, reworded_total,
    score, p_value, q_value, known).
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.studies.item_health import BenchmarkHealths

    with opened_records(home_settings(home)) as records:
        healths = BenchmarkHealths(records)
        found = healths.read(healths.named(benchmark), limit=limit)
    if output == "json":
        print_json(found.plain())
    else:
        _print(found)


def _print(found: BenchmarkHealth) -> None:
    say(f"{found.benchmark_name} ({found.benchmark_digest})")
    older = f"; {found.models_not_counted} more were audited longer ago" if found.models_not_counted else ""
    say(f"{found.items:,} items, {found.models} models ({found.weights} weights were audited{older})")
    headings = ("rank", "item", "models", "published right", "reworded right", "score", "p", "q", "")
    say(table(headings, [_row(item) for item in found.listed]))
    if found.enough:
        say(f"{found.items_known} items seem to be known, of {found.items_tested} that were tested together.")
    else:
        say("Fewer than 5 models were audited: nothing is claimed of any item.")
    say(found.caution)


def _row(item: ItemHealth) -> tuple[str, ...]:
    return (
        str(item.rank),
        item.item_id,
        str(item.models),
        str(item.canonical_right),
        f"{item.reworded_right}/{item.reworded_total}",
        f"{item.score:+.2f}",
        "–" if item.p_value is None else f"{item.p_value:.2g}",
        "–" if item.q_value is None else f"{item.q_value:.2g}",
        "seems known" if item.known else "",
    )
