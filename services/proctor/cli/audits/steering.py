"""`proctor audit submit`, `pause`, `resume` and `cancel`: audits that run without the command that began them."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.audits.ci.files import CiFiles, ci_options
from proctor.cli.audits.options import priority_option
from proctor.cli.audits.reaching import audit_argument, desk, server_option
from proctor.cli.audits.showing import watched_to_its_end
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say
from proctor.domain.errors import BadInputError, ExitCode


@click.command()
@click.argument("suite_file", metavar="SUITE", type=click.Path(path_type=Path, dir_okay=False))
@priority_option
@click.option("--watch", "watches", is_flag=True, help="Wait for the decision, as `proctor audit watch` does.")
@server_option
@ci_options
@home_option
@format_option
def submit(
    suite_file: Path, priority: str, watches: bool, server: str | None, ci: CiFiles, home: Path, output: str
) -> ExitCode:
    """Begin an audit by SUITE and return at once, with its id; with --watch when it has ended, with its decision.

    Needs a stack that runs: the one that `proctor up` started in the same home, the one of PROCTOR_BROKER_URL and its
    like, or the one behind --server, to which the files that SUITE names are sent along. The same suite with the same
    files goes on with the audit that did not end.

    \b
    Examples:
      proctor audit submit suite.json
      proctor audit submit suite.json --priority high --server grpc://audits.example:50061
      proctor audit watch "$(proctor audit submit suite.json --format json | jq -r .audit.audit_id)"
      proctor audit submit suite.json --watch --junit proctor.xml --markdown proctor.md

    Exit codes with --watch: 0 approved, 1 failed or cancelled, 2 bad input, 3 review, 4 blocked.

    JSON keys: audit (as `proctor audit show` prints it), stopped_at (the state of the audit with which it goes on, or
    null), notes[]. With --watch, objects as `proctor audit watch --format json` prints them.
    """
    if ci and not watches:
        raise BadInputError("--junit and --markdown tell how an audit ended: give --watch, too")
    from proctor.cli.audits.away import Attendant, running_stack
    from proctor.cli.audits.status_lines import STEPS, workers_away
    from proctor.domain.messages import Priority

    with desk(home, server) as audits:
        submitted = audits.submit(suite_file, Priority(priority))
        if watches:
            for note in submitted.notes:
                say(f"note: {note}", err=True)
            return watched_to_its_end(audits, submitted.audit.audit_id, server, ci, home, output)
    if server is None:
        Attendant(running_stack(home)).say_away()
    if submitted.audit.services_away:
        say(f"proctor: warning: {workers_away(submitted.audit)}: the audit waits for one", err=True)
    if output == "json":
        print_json(submitted._asdict() | {"audit": submitted.audit.plain()})
        return ExitCode.APPROVED_OR_DONE
    for note in submitted.notes:
        say(f"note: {note}", err=True)
    audit = submitted.audit
    stopped_at = submitted.stopped_at
    begun = "has begun" if stopped_at is None else f"goes on from where it stopped, at: {STEPS[stopped_at]}"
    say(f"Audit {audit.audit_id} of {audit.model_id} {begun}.")
    say(f"  watch it: proctor audit watch {audit.audit_id}{f' --server {server}' if server else ''}")
    return ExitCode.APPROVED_OR_DONE


@click.command()
@audit_argument
@server_option
@home_option
@format_option
def pause(audit_id: str, server: str | None, home: Path, output: str) -> None:
    """Hand out nothing more of AUDIT, until it is resumed; what is under way is still recorded.

    \b
    Example:
      proctor audit pause 3f2a

    JSON: as `proctor audit show --format json`.
    """
    _steer("pause", audit_id, server, home, output)


@click.command()
@audit_argument
@server_option
@home_option
@format_option
def resume(audit_id: str, server: str | None, home: Path, output: str) -> None:
    """Go on with AUDIT, which was paused.

    \b
    Example:
      proctor audit resume 3f2a

    JSON: as `proctor audit show --format json`.
    """
    _steer("resume", audit_id, server, home, output)


@click.command()
@audit_argument
@server_option
@home_option
@format_option
def cancel(audit_id: str, server: str | None, home: Path, output: str) -> None:
    """End AUDIT for good. What was answered stays on record; the same suite begins a new audit.

    \b
    Example:
      proctor audit cancel 3f2a

    JSON: as `proctor audit show --format json`.
    """
    _steer("cancel", audit_id, server, home, output)


def _steer(step: str, audit_id: str, server: str | None, home: Path, output: str) -> None:
    from proctor.cli.audits.showing import print_status

    with desk(home, server) as audits:
        status = {"pause": audits.pause, "resume": audits.resume, "cancel": audits.cancel}[step](audit_id)
    if output == "json":
        print_json(status.plain())
    else:
        print_status(status)
