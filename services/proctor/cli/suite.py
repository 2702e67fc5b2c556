"""`proctor suite`: check a suite, print its fingerprint, its schema, or an example to start from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import print_json

if TYPE_CHECKING:
    from proctor.domain.card import ContentDigests
    from proctor.domain.suite import DatasetSection, Suite

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
_SHA256_CHARACTERS = len("sha256:") + 64


@click.group()
def suite() -> None:
    """Check a suite, print its fingerprint or schema, or write an example."""


def _load(context: click.Context, file: Path) -> Suite:
    """Load a suite, or print every problem on a line of its own and leave."""
    from proctor.domain.problems import SuiteProblems
    from proctor.formats.suites import load_suite

    try:
        return load_suite(file)
    except SuiteProblems as problems:
        for line in problems.lines():
            click.echo(line, err=True)
        count = len(problems.problems)
        click.echo(f"{count} problem{'s' if count != 1 else ''}.", err=True)
        context.exit(problems.exit_code)


@suite.command()
@_FILE
@format_option
@click.pass_context
def validate(context: click.Context, file: Path, output: str) -> None:
    """Check FILE, and show the defaults that it takes.

    Prints every problem at once, each with its path, the offending value and the mend, and exits with 2. Whether an
    endpoint of the suite may be asked is the operator's word, and said when an audit is started.

    \b
    Example, with a budget that stops the audit, and items that only approved endpoints may see:
      {"audit_suite_id": "gsm8k-v1", "model_config": {...},
       "dataset_config": {"benchmark_name": "gsm8k", "path": "items.jsonl", "private": true},
       "budget_config": {"max_trials": 20000, "max_tokens": 5000000, "max_cost": 40}}
    """
    from proctor.domain.problems import quoted, visible
    from proctor.formats.suites import read_suite_file

    loaded = _load(context, file)
    defaults = defaults_left_out(loaded, read_suite_file(file))
    if output == "json":
        document = {
            "valid": True,
            "audit_suite_id": loaded.audit_suite_id,
            "defaults": defaults,
            "suite": loaded.plain(),
        }
        print_json(document)
        return
    click.echo(f"{visible(str(file))}: valid ({loaded.audit_suite_id})")
    if defaults:
        click.echo("Defaults that the file leaves out:")
        for path, value in defaults.items():
            click.echo(f"  {path} = {'(not set)' if value is None else quoted(value)}")


def defaults_left_out(loaded: Suite, written: bytes) -> dict[str, Any]:
    """The fields that a suite does not set itself, by path, with the defaults that stand for them."""
    from proctor.domain.strict_json import read_document

    return dict(_left_out(loaded.plain(), read_document(written).tree, ""))


def _left_out(plain: Mapping[str, Any], tree: Mapping[str, Any], section: str) -> Iterator[tuple[str, Any]]:
    for name, value in plain.items():
        if isinstance(value, dict):
            yield from _left_out(value, tree.get(name, {}), f"{section}{name}.")
        elif name not in tree:
            yield section + name, value


@suite.command()
@_FILE
@format_option
@click.pass_context
def fingerprint(context: click.Context, file: Path, output: str) -> None:
    """Print the fingerprint of FILE's protocol card.

    The fingerprint stands alone on the first line. The card binds the content of the files that the suite names;
    warnings about what could not be bound go to standard error.
    """
    from proctor.domain.card import protocol_card
    from proctor.domain.problems import visible
    from proctor.formats.suites import content_digests
    from proctor.router.audit import evaluator_version
    from proctor.runtime.settings import Settings

    loaded = _load(context, file)
    settings = Settings.from_environment()
    contents = content_digests(loaded, file.parent, settings.bundle, settings.benchmarks)
    card = protocol_card(loaded, contents, evaluator_version=evaluator_version())
    for warning in card_warnings(loaded, contents):
        click.echo(f"{visible(str(file))}: warning: {warning}", err=True)
    if output == "json":
        print_json({"fingerprint": card.fingerprint, "protocol_digest": card.protocol_digest})
    else:
        click.echo(card.fingerprint)
        click.echo(f"protocol_digest {card.protocol_digest}")


def card_warnings(loaded: Suite, contents: ContentDigests) -> list[str]:
    """What the card of a suite does not bind by content, and why."""
    from proctor.domain.problems import quoted
    from proctor.formats.suites import calibration_path

    warnings = []
    dataset, rewordings = loaded.dataset, loaded.perturbation.rewordings_path
    if len(loaded.model.model_version) < _SHA256_CHARACTERS:
        warnings.append(
            f"model_config.model_version {quoted(loaded.model.model_version)} is abbreviated; the audit resolves it to "
            "the full digest, and its fingerprint differs from this one"
        )
    if contents.dataset is None and dataset.hub_id is None:
        cause = f"dataset_config.path {quoted(dataset.path)} cannot be read" if dataset.path else _no_items(dataset)
        warnings.append(f"{cause}, so the card holds no digest of the items")
    if rewordings is not None and contents.rewordings is None:
        warnings.append(
            f"perturbation_config.rewordings_path {quoted(rewordings)} cannot be read, so the card has no digest of it"
        )
    calibration = calibration_path(loaded)
    if calibration is not None and contents.calibration is None:
        warnings.append(
            f"perturbation_config.calibration_path {quoted(calibration)} cannot be read, so the card has no digest of "
            "it"
        )
    return warnings


def _no_items(dataset: DatasetSection) -> str:
    from proctor.formats.benchmark_files import PACKAGED_BENCHMARK

    if dataset.benchmark_name == PACKAGED_BENCHMARK:
        return f"the files of {PACKAGED_BENCHMARK} are not in the bundle"
    return "dataset_config has neither path nor hub_id, and no file of that name is among the operator's benchmarks"


@suite.command()
def schema() -> None:
    """Print the JSON Schema of suites (draft 2020-12)."""
    from proctor.domain.suite_schema import suite_schema

    print_json(suite_schema())


@suite.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), default="suite.json")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
def init(file: Path, force: bool) -> None:
    """Write an example suite to start from.

    FILE is suite.json by default; - is standard output. The example is plain JSON that validates as it is; the
    explanations stand under "$comment" keys, which are ignored.
    """
    from proctor.domain.errors import BadInputError
    from proctor.domain.suite_schema import example_suite
    from proctor.runtime.files import write_atomic

    text = json.dumps(example_suite(), indent=2, ensure_ascii=False) + "\n"
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    if file.exists() and not force:
        raise BadInputError(f"{file} exists already; give another name, or --force to overwrite it")
    try:
        write_atomic(file, text.encode(), private=False)
    except OSError as error:
        raise BadInputError(f"{file} cannot be written: {error.strerror}; give another path") from None
    click.echo(f"Wrote {file}; check it with `proctor suite validate {file}`.", err=True)
