"""`proctor records`: the version of the record store's tables, and what is kept of older audits."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say
from proctor.domain.errors import ExitCode


@click.group()
def records() -> None:
    """Migrate the record store, say which version its tables have, and take in older audits' figures."""


@records.command()
@home_option
@format_option
def migrate(home: Path, output: str) -> None:
    """Bring the record store's tables to this Proctor's version.

    To be given once before a new version is rolled out, with the new version's program (in Kubernetes, as a job before
    the upgrade); the workers of the version before go on working. It does nothing where nothing is to be done, and
    several at the same time do it once. The store is the one of PROCTOR_RECORDS_URL.

    \b
    Example:
      PROCTOR_RECORDS_URL=postgresql://proctor@db/proctor proctor records migrate

    JSON keys: before, after (schema versions; 0 is a store that is empty, or of before there were versions).
    """
    from proctor.runtime.records.schema import version_of
    from proctor.runtime.records.store import Records

    url = _records_url(home)
    before = version_of(url)
    Records(url).close()
    after = version_of(url)
    if output == "json":
        print_json({"before": before, "after": after})
    elif before == after:
        say(f"The record store is at schema version {after}; nothing was to be done.")
    else:
        say(f"The record store was migrated from schema version {before} to {after}.")


@records.command()
@home_option
@format_option
def version(home: Path, output: str) -> ExitCode:
    """Say which version the record store's tables have, and which this Proctor needs. Nothing is changed.

    Exit code 1 where the store is to be migrated first, or needs a newer Proctor.

    JSON keys: store, program, usable.
    """
    from proctor.runtime.records.schema import AHEAD, SCHEMA_VERSION, version_of

    store = version_of(_records_url(home))
    usable = SCHEMA_VERSION <= store <= SCHEMA_VERSION + AHEAD
    if output == "json":
        print_json({"store": store, "program": SCHEMA_VERSION, "usable": usable})
    else:
        say(f"The record store is at schema version {store}, and this Proctor at {SCHEMA_VERSION}: {_words(store)}.")
    return ExitCode.APPROVED_OR_DONE if usable else ExitCode.FAILURE


@records.command()
@click.option("--limit", type=click.IntRange(min=1), default=10_000, show_default=True, help="Most audits of a round.")
@home_option
@format_option
def measure(limit: int, home: Path, output: str) -> ExitCode:
    """Take in the figures of audits that were decided before figures were kept, from their reports.

    `proctor trends` and `proctor benchmarks health` read figures that are kept when an audit is decided. To be given
    once after an upgrade; again, where it says that there is more. Exit code 1 where a report was not there or is not
    the one that was decided on.

    JSON keys: measured, without (audits in which nothing was compared), unreadable[] (audits), more.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.cli.opened_records import opened_records
    from proctor.runtime.artifacts.opening import open_artifacts
    from proctor.studies.measuring import take_in

    settings = home_settings(home)
    with opened_records(settings) as store:
        found = take_in(store, open_artifacts(settings), limit=limit)
    if output == "json":
        print_json(found._asdict())
    else:
        say(f"The figures of {found.measured:,} audits were taken in; {found.without:,} have none.")
        for audit_id in found.unreadable[:20]:
            say(f"  the report of {audit_id} is not there, or is not the one that was decided on")
        if found.more:
            say("There may be more: give the same command with a higher --limit.")
    return ExitCode.FAILURE if found.unreadable else ExitCode.APPROVED_OR_DONE


def _words(store: int) -> str:
    from proctor.runtime.records.schema import AHEAD, SCHEMA_VERSION

    if store > SCHEMA_VERSION + AHEAD:
        return "use a newer Proctor"
    if store > SCHEMA_VERSION:
        return "they work together, for the time of an upgrade"
    return "they belong together" if store == SCHEMA_VERSION else "`proctor records migrate` brings it up to date"


def _records_url(home: Path) -> str:
    from proctor.cli.audits.reaching import home_settings

    return home_settings(home).records_url
