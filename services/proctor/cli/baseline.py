"""`proctor baseline`: the audit of what is in production, below which a later version's score is no news."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.audits.options import priority_option
from proctor.cli.opened_records import opened_records
from proctor.cli.options import format_option, home_option, registry_option
from proctor.cli.references import Reference, registry_of
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.domain.suite import Suite
    from proctor.registry.promotion import HeldVersion


class _FirstIsAVersion(click.Group):
    """A group whose first argument is a version where it is no command; a version always holds an @ or a /."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["set", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["NAME@ALIAS|NAME/VERSION --suite SUITE", "| show [MODEL]"]


@click.group(cls=_FirstIsAVersion)
def baseline() -> None:
    """Audit what is in production now, and record that audit as the model's floor.

    A later version's score up to the upper bound of the floor's is no news: `proctor trends` draws it as a line.

    \b
    Examples:
      proctor baseline my-model@champion --suite suite.json
      proctor baseline my-model/7 --suite suite.json
      proctor baseline show my-org/my-model
    """


@baseline.command("set")
@click.argument("reference", metavar="NAME@ALIAS|NAME/VERSION")
@click.option(
    "--suite",
    "suite_file",
    metavar="SUITE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The suite. Its model becomes the registered version; where it is served is the suite's word.",
)
@registry_option
@priority_option
@home_option
@format_option
def set_floor(reference: str, suite_file: Path, registry: str | None, priority: str, home: Path, output: str) -> None:
    """Begin an audit of a registered version by SUITE, as the floor of the model's later versions.

    Needs a stack that runs, as `proctor audit submit` does, and returns at once. The version's weights are those of its
    tag proctor.model_digest; the endpoint of the suite must serve them. What was a floor before stays on record, and
    the newest that is decided counts.

    \b
    Example:
      proctor baseline my-model@champion --suite suite.json

    JSON keys: audit_id, model_id, suite_id, registered_name, registered_version, alias, submitter, created_at.
    """
    from proctor.cli.audits.away import Attendant, running_stack
    from proctor.cli.audits.reaching import home_settings
    from proctor.domain.messages import Priority
    from proctor.domain.submitter import LOCAL
    from proctor.formats.suites import load_suite
    from proctor.gateway.audits import local_desk
    from proctor.router.submit.gathering import gather
    from proctor.runtime.records.baselines import Baseline
    from proctor.studies.unusable_parts import hold_usable

    wanted, settings = Reference.parse(reference), home_settings(home)
    written = load_suite(suite_file)
    held = _held(wanted, registry or registry_of(settings))
    suite = _filled(written, held, suite_file)
    hold_usable(suite, str(suite_file))
    data = gather(suite, suite_file.parent, settings.bundle, settings.benchmarks, hub=settings.hub)
    with local_desk(settings, at_terminal=True) as desk:
        begun = desk.begin(data, Priority(priority))
        desk.records.baselines.add(
            Baseline(
                audit_id=begun.audit.audit_id,
                model_id=suite.model.model_id,
                suite_id=suite.audit_suite_id,
                registered_name=held.name,
                registered_version=held.version,
                alias=wanted.alias,
                submitter=LOCAL.name,
            )
        )
        (floor,) = (
            one
            for one in desk.records.baselines.newest(model_id=suite.model.model_id)
            if one.audit_id == begun.audit.audit_id
        )
    Attendant(running_stack(home)).say_away()
    if output == "json":
        print_json(floor._asdict())
        return
    for note in begun.notes:
        say(f"note: {note}", err=True)
    say(f"Audit {floor.audit_id} of {held.name} version {held.version} has begun; decided, it is the model's floor.")
    say(f"  watch it: proctor audit watch {floor.audit_id}")


@baseline.command()
@click.argument("model", metavar="MODEL", required=False)
@home_option
@format_option
def show(model: str | None, home: Path, output: str) -> None:
    """List the floors on record, of MODEL or of all models, the newest first.

    Of a model and suite the newest that is decided counts, for the audits with its protocol digest.

    JSON keys: baselines[] (audit_id, model_id, suite_id, registered_name, registered_version, alias, submitter,
    created_at, score (value, low, high; null until it is decided)).
    """
    from proctor.cli.audits.reaching import home_settings

    with opened_records(home_settings(home)) as records:
        floors = records.baselines.newest(model_id=model)
        decided = records.measures.of_audits([one.audit_id for one in floors])
    scores = {audit_id: found.measure.score for audit_id, found in decided.items()}
    if output == "json":
        listed = [
            {**one._asdict(), "score": None if one.audit_id not in scores else scores[one.audit_id].plain()}
            for one in floors
        ]
        print_json({"baselines": listed})
        return
    if not floors:
        say("No floor is on record; `proctor baseline NAME@ALIAS --suite SUITE` makes one.")
        return
    rows = []
    for one in floors:
        score = scores.get(one.audit_id)
        alias = "" if one.alias is None else f" @{one.alias}"
        value = "not decided" if score is None or score.value is None else f"{score.value:.3f}"
        version = f"{one.registered_name} {one.registered_version}{alias}"
        rows.append((one.model_id, one.suite_id, version, one.created_at[:10], value, one.audit_id))
    say(table(("model", "suite", "version", "recorded", "Contamination Score", "audit"), rows))


def _held(wanted: Reference, uri: str) -> HeldVersion:
    from proctor.registry.model_registry import ReadableRegistry, open_registry

    with closing(open_registry(uri)) as registry:
        if not isinstance(registry, ReadableRegistry):
            raise BadInputError(
                "this registry cannot say what it holds; have its plug-in keep the contract of "
                "proctor.registry.model_registry.ReadableRegistry"
            )
        return registry.held(wanted.model, version=wanted.version, alias=wanted.alias)


def _filled(written: Suite, held: HeldVersion, suite_file: Path) -> Suite:
    from proctor.domain.canonical import FULL_DIGEST
    from proctor.domain.problems import visible
    from proctor.domain.registered_version import MODEL_DIGEST_TAG, registered_name
    from proctor.domain.suite_problems import SuiteProblems, parse_suite

    shown = f"version {visible(held.version[:80])} of {visible(held.name[:200])}"
    digest = held.model_digest or ""
    if not FULL_DIGEST.fullmatch(digest):
        raise BadInputError(
            f'{shown} does not say which weights it has: set its tag {MODEL_DIGEST_TAG} to "sha256:" and the 64 hex '
            "digits of the weights"
        )
    own = written.model.model_id
    model_id = own if registered_name(own) == held.name else held.name.replace("~", "/")
    said = written.model_dump(mode="json", by_alias=True)
    said["model_config"] |= {"model_id": model_id, "model_version": digest}
    try:
        return parse_suite(json.dumps(said))
    except SuiteProblems as problems:
        raise problems.of(f"{suite_file} for {shown}") from None
