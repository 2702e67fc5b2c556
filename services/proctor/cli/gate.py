"""`proctor gate check`: whether a version in the model registry may be promoted."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option, home_option, registry_option
from proctor.cli.references import Reference, registry_of
from proctor.cli.terminal import clean, print_json, say
from proctor.domain.errors import BadInputError, ExitCode

if TYPE_CHECKING:
    from proctor.domain.decision import DecisionOutcome
    from proctor.domain.registered_version import RegistryKind
    from proctor.registry.promotion import GateCheck, HeldVersion, OnRecord
    from proctor.runtime.settings import Settings


@click.group()
def gate() -> None:
    """Say whether a registered version may be promoted."""


@gate.command()
@click.argument("reference", metavar="NAME@ALIAS|NAME/VERSION")
@registry_option
@click.option(
    "--weights",
    type=click.Choice(["declared", "proven"]),
    help="Approve only where the weights are known at least so: proven is computed from the files by a backend of "
    "Proctor, declared written down by whoever runs the endpoint.",
)
@home_option
@format_option
def check(reference: str, registry: str | None, weights: str | None, home: Path, output: str) -> ExitCode:
    """Hold what the registry says of a model version against the record, before it is promoted.

    NAME is the registered model's name, or the model id. The version's tags prove nothing by themselves, because anyone
    who may write to the registry can set them: the decision must be what stands on record now for these weights and
    this version, over every suite that was asked for or run, and the report's document is digested again. A sign-off
    counts, and an approval that has ended does not. The record is the one of --home, or of PROCTOR_RECORDS_URL and
    PROCTOR_ARTIFACTS.

    Exit code 0 where the version is approved, 3 where it waits for an audit or a review, 4 where it is blocked, and 1
    where the registry's word is not proven.

    \b
    Examples:
      proctor gate check my-model@champion
      proctor gate check models:/my-model/7 --format json || exit 1

    JSON keys: name, version, audit_id, outcome (null where nothing is proven), scope, weights (how they
    are known: proven, declared, unknown), caveat, reasons[].
    """
    from proctor.cli.audits.reaching import home_settings

    wanted = Reference.parse(reference)
    settings = home_settings(home)
    found = _checked(wanted, registry or registry_of(settings), settings, weights)
    if output == "json":
        print_json(found.plain())
    else:
        _print(found)
    return _exit_code(found.outcome)


def _checked(wanted: Reference, uri: str, settings: Settings, weights: str | None) -> GateCheck:
    from proctor.domain.weights import Weights
    from proctor.registry.model_registry import ReadableRegistry, kind_of, open_registry
    from proctor.registry.promotion import check as hold_against

    with closing(open_registry(uri)) as registry:
        kind = kind_of(registry)
        if not isinstance(registry, ReadableRegistry):
            raise BadInputError(
                "this registry cannot say what it holds; have its plug-in keep the contract of "
                "proctor.registry.model_registry.ReadableRegistry"
            )
        held = registry.held(wanted.model, version=wanted.version, alias=wanted.alias)
    return hold_against(held, _on_record(held, kind, settings), wanted=None if weights is None else Weights(weights))


def _on_record(held: HeldVersion, kind: RegistryKind | None, settings: Settings) -> OnRecord:
    from datetime import UTC, datetime

    from proctor.domain.errors import StoreError
    from proctor.domain.version_decision import version_decision
    from proctor.registry.promotion import OnRecord
    from proctor.runtime.artifacts.opening import open_artifacts
    from proctor.runtime.records.audited_versions import VersionName
    from proctor.runtime.records.decisions import decision_of
    from proctor.runtime.records.store import Records

    nothing = OnRecord(None, None, {}, frozenset(), None)
    if held.audit_id is None:
        return nothing
    with closing(Records(settings.records_url, migrate=False)) as records:
        plain = records.decision(held.audit_id)
        if plain is None:
            return nothing
        event = decision_of(held.audit_id, plain)
        version = VersionName(kind, held.name, held.version)
        found = records.versions.on_record(version, event.model_id, event.model_digest)
        last = records.versions.last_write(held.audit_id)
    try:
        document = open_artifacts(settings).get(event.report_digest)
    except StoreError:
        document = None
    return OnRecord(
        event,
        version_decision(found.asked, found.standings, datetime.now(UTC)),
        found.events,
        found.registrations,
        document,
        "" if last is None else last.error,
    )


def _print(found: GateCheck) -> None:
    words = "not proven" if found.outcome is None else found.outcome.value
    click.secho(f"{clean(found.name)} version {clean(found.version)}: {words}", bold=True)
    if found.caveat is not None:
        say(f"  {found.caveat}")
    for reason in found.reasons:
        say(f"  - {reason.text}")
    if found.weights is not None:
        say(f"  weights: {found.weights.words}")
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
