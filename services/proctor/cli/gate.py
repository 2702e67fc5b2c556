"""`proctor gate check`: whether a version in the model registry may be promoted."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import clean, print_json, say
from proctor.domain.errors import BadInputError, ExitCode

if TYPE_CHECKING:
    from proctor.domain.decision import DecisionOutcome
    from proctor.registry.promotion import GateCheck, HeldVersion, OnRecord
    from proctor.runtime.settings import Settings

_REFERENCE: Final = re.compile(r"(?:models:/)?(?P<model>[^@]+?)(?:@(?P<alias>[^@/]+)|/(?P<version>[0-9]+))")


@click.group()
def gate() -> None:
    """Say whether a registered version may be promoted."""


@gate.command()
@click.argument("reference", metavar="NAME@ALIAS|NAME/VERSION")
@click.option(
    "--registry",
    envvar="PROCTOR_REGISTRY_URI",
    help="The registry, e.g. an MLflow server's URL; by default that of the stack of --home. "
    "[env: PROCTOR_REGISTRY_URI]",
)
@home_option
@format_option
def check(reference: str, registry: str | None, home: Path, output: str) -> ExitCode:
    """Hold what the registry says of a model version against the record, before it is promoted.

    NAME is the registered model's name, or the model id. The version's tags prove nothing by themselves, because anyone
    who may write to the registry can set them: the decision must be on record for these weights, this version and this
    suite, and the report's document is digested again. The record is the one of --home, or of PROCTOR_RECORDS_URL and
    PROCTOR_ARTIFACTS.

    Exit code 0 where the version is approved, 3 where it waits for an audit or a review, 4 where it is blocked, and 1
    where the registry's word is not proven.

    \b
    Examples:
      proctor gate check my-model@champion
      proctor gate check models:/my-model/7 --format json || exit 1

    JSON keys: name, version, audit_id, outcome (null where nothing is proven), scope, caveat, reasons[].
    """
    from proctor.cli.audits.reaching import home_settings

    wanted = _wanted(reference)
    settings = home_settings(home)
    found = _checked(wanted, registry or _registry_of(settings), settings)
    if output == "json":
        print_json(found.plain())
    else:
        _print(found)
    return _exit_code(found.outcome)


class _Wanted(NamedTuple):
    model: str
    alias: str | None
    version: str | None


def _wanted(reference: str) -> _Wanted:
    match = _REFERENCE.fullmatch(reference)
    if match is None:
        raise BadInputError(
            f"{clean(reference[:200])!r} names no version: give NAME@ALIAS or NAME/VERSION, e.g. my-model@champion"
        )
    return _Wanted(match["model"], match["alias"], match["version"])


def _registry_of(settings: Settings) -> str:
    if settings.registry_uri is None:
        raise BadInputError(
            "no registry is known here: name it with --registry or PROCTOR_REGISTRY_URI, or start the stack of this "
            "home with `proctor up`"
        )
    return settings.registry_uri


def _checked(wanted: _Wanted, uri: str, settings: Settings) -> GateCheck:
    from proctor.registry.model_registry import ReadableRegistry, open_registry
    from proctor.registry.promotion import check as hold_against

    with closing(open_registry(uri)) as registry:
        if not isinstance(registry, ReadableRegistry):
            raise BadInputError(
                "this registry cannot say what it holds; have its plug-in keep the contract of "
                "proctor.registry.model_registry.ReadableRegistry"
            )
        held = registry.held(wanted.model, version=wanted.version, alias=wanted.alias)
    return hold_against(held, _on_record(held, settings))


def _on_record(held: HeldVersion, settings: Settings) -> OnRecord:
    from proctor.domain.errors import StoreError
    from proctor.registry.promotion import OnRecord
    from proctor.runtime.artifacts.opening import open_artifacts
    from proctor.runtime.records.decisions import decision_of
    from proctor.runtime.records.store import Records

    if held.audit_id is None:
        return OnRecord(None, None, None)
    with closing(Records(settings.records_url, migrate=False)) as records:
        plain = records.decision(held.audit_id)
        registered = records.registration(held.audit_id)
    if plain is None:
        return OnRecord(None, registered, None)
    event = decision_of(held.audit_id, plain)
    try:
        document = open_artifacts(settings).get(event.report_digest)
    except StoreError:
        document = None
    return OnRecord(event, registered, document)


def _print(found: GateCheck) -> None:
    words = "not proven" if found.outcome is None else found.outcome.value
    click.secho(f"{clean(found.name)} version {clean(found.version)}: {words}", bold=True)
    if found.caveat is not None:
        say(f"  {found.caveat}")
    for reason in found.reasons:
        say(f"  - {reason.text}")
    if found.audit_id is not None:
        say(f"  audit: {found.audit_id}")


def _exit_code(outcome: DecisionOutcome | None) -> ExitCode:
    from proctor.domain.decision import DecisionOutcome

    if outcome is None:
        return ExitCode.FAILURE
    codes = {
        DecisionOutcome.APPROVE: ExitCode.APPROVED_OR_DONE,
        DecisionOutcome.REVIEW: ExitCode.REVIEW,
        DecisionOutcome.BLOCK: ExitCode.BLOCKED,
    }
    return codes[outcome]
