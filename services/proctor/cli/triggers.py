"""`proctor triggers`: check a trigger file, and say what a version would be audited by."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option
from proctor.cli.terminal import print_json


@click.group()
def triggers() -> None:
    """Check which suites are run on what is registered."""


@triggers.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", "name", help="Say which suites a version of this registered model would be audited by.")
@click.option("--version", "number", default="1", show_default=True, help="The version, with --model.")
@click.option("--tag", "tags", multiple=True, metavar="KEY=VALUE", help="A tag of it, with --model; may be repeated.")
@click.option(
    "--registry",
    type=click.Choice(["mlflow", "huggingface"]),
    default="mlflow",
    show_default=True,
    help="Its registry.",
)
@format_option
@click.pass_context
def validate(
    context: click.Context,
    file: Path,
    name: str | None,
    number: str,
    tags: tuple[str, ...],
    registry: str,
    output: str,
) -> None:
    """Check FILE and its suites, and say what they are.

    Of a file that cannot be used it prints every problem at once, those of its suites too, each with its path and the
    mend, and exits with 2.

    \b
    Example:
      {"since": "2026-11-01T00:00:00Z",
       "rules": [{"name": "facts", "models": ["acme~*"], "tags": {"stage": "candidate"}, "suites": ["facts.json"],
                  "model": {"endpoint": "grpc://triton:8001", "served_name": "{name}-v{version}"}}]}
    """
    from proctor.domain.errors import BadInputError
    from proctor.domain.problems import SuiteProblems, visible
    from proctor.domain.registered_version import RegisteredVersion, RegistryKind
    from proctor.domain.triggers import filled
    from proctor.formats.triggers import load_triggers
    from proctor.runtime.settings import Settings

    settings = Settings.from_environment()
    try:
        loaded = load_triggers(file, settings.bundle, settings.benchmarks)
    except SuiteProblems as problems:
        for line in problems.lines():
            click.echo(line, err=True)
        count = len(problems.problems)
        click.echo(f"{count} problem{'s' if count != 1 else ''}.", err=True)
        context.exit(problems.exit_code)
    found = loaded.suites
    models: dict[str, str] = {}
    if name is not None:
        pairs = [tag.partition("=") for tag in tags]
        version = RegisteredVersion(
            registry=RegistryKind(registry),
            name=name,
            version=number,
            tags={key: value for key, _, value in pairs},
        )
        found = loaded.of(version)
        for one in found:
            try:
                model = filled(one, version).model
            except BadInputError as error:
                models[one.path] = f"refused: {error}"
            else:
                models[one.path] = f"{model.model_id} {model.model_version} at {model.endpoint}"
    if output == "json":
        rows = [
            {
                "rule": one.rule.name,
                "suite": one.suite.audit_suite_id,
                "path": one.path,
                "digest": one.digest,
                **({"model": models[one.path]} if one.path in models else {}),
            }
            for one in found
        ]
        print_json({"valid": True, "since": loaded.since.isoformat(), "alias": loaded.alias, "suites": rows})
        return
    click.echo(f"{visible(str(file))}: valid, since {loaded.since.isoformat()}")
    for one in found:
        click.echo(f"  {visible(one.rule.name)}: {one.suite.audit_suite_id} ({visible(one.path)})")
        if one.path in models:
            click.echo(f"    {visible(models[one.path])}")
    if name is not None and not found:
        click.echo(f"  no rule is of {visible(name)}")
