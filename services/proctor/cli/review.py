"""`proctor review`: what waits for a person, and the person's sign-off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from proctor.cli.audits.reaching import audit_argument
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import clean, print_json, say, table
from proctor.domain.errors import ExitCode

if TYPE_CHECKING:
    from proctor.domain.decision import DecisionOutcome
    from proctor.domain.standing import Standing
    from proctor.gateway.audits import LocalDesk
    from proctor.studies.review import Reviews

Command = TypeVar("Command", bound=Callable[..., Any])

_OUTCOMES: Final = ("approve", "review", "block")
_COLOURS: Final = {"approve": "green", "review": "yellow", "block": "red"}


@click.group()
def review() -> None:
    """See which audits wait for a person, and sign them off.

    A sign-off says what holds from then on, with your name, a reason and a reference, in the decision log. The decision
    itself stays as it is. At this terminal you sign by the name of your login.
    """


@review.command(name="list")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="At most so many.")
@home_option
@format_option
def list_waiting(limit: int, home: Path, output: str) -> None:
    """List what waits for a person, the newest first: reviews, blocks that nobody signed off, approvals that ended.

    \b
    Examples:
      proctor review list
      proctor review list --format json | jq -r '.waiting[].audit_id'

    JSON keys: n_waiting (no more than 1,000 are counted), waiting[] (as `proctor review show` has `stands`).
    """
    from proctor.runtime.records.standings import MAX_COUNTED

    with _reviews(home) as (reviews, _):
        found, n_waiting = reviews.waiting(limit), reviews.n_waiting()
    if output == "json":
        print_json({"n_waiting": n_waiting, "waiting": [one.plain() for one in found]})
        return
    if not found:
        say("Nothing waits for a person.")
        return
    headings = ("audit", "model", "suite", "stands", "decided", "since")
    rows = [
        (one.audit_id, one.model_id, one.audit_suite_id, one.outcome.value, one.decided.value, one.at) for one in found
    ]
    say(table(headings, rows))
    in_all = f"{n_waiting} or more" if n_waiting >= MAX_COUNTED else n_waiting
    say(f"\n{len(found)} of {in_all}: `proctor review show AUDIT` says more of one.")


@review.command()
@audit_argument
@home_option
@format_option
def show(audit_id: str, home: Path, output: str) -> ExitCode:
    """Say what holds for AUDIT now, what was decided and why, and everything that was signed off since.

    Exit code 0 where it stands at approve, 3 at review, 4 at block.

    \b
    Example:
      proctor review show 3f2a

    JSON keys: audit_id, stands (outcome, decided, kind, by (name, via), reason, reference, at, expires_at, sequence,
    audit_suite_id, model_id, model_digest, protocol_digest, ends_when_superseded), history[] (the same, after each
    entry of the log), reasons[] (code, text; of the decision), report_path.
    """
    from proctor.cli.audits.status_lines import EXIT_CODES
    from proctor.runtime.records.decisions import decision_of

    with _reviews(home) as (reviews, desk):
        whole = desk.find(audit_id)
        stands, history = reviews.standing(whole), reviews.history(whole)
        event = decision_of(whole, desk.records.decision(whole) or {})
    if output == "json":
        print_json(
            {
                "audit_id": whole,
                "stands": stands.plain(),
                "history": [one.plain() for one in history],
                "reasons": [reason.plain() for reason in event.reasons],
                "report_path": event.report_path,
            }
        )
        return EXIT_CODES[stands.outcome]
    _print(stands)
    say("  decided because:")
    for reason in event.reasons:
        say(f"  - {reason.text}")
    say(f"  report: {event.report_path}")
    for one in history[1:]:
        say(f"  {one.at}  {_words(one)}")
    return EXIT_CODES[stands.outcome]


def _signing(command: Command) -> Command:
    """The options of every sign-off."""
    reason = click.option("--reason", required=True, metavar="TEXT", help="Why, in a sentence. It is kept for good.")
    reference = click.option(
        "--reference", required=True, metavar="TEXT", help="Where it was talked about: a ticket, a URL."
    )
    for option in (audit_argument, format_option, home_option, reference, reason):
        command = option(command)
    return command


def _ending(command: Command) -> Command:
    return click.option(
        "--expires-after-days",
        type=click.IntRange(1, 36_500),
        metavar="N",
        help="End the approval after N days. By default as the suite says (governance.approval_expires_after_days).",
    )(command)


@review.command()
@_signing
@_ending
def approve(
    audit_id: str, reason: str, reference: str, home: Path, output: str, expires_after_days: int | None
) -> None:
    """Approve AUDIT, which is under review. A block is not approved but overridden.

    \b
    Example:
      proctor review approve 3f2a --reason "Read the 12 items; the rewordings are harder." --reference QA-118

    JSON keys: those of `stands` in `proctor review show`, and told: whether the registry's writer knows already.
    """
    _sign(home, output, audit_id, "approve", None, reason, reference, expires_after_days)


@review.command()
@_signing
def reject(audit_id: str, reason: str, reference: str, home: Path, output: str) -> None:
    """Block AUDIT, which is under review or approved.

    \b
    Example:
      proctor review reject 3f2a --reason "Trained on the test split." --reference https://tracker.example/7

    JSON keys: as of `proctor review approve`.
    """
    _sign(home, output, audit_id, "reject", None, reason, reference, None)


@review.command()
@_signing
@_ending
@click.option("--outcome", type=click.Choice(_OUTCOMES), required=True, help="What is to hold.")
def override(
    audit_id: str,
    reason: str,
    reference: str,
    home: Path,
    output: str,
    expires_after_days: int | None,
    outcome: str,
) -> None:
    """Have AUDIT stand at another outcome, whatever was decided: the only way past a block.

    \b
    Example:
      proctor review override 3f2a --outcome approve --expires-after-days 14 \\
        --reason "Needed for the incident; replaced on Friday." --reference INC-42

    JSON keys: as of `proctor review approve`.
    """
    _sign(home, output, audit_id, "override", outcome, reason, reference, expires_after_days)


def _sign(
    home: Path,
    output: str,
    audit_id: str,
    verb: str,
    outcome: str | None,
    reason: str,
    reference: str,
    expires_after_days: int | None,
) -> None:
    from proctor.domain.decision import DecisionOutcome
    from proctor.domain.record.sign_off import Verb
    from proctor.domain.submitter import LOCAL
    from proctor.studies.review import only_outcome

    does = Verb(verb)
    wanted = only_outcome(does, None if outcome is None else DecisionOutcome(outcome))
    with _reviews(home) as (reviews, desk):
        whole = desk.find(audit_id)
        signed = reviews.sign(whole, does, wanted, LOCAL, reason, reference, expires_after_days=expires_after_days)
    if output == "json":
        print_json({**signed.standing.plain(), "told": signed.told})
        return
    _print(signed.standing)
    if not signed.told:
        say("proctor: warning: the broker does not answer, so the registry is written later", err=True)


@contextmanager
def _reviews(home: Path) -> Iterator[tuple[Reviews, LocalDesk]]:
    from proctor.cli.audits.reaching import home_settings
    from proctor.gateway.audits import local_desk
    from proctor.runtime.messaging.tasks import send
    from proctor.studies.review import reviews_of

    settings = home_settings(home)
    with local_desk(settings, at_terminal=True) as desk:
        yield reviews_of(settings, desk.records, send), desk


def _print(standing: Standing) -> None:
    click.secho(f"Audit {clean(standing.audit_id)} of {clean(standing.model_id)}: {_word(standing.outcome)}", bold=True)
    say(f"  {_words(standing)}")
    if standing.expires_at is not None:
        say(f"  until {standing.expires_at}")


def _word(outcome: DecisionOutcome) -> str:
    return click.style(outcome.value, fg=_COLOURS[outcome.value])


def _words(standing: Standing) -> str:
    if standing.by is not None:
        return (
            f"{standing.outcome.value}: signed off by {standing.by.name} (via {standing.by.via}), "
            f"{standing.reference}: {standing.reason}; the gate had decided {standing.decided.value}"
        )
    if standing.reason:
        return f"{standing.outcome.value}: {standing.reason}"
    return f"{standing.outcome.value}, as the gate decided at {standing.at}"
