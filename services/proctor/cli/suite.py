"""`proctor suite`: check a suite, print its fingerprint, its schema, or an example to start from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import print_json
from proctor.domain.benchmark_kind import BenchmarkKind
from proctor.domain.profiles import PROFILES, ProfileName

if TYPE_CHECKING:
    from proctor.domain.suite import Suite

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group()
def suite() -> None:
    """Check a suite, print its fingerprint or schema, or write an example."""


def _load(context: click.Context, file: Path) -> Suite:
    """Load a suite, or print every problem on a line of its own and leave."""
    from proctor.domain.problems import SuiteProblems
    from proctor.domain.suite_plugins import plugins_of
    from proctor.formats.suites import load_suite

    try:
        loaded = load_suite(file)
        if plugins_of(loaded):
            # Brings every room along, which most suites need not wait for.
            from proctor.studies.unusable_parts import hold_usable

            hold_usable(loaded, str(file))
    except SuiteProblems as problems:
        for line in problems.lines():
            click.echo(line, err=True)
        count = len(problems.problems)
        click.echo(f"{count} problem{'s' if count != 1 else ''}.", err=True)
        context.exit(problems.exit_code)
    return loaded


@suite.command()
@_FILE
@click.option("--defaults", "with_defaults", is_flag=True, help="Show as well the defaults of the fields left out.")
@format_option
@click.pass_context
def validate(context: click.Context, file: Path, with_defaults: bool, output: str) -> None:
    """Check FILE, and say what it is.

    Of a valid suite it names model, benchmark, rewordings and fingerprint, and notes what does nothing in this version,
    what the fingerprint still waits for, and what is published of the benchmark's exposure. JSON always holds the whole
    suite, and the defaults that FILE leaves out.

    Of another it prints every problem at once, each with its path, the offending value and the mend, and exits with 2.
    Whether an endpoint of the suite may be asked is the operator's word, and said when an audit is started.

    \b
    Example, with a budget that stops the audit, and items that only approved endpoints may see:
      {"audit_suite_id": "gsm8k-v1", "model_config": {...},
       "dataset_config": {"benchmark_name": "gsm8k", "path": "items.jsonl", "private": true},
       "budget_config": {"max_trials": 20000, "max_tokens": 5000000, "max_cost": 40}}
    """
    from proctor.cli.suite_answer import (
        card_known,
        defaults_left_out,
        described,
        less_than_expected,
        profile_described,
    )
    from proctor.domain.problems import quoted, visible
    from proctor.domain.risk_register import exposure_of_dataset, published
    from proctor.formats.suites import read_suite_file

    loaded = _load(context, file)
    defaults = defaults_left_out(loaded, read_suite_file(file))
    card = card_known(loaded, file.parent)
    exposure = exposure_of_dataset(loaded.dataset.benchmark_name, loaded.dataset.hub_id)
    notes = [*card.reasons, *less_than_expected(loaded)]
    if output == "json":
        document = {
            "valid": True,
            "audit_suite_id": loaded.audit_suite_id,
            "fingerprint": card.fingerprint,
            "notes": notes,
            "known_exposure": [one._asdict() for one in exposure],
            "defaults": defaults,
            "suite": loaded.plain(),
        }
        print_json(document)
        return
    click.echo(f"{visible(str(file))}: valid ({loaded.audit_suite_id})")
    parts = {
        **described(loaded),
        **profile_described(loaded, defaults),
        "fingerprint": card.fingerprint or "not known yet",
    }
    for label, words in parts.items():
        click.echo(f"  {label:<11}  {visible(words)}")
    for note in (*notes, *map(published, exposure)):
        click.echo(f"note: {visible(note)}")
    if not defaults:
        return
    if not with_defaults:
        click.echo("Fields that it leaves out have their defaults; --defaults shows them.")
        return
    click.echo("Defaults that the file leaves out:")
    for path, value in defaults.items():
        click.echo(f"  {path} = {'(not set)' if value is None else quoted(value)}")


@suite.command()
@_FILE
@format_option
@click.pass_context
def fingerprint(context: click.Context, file: Path, output: str) -> None:
    """Print the fingerprint of FILE's protocol card.

    The fingerprint stands alone on the first line. The card binds the content of the files that the suite names;
    warnings about what could not be bound go to standard error.
    """
    from proctor.cli.suite_answer import asked_or_why, card_warnings
    from proctor.domain.card import evaluator_version, protocol_card
    from proctor.domain.problems import visible
    from proctor.formats.suites import content_digests
    from proctor.runtime.settings import Settings

    loaded = _load(context, file)
    settings = Settings.from_environment()
    contents = content_digests(loaded, file.parent, settings.bundle, settings.benchmarks)
    asked, unknown = asked_or_why(loaded, settings)
    card = protocol_card(loaded, contents, evaluator_version=evaluator_version(), asked=asked)
    for warning in [*card_warnings(loaded, contents), *([unknown] if unknown is not None else [])]:
        click.echo(f"{visible(str(file))}: warning: {warning}", err=True)
    if output == "json":
        print_json({"fingerprint": card.fingerprint, "protocol_digest": card.protocol_digest})
    else:
        click.echo(card.fingerprint)
        click.echo(f"protocol_digest {card.protocol_digest}")


@suite.command()
def schema() -> None:
    """Print the JSON Schema of suites (draft 2020-12)."""
    from proctor.domain.suite_schema import suite_schema

    print_json(suite_schema())


@suite.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), default="suite.json")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option(
    "--profile",
    type=click.Choice(tuple(PROFILES)),
    default="standard",
    show_default=True,
    help="What stands for fields that are left out: for factual questions or reasoning, or where more rides on it. "
    "strict requires fresh items, which fresh_config names: without them it always ends in a review.",
)
@click.option(
    "--items",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="The benchmark's items, by whose form the suite is laid out; read with the columns that a suite has by "
    "default (question, choices, answer).",
)
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in BenchmarkKind if kind is not BenchmarkKind.OTHER]),
    help="What the items are, whatever their form tells: short facts that are answered by recall, letters of options, "
    "or answers that are worked out.",
)
def init(file: Path, force: bool, profile: ProfileName, items: Path | None, kind: str | None) -> None:
    """Write an example suite to start from.

    FILE is suite.json by default; - is standard output. The example is plain JSON that validates as it is; the
    explanations stand under "$comment" keys, which are ignored.

    An approval rests on other wordings of the questions. For a benchmark of short facts (open questions that are
    answered by recall) that is not enough: memory of such a fact answers every wording. With --items or --kind the
    suite requires the channels for what its items are: fresh items for facts, perturbation for letters and worked
    answers. Without either, require fresh or exposure for facts (scoring_config.required_channels), or --profile
    strict.

    \b
    Examples:
      proctor suite init suite.json --items items.jsonl
      proctor suite init suite.json --kind facts
    """
    from proctor.domain.benchmark_kind import ADVICE
    from proctor.domain.errors import BadInputError
    from proctor.domain.scope import REACHING_FURTHER
    from proctor.domain.suite_schema import example_suite
    from proctor.runtime.files import write_atomic

    if str(file) != "-" and file.exists() and not force:
        raise BadInputError(f"{file} exists already; give another name, or --force to overwrite it")
    of = BenchmarkKind(kind) if kind is not None else None if items is None else _kind_of(items)
    folder = Path() if str(file) == "-" else file.parent
    path = {} if items is None else {"items": os.path.relpath(items, folder)}
    text = json.dumps(example_suite(profile, of, **path), indent=2, ensure_ascii=False) + "\n"
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    try:
        write_atomic(file, text.encode(), private=False)
    except OSError as error:
        raise BadInputError(f"{file} cannot be written: {error.strerror}; give another path") from None
    click.echo(f"Wrote {file}; check it with `proctor suite validate {file}`.", err=True)
    if of is None:
        click.echo(f"For a benchmark of short facts that are answered by recall, {REACHING_FURTHER}.", err=True)
    else:
        click.echo(ADVICE[of], err=True)


def _kind_of(items: Path) -> BenchmarkKind:
    """The kind of a benchmark by the form of its items. Raises BadInputError where they cannot be read."""
    from proctor.domain.suite import DatasetSection
    from proctor.formats.items import load_items
    from proctor.studies.wording_reach import wording_reach

    section = DatasetSection(benchmark_name="my-benchmark", path=str(items.absolute()))
    kind = wording_reach(load_items(section, items.parent, items.parent).items).kind
    assert kind is not None
    return kind
