"""`proctor notify`: what became of notifications, sending one again on purpose, and trying a target."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import ExitCode

if TYPE_CHECKING:
    from proctor.runtime.records.store import Records

_STATES = ("waiting", "sending", "sent", "failed", "unknown")


@click.group()
def notify() -> None:
    """Say who was told of decisions, and try the targets of PROCTOR_NOTIFY.

    Notifications are sent by `proctor worker notifier`, which `proctor up` starts where PROCTOR_NOTIFY is set.
    """


@notify.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES),
    help="Of this state alone; may be repeated. `unknown` are those that may have arrived or not.",
)
@click.option("--audit", metavar="AUDIT", help="Of this audit alone.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="At most so many.")
@home_option
@format_option
def list_notifications(states: tuple[str, ...], audit: str | None, limit: int, home: Path, output: str) -> None:
    """List notifications, the newest first.

    A message is sent once, whatever happens. Where its worker died between the sending and the mark that it was sent,
    or the service fell silent, nobody knows whether it arrived: it is listed as unknown, and not sent again by itself.

    JSON keys of each: audit_id, occasion, name, kind, state, tries, detail, created_at, changed_at.

    \b
    Example:
      proctor notify list --state unknown --state failed
    """
    from proctor.runtime.records.outbox import NotificationState

    with closing(_records(home)) as records:
        found = records.outbox.listed(states=map(NotificationState, states), audit_id=audit, limit=limit)
    if output == "json":
        keys = ("audit_id", "occasion", "name", "kind", "state", "tries", "detail", "created_at", "changed_at")
        print_json([{key: getattr(one, key) for key in keys} for one in found])
    elif not found:
        say("No notifications.")
    else:
        rows = [(one.changed_at, one.state.value, one.name, one.audit_id, one.occasion, one.detail) for one in found]
        say(table(("since", "state", "who", "audit", "of", "why"), rows))


@notify.command()
@click.argument("audit")
@click.argument("target")
@click.option("--even-sent", is_flag=True, help="Also what was sent: it arrives twice.")
@home_option
def send(audit: str, target: str, even_sent: bool, home: Path) -> ExitCode:
    """Have TARGET told of AUDIT again: what failed, or nobody knows of.

    TARGET is a target's name or a mail address, as `proctor notify list` has it. The notifier worker sends it within
    some seconds.
    """
    with closing(_records(home)) as records:
        count = records.outbox.send_again(audit, target, even_sent=even_sent)
    if count:
        say(f"{target} is told of audit {audit} again, by the notifier worker.")
        return ExitCode.APPROVED_OR_DONE
    say(
        f"Nothing of audit {audit} failed or is unknown for {target}; `proctor notify list --audit {audit}` says how "
        "it stands, and --even-sent sends again what was sent.",
        err=True,
    )
    return ExitCode.FAILURE


@notify.command()
@click.argument("target")
@home_option
def test(target: str, home: Path) -> ExitCode:
    """Send TARGET a test: a message, or a CloudEvent of the type proctor.test.v1.

    TARGET is a name of PROCTOR_NOTIFY's targets, or a mail address. Exit code 0 where the service took it.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.notifier.delivery import Fate
    from proctor.notifier.telling import send_test

    settings = home_settings(home)
    delivery = send_test(settings.notify.said, target, source=settings.dashboard_url)
    if delivery.fate is Fate.SENT:
        say(f"{target} took a test.")
        return ExitCode.APPROVED_OR_DONE
    said = "may have arrived" if delivery.fate is Fate.UNKNOWN else "was not sent"
    say(f"The test to {target} {said}: {delivery.why}.", err=True)
    return ExitCode.FAILURE


def _records(home: Path) -> Records:
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.records.store import Records

    settings = home_settings(home)
    return Records(settings.records_url, migrate=settings.records_migrate.commands(settings.records_url))
