"""`proctor dataset`: benchmarks, public ones and one's own."""

from __future__ import annotations

import click

from proctor.cli.datasets.drawing import draw
from proctor.cli.datasets.grading import grade
from proctor.cli.datasets.making import new
from proctor.cli.datasets.rotating import rotate
from proctor.cli.options import format_option


@click.group()
def dataset() -> None:
    """Make an evaluation of one's own, grade it and rotate it; know a public one before it is used.

    \b
    Examples:
      proctor dataset new reasoning --out reasoning.jsonl --count 500 --held-out 1500
      proctor dataset draw reasoning.jsonl --model llama@7 --out asked.jsonl
      proctor dataset grade asked.jsonl --answers answers.jsonl
      proctor dataset rotate reasoning.jsonl
      proctor dataset risk gsm8k
    """


for command in (new, grade, draw, rotate):
    dataset.add_command(command)


@dataset.command()
@click.argument("name", required=False)
@format_option
def risk(name: str | None, output: str) -> None:
    """Say how much of a public benchmark is published to stand in training data; without NAME, of all.

    The figures are those of their sources, for the corpora that these looked at. Where a suite uses such a benchmark,
    `proctor suite validate`, `proctor audit plan` and the report show them; no decision rests on them. That nothing is
    known of a benchmark is no sign that it did not leak: `proctor exposure scan` searches the data that you have, and
    an audit asks the model.

    \b
    Example:
      proctor dataset risk
      proctor dataset risk openai/gsm8k --format json
    """
    from proctor.cli.terminal import print_json, say, table
    from proctor.domain.risk_register import REGISTER, known_exposure

    found = REGISTER if name is None else known_exposure(name)
    if output == "json":
        print_json([one._asdict() for one in found])
        return
    if not found:
        say(f"Nothing is known here of {name}. That is no sign that it did not leak; known are:")
        found = REGISTER
    headings = ("benchmark", "exposed", "scores", "looked for by")
    say(table(headings, [(one.benchmark, one.exposed, one.inflation, one.method) for one in found]))
    for source in dict.fromkeys(one.source for one in found):
        say(f"({', '.join(one.benchmark for one in found if one.source == source)}: {source})")
