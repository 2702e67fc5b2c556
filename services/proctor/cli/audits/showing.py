"""`proctor audit show`, `list` and `watch`: what audits are doing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.audits.ci.files import CiFiles, ci_options
from proctor.cli.audits.reaching import audit_argument, desk, server_option
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import ExitCode

if TYPE_CHECKING:
    from proctor.gateway.desk import AuditDesk
    from proctor.gateway.status import AuditStatus, Verdict
    from proctor.runtime.records.audit_state import UnreadableAudit


@click.command()
@audit_argument
@server_option
@home_option
@format_option
def show(audit_id: str, server: str | None, home: Path, output: str) -> None:
    """Say where AUDIT is: its stage, what was asked and spent, what was given up and why, and its decision.

    AUDIT is an id as `proctor audit submit` gives it, or a beginning of it that no other audit shares.

    \b
    Examples:
      proctor audit show 3f2a
      proctor audit show 3f2a --server grpc://audits.example:50061 --format json

    JSON keys: audit_id, suite, model_id, state, paused, priority, detail, created_at, stage, trials (planned, done,
    under_way, dead), failures[] (cause, shards), spent (trials, input_tokens, output_tokens; null where it is not
    known), rate, eta_s, away_s, services_away[], searching, decision (outcome, scope, weights, reasons[], report_path,
    report_digest, registry_version, stands (outcome, kind, by (name, via), reason, reference, at, expires_at,
    sequence)), submitter. `outcome` is what was decided, and `stands` what holds now.
    """
    with desk(home, server) as audits:
        status = audits.status(audit_id)
    if output == "json":
        print_json(status.plain())
    else:
        print_status(status)


@click.command(name="list")
@click.option("--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="At most so many.")
@server_option
@home_option
@format_option
def list_audits(limit: int, server: str | None, home: Path, output: str) -> None:
    """List audits, the newest first.

    \b
    Examples:
      proctor audit list
      proctor audit list --limit 5 --format json

    An audit that only a newer Proctor can read is named, and the others are listed.

    JSON: an array of what `proctor audit show --format json` prints; of an audit that cannot be read, audit_id,
    created_at and unreadable, which says why.
    """
    from proctor.runtime.records.audit_state import UnreadableAudit

    with desk(home, server) as audits:
        found = audits.audits(limit)
    unreadable = [audit for audit in found if isinstance(audit, UnreadableAudit)]
    if output == "json":
        print_json([_listed(audit) for audit in found])
        return
    if not found:
        say("No audit is on record: `proctor audit submit SUITE` begins one.")
        return
    say(table(("audit", "model", "suite", "state", "progress", "submitted"), [_row(audit) for audit in found]))
    under_way = sum(not audit.ended for audit in found if not isinstance(audit, UnreadableAudit))
    audits_listed = f"{len(found)} audit{'s' if len(found) > 1 else ''}"
    say(f"\nOf {audits_listed}, {under_way or 'none'} {'is' if under_way <= 1 else 'are'} under way.")
    for audit in unreadable:
        say(f"proctor: warning: {audit.why}", err=True)


def _listed(audit: AuditStatus | UnreadableAudit) -> dict[str, Any]:
    from proctor.runtime.records.audit_state import UnreadableAudit

    if isinstance(audit, UnreadableAudit):
        return {"audit_id": audit.audit_id, "created_at": audit.created_at, "unreadable": audit.why}
    return audit.plain()


def _row(audit: AuditStatus | UnreadableAudit) -> tuple[str, ...]:
    from proctor.cli.audits.status_lines import progress, step
    from proctor.runtime.records.audit_state import UnreadableAudit

    if isinstance(audit, UnreadableAudit):
        return audit.audit_id, "", "", "needs a newer Proctor", "", audit.created_at
    return (
        audit.audit_id,
        audit.model_id,
        audit.suite,
        step(audit) if audit.decision is None else _outcome(audit.decision),
        "" if audit.ended else progress(audit),
        audit.created_at,
    )


def _outcome(verdict: Verdict) -> str:
    decided, holds = verdict.outcome.value, verdict.holds.value
    return decided if decided == holds else f"{holds} (decided {decided})"


@click.command()
@audit_argument
@server_option
@ci_options
@home_option
@format_option
def watch(audit_id: str, server: str | None, ci: CiFiles, home: Path, output: str) -> ExitCode:
    """Watch AUDIT until it ends: stages, trials a second, the time that is left, and what was given up.

    Leaving (Ctrl-C) does not stop it. With --format json, a JSON object a line whenever something has changed, with
    the keys of `proctor audit show`. --junit and --markdown are for continuous integration: docs/ci.md.

    \b
    Examples:
      proctor audit watch 3f2a
      proctor audit watch 3f2a --format json | jq .rate
      proctor audit watch 3f2a --junit proctor.xml --markdown proctor.md

    Exit codes: 0 approved, 1 failed or cancelled, 2 bad input, 3 review, 4 blocked.
    """
    with desk(home, server) as audits:
        return watched_to_its_end(audits, audit_id, server, ci, home, output)


def watched_to_its_end(
    audits: AuditDesk, audit_id: str, server: str | None, ci: CiFiles, home: Path, output: str
) -> ExitCode:
    """Show an audit until it ends, and what it ended with; returns the decision's code."""
    from functools import partial

    from proctor.cli.audits.away import Attendant, running_stack
    from proctor.cli.audits.following import follow
    from proctor.cli.audits.status_lines import exit_code
    from proctor.gateway.watching import watch as watched

    stack = None if server else running_stack(home)
    attendant = Attendant(stack)
    # In full, so that what is said on leaving stays true when other audits begin.
    whole_id = attendant.patiently(partial(audits.status, audit_id)).audit_id
    look = partial(attendant.patiently, lambda: (audits.status(whole_id),))
    seen = watched(look, check=attendant.check) if server is None else ((one,) for one in audits.watch(whole_id))
    try:
        (ended,) = follow(seen, output=output)
    except KeyboardInterrupt:
        say(left_alone(whole_id, server), err=True)
        raise
    if ci:
        from proctor.cli.audits.ci.outcome import outcome_of
        from proctor.cli.audits.ci.reports import report_of

        dashboard = ci.dashboard or (None if stack is None else stack.dashboard())
        ci.write(outcome_of(ended, report_of(audits, ended), dashboard))
    if output != "json":
        print_status(ended)
    return exit_code(ended)


