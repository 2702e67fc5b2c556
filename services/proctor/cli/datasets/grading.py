"""`proctor dataset grade`: answers graded one by one."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("items", type=_FILE)
@click.option("--answers", required=True, type=_FILE, help="Rows with item_id and answer (JSONL, CSV or Parquet).")
@click.option("--extractor", help="How answers are read. [default: as the items say]")
@format_option
def grade(items: Path, answers: Path, extractor: str | None, output: str) -> None:
    """Grade answers to a dataset of one's own, and say of each dimension how much was right.

    Graded by what grades audits: a dimension's accuracy with its interval (Wilson, 95 %), and the mean share of tests
    passed or constraints kept. An item without an answer counts as not right. Code is run only where
    PROCTOR_CODE_EXECUTION=sandbox is set and bubblewrap works.

    \b
    Examples:
      proctor dataset grade reasoning.jsonl --answers answers.jsonl
      PROCTOR_CODE_EXECUTION=sandbox proctor dataset grade code.jsonl --answers answers.jsonl --format json

    JSON keys: extractor, dimensions[] (dimension, items, correct, invalid, unanswered, accuracy, low, high, pass_rate),
    answers[] (item_id, dimension, outcome, passed, total, detail).
    """
    from proctor.cli.terminal import print_json, say, table
    from proctor.runtime.settings import Settings
    from proctor.scorer.grading.programs import Programs
    from proctor.studies.datasets.answers import grade_answers, plain, read_answers, scores
    from proctor.studies.datasets.item_files import read_items, scoring_of

    asked = read_items(items)
    named = extractor or scoring_of(asked)
    allowed = Settings.from_environment().code_execution
    graded = grade_answers(asked, read_answers(answers, asked), named, Programs(lambda: allowed))
    found = scores(asked, graded)
    if output == "json":
        print_json({"extractor": named, **plain(graded, found)})
        return
    rows = [
        (
            one.dimension or "–",
            f"{one.correct:,}/{one.items:,}",
            f"{100 * one.accuracy:.1f} %",
            f"{100 * one.low:.1f}–{100 * one.high:.1f}",
            f"{100 * one.pass_rate:.1f} %",
            f"{one.invalid:,}",
            f"{one.unanswered:,}",
        )
        for one in found
    ]
    say(table(("dimension", "right", "accuracy", "95 %", "pass rate", "invalid", "unanswered"), rows))
    say(f"(answers read by {named}; pass rate: mean share of tests passed or constraints kept)")
    for one in [one for one in graded if one.detail][:10]:
        say(f"  {one.item_id}: {one.outcome.value}: {one.detail}")