def left_alone(audit_id: str, server: str | None = None) -> str:
    """What a person should know who stops watching an audit that goes on."""
    where = f" --server {server}" if server else ""
    return (
        f"Audit {audit_id} goes on. Watch it again: proctor audit watch {audit_id}{where}; "
        f"end it: proctor audit cancel {audit_id}{where}"
    )


def print_status(status: AuditStatus) -> None:
    """Print an audit's status: one sentence, and what there is to say beside it."""
    from proctor.cli.audits.status_lines import conclusion, failure_lines, holds, workers_away
    from proctor.runtime.records.audit_state import AuditState

    say(conclusion(status))
    submitted = f"{status.created_at or '–'} by {status.submitter}"
    say(f"  suite: {status.suite}; priority: {status.priority}; submitted: {submitted}")
    if status.services_away:
        say(f"  {workers_away(status)}: it waits for one")
    if status.searching and status.state is not AuditState.SCORING:
        say("  training data are being searched for its items; it decides once that is done, too")
    if status.spent is None:
        say("  asked so far: not known; the ledger that counts it does not answer, or has forgotten it")
    elif status.spent.trials:
        spent = status.spent
        tokens = f"{spent.input_tokens:,} prompt tokens and {spent.output_tokens:,} answer tokens"
        say(f"  asked so far: {spent.trials:,} trials, {tokens}")
    for line in failure_lines(status):
        say(f"  - {line}")
    if status.decision is not None:
        # The first one stands in the conclusion.
        for reason in status.decision.reasons[1:]:
            say(f"  - {reason.text}")
        if said := holds(status.decision):
            say(f"  {said}")
        if status.decision.registry_version is not None:
            say(f"  registry version: {status.decision.registry_version}")
        if status.decision.weights is not None:
            say(f"  weights: {status.decision.weights.words}")
        say(f"  report: {status.decision.report_path}")
