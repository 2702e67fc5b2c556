"""`proctor record`: the decision log, its keys, and whether anybody has changed it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from proctor.cli.opened_records import opened_records
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import BadInputError, ExitCode, StoreError

if TYPE_CHECKING:
    from proctor.domain.action import ActionOnRecord
    from proctor.domain.record.entry import LoggedEntry, Signer
    from proctor.runtime.records.decision_log import NoKey, SigningKey
    from proctor.runtime.records.store import Records
    from proctor.runtime.settings import Settings
    from proctor.studies.record.checks import Checked

_FILE = click.Path(path_type=Path, dir_okay=False)
#: Findings that the table shows; JSON has all of them.
_SHOWN: Final = 50
_TOLD_EVERY: Final = 10_000


@click.group()
def record() -> None:
    """Verify, show and export the decision log, in which every decision stands once and nothing is changed."""


@record.command()
@home_option
@format_option
def key(home: Path, output: str) -> None:
    """Print the public key under which decisions are signed, and its id.

    Makes the installation's own key where it has none and PROCTOR_SIGNING_KEY names none. Keep what is printed where
    nobody who can write to the record store can write: `proctor record verify FILE --key PUBLIC.pem` is as good as it.

    \b
    Example:
      proctor record key > proctor-public.pem

    JSON keys: key_id, public_key (PEM), source, known[] (key_id, public_key of every key that is believed here).
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.signing import home_key_file, known_keys, open_signing_key, public_pem

    settings = home_settings(home)
    try:
        signer = open_signing_key(settings.home, settings.signing_key).signer
    except OSError as error:
        raise StoreError(f"no key can be made in {settings.home}: {error.strerror or error}") from None
    source = settings.signing_key or home_key_file(settings.home)
    pem = public_pem(signer.public_key).decode()
    if output == "json":
        known = _public(known_keys(settings.home, settings.signing_key))
        print_json({"key_id": signer.key_id, "public_key": pem, "source": str(source), "known": known})
        return
    say(f"key id {signer.key_id}, of {source}", err=True)
    say(pem.rstrip())


@record.command()
@click.argument("file", type=_FILE, required=False)
@click.option(
    "--key",
    "keys",
    type=_FILE,
    multiple=True,
    metavar="PUBLIC.pem",
    help="Believe this public key (may be repeated), and no other. By default those of this installation.",
)
@click.option(
    "--witness",
    "witnesses",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="A checkpoint or an export that was made before: the log must go on from there (may be repeated).",
)
@click.option("--no-reports", is_flag=True, help="Leave out the reports, which takes most of the time.")
@home_option
@format_option
def verify(
    file: Path | None, keys: tuple[Path, ...], witnesses: tuple[Path, ...], no_reports: bool, home: Path, output: str
) -> ExitCode:
    """Verify the decision log: that of the record store, or an exported FILE by itself.

    Computes every digest and the chain anew, checks every signature, and holds decisions, reports and the attestations
    beside them to the log. Exit code 0 where it is intact, 1 where it is not. docs/record.md says what is found, and
    what cannot be.

    \b
    Examples:
      proctor record verify
      proctor record verify --witness last-month.checkpoint
      proctor record verify audit.jsonl --key proctor-public.pem

    JSON keys: intact, source, as_of, entries, signed, taken_in, head, reports, witnesses, counts, findings[] (code,
    fault, sequence, audit_id, text).
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.signing import known_keys, read_public_key
    from proctor.studies.record.checks import check_export, check_store, trust_in

    settings = home_settings(home)
    trust = trust_in(
        [read_public_key(one) for one in keys] if keys else known_keys(settings.home, settings.signing_key)
    )
    if file is not None:
        checked, source = check_export(file, trust, witnesses, _told), str(file)
    else:
        with opened_records(settings) as records:
            artifacts = None if no_reports else _artifacts(settings)
            checked = check_store(records, artifacts, settings.home, trust, witnesses, _told)
        source = "the record store"
    if output == "json":
        print_json(_plain(checked, source))
    else:
        _print(checked, source)
    return ExitCode.APPROVED_OR_DONE if checked.intact else ExitCode.FAILURE


@record.command()
@click.argument("file", type=_FILE)
@click.option("--no-reports", is_flag=True, help="Leave out the reports.")
@home_option
@format_option
def export(file: Path, no_reports: bool, home: Path, output: str) -> None:
    """Write the decision log to FILE, with every attestation and report: one file that verifies without this store.

    JSON lines; `-` writes to standard output. An auditor needs it, and the public key from another hand (`proctor
    record key`).

    JSON keys: file, entries.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.signing import known_keys
    from proctor.studies.record.exporting import export_lines

    settings = home_settings(home)
    known = known_keys(settings.home, settings.signing_key)
    with opened_records(settings) as records:
        artifacts = None if no_reports else _artifacts(settings)
        lines = export_lines(records, artifacts, _signing_key(settings), known)
        written = _write(file, lines)
    if output == "json" and str(file) != "-":
        print_json({"file": str(file), "entries": written - 1})
    else:
        say(f"{written - 1} entries were written to {file}", err=True)


@record.command()
@click.argument("file", type=_FILE, default=Path("-"))
@home_option
def checkpoint(file: Path, home: Path) -> None:
    """Write where the log ends now, signed, to FILE or standard output.

    Kept where nobody who can write to the record store can write, it later shows whether entries were taken from the
    log's end, or all of it was written anew: `proctor record verify --witness FILE`.
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.signing import known_keys
    from proctor.studies.record.exporting import checkpoint_line

    settings = home_settings(home)
    with opened_records(settings) as records:
        known = known_keys(settings.home, settings.signing_key)
        _write(file, iter([checkpoint_line(records, _signing_key(settings), known)]))


@record.command()
@click.argument("audit_id", metavar="AUDIT")
@click.option("--attestation", is_flag=True, help="Print the attestation of its decision alone, for other tools.")
@home_option
@format_option
def show(audit_id: str, attestation: bool, home: Path, output: str) -> None:
    """Show what the decision log says of an AUDIT, by its id or a beginning of it, and what stands by it now.

    JSON: a list of entry, digest, attestation (null for an entry that is not signed).
    """
    from proctor.cli.audits.reaching import home_settings
    from proctor.runtime.records.standings import words_of
    from proctor.studies.record.checks import attestation_of

    with opened_records(home_settings(home)) as records:
        whole = _audit(records, audit_id)
        logged, stands = records.logged(whole), records.standings.standing_of(whole)
        done = records.actions.of(whole)
    if not logged:
        raise StoreError(f"the decision log has nothing on audit {audit_id}: it has no decision yet")
    if attestation:
        if logged[0].signature is None:
            raise StoreError(f"entry {logged[0].sequence} is not signed, so there is no attestation of it")
        print_json(attestation_of(logged[0]))
    elif output == "json":
        print_json([_entry(one) for one in logged])
    else:
        for one in logged:
            _show(one)
        say(f"stands now: {'nothing that can be read' if stands is None else words_of(stands)}")
        _print_actions(done)


@record.command()
@click.argument("audit_id", metavar="AUDIT", required=False)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Without AUDIT: how many.")
@home_option
@format_option
def actions(audit_id: str | None, limit: int, home: Path, output: str) -> None:
    """Show who submitted, paused, resumed, cancelled or signed off AUDIT, and when; without AUDIT what was done last.

    \b
    Example:
      proctor record actions 3f2a

    JSON: a list of id, audit_id, action, name, via (terminal, token, certificate, trigger, or oidc: and the issuer),
    at, detail.
    """
    from proctor.cli.audits.reaching import home_settings

    with opened_records(home_settings(home)) as records:
        one = None if audit_id is None else _audit(records, audit_id)
        done = records.actions.newest(limit) if one is None else records.actions.of(one)
    if output == "json":
        print_json([one._asdict() for one in done])
    else:
        _print_actions(done)


@record.command("take-in")
@home_option
@format_option
def take_in(home: Path, output: str) -> None:
    """Add entries, marked as taken in, for decisions that have none.

    A Proctor of before there was a log leaves such decisions while a deployment is upgraded; `proctor record verify`
    names them. Look at each before: what somebody wrote past Proctor would be taken in as well.

    JSON keys: taken_in[] (ids of audits).
    """
    from proctor.cli.audits.reaching import home_settings

    settings = home_settings(home)
    with opened_records(settings) as records:
        taken = records.take_in(_signing_key(settings))
    if output == "json":
        print_json({"taken_in": taken})
    else:
        say(f"{len(taken)} decisions were taken in{': ' if taken else ''}{', '.join(taken)}")


def _artifacts(settings: Settings) -> Any:
    from proctor.runtime.artifacts.opening import open_artifacts

    return open_artifacts(settings)


def _signing_key(settings: Settings) -> SigningKey | NoKey:
    from proctor.runtime.records.decision_log import NoKey
    from proctor.runtime.signing import open_signing_key

    try:
        return open_signing_key(settings.home, settings.signing_key)
    except (BadInputError, OSError) as error:
        say(f"proctor: warning: what is written is not signed: {error}", err=True)
        return NoKey(f"no key could be used: {error}"[:300])


def _audit(records: Records, prefix: str) -> str:
    if records.logged(prefix):
        return prefix
    found = [audit.audit_id for audit in records.audits(prefix=prefix, limit=2)]
    if len(found) != 1:
        which = "more than one audit begins" if found else "there is no audit that begins"
        raise BadInputError(f"{which} with {prefix!r}: `proctor audit list` names them")
    return found[0]


def _write(file: Path, lines: Iterator[bytes]) -> int:
    """Write lines to a file, or to standard output; how many they were."""
    from proctor.runtime.files import write_pieces

    if str(file) == "-":
        count = sum(bool(sys.stdout.buffer.write(line)) for line in lines)
        sys.stdout.buffer.flush()
        return count
    try:
        return write_pieces(file, lines, private=False)
    except OSError as error:
        raise BadInputError(f"{file} cannot be written: {error.strerror or error}") from None


def _told(number: int) -> None:
    if number % _TOLD_EVERY == 0:
        say(f"{number} entries …", err=True)


def _public(keys: list[Signer]) -> list[dict[str, str]]:
    from proctor.runtime.signing import public_pem

    return [{"key_id": one.key_id, "public_key": public_pem(one.public_key).decode()} for one in keys]


def _entry(logged: LoggedEntry) -> dict[str, Any]:
    from proctor.domain.record.entry import plain_of
    from proctor.studies.record.checks import attestation_of

    signed = None if logged.signature is None else attestation_of(logged)
    return {"entry": plain_of(logged.text), "digest": logged.digest, "attestation": signed}


def _show(logged: LoggedEntry) -> None:
    entry = _entry(logged)["entry"]
    content = entry["content"]
    outcome = (content.get("event") or content).get("outcome", "")
    say(f"entry {logged.sequence}  {entry['kind']}  {outcome}  {entry['time']}")
    rows = {
        "audit": entry["audit_id"],
        **_said(content),
        "digest": logged.digest,
        "previous": entry["previous"] or "none: it is the first",
        "signed by": entry["signer"]["key_id"] if entry["signer"] else f"nobody: {entry['unsigned_because']}",
        **entry["content"].get("digests", {}),
    }
    for name, value in rows.items():
        say(f"  {name:<12} {value}")


def _print_actions(done: list[ActionOnRecord]) -> None:
    rows = [(one.at, one.audit_id or "", one.action, f"{one.name} ({one.via})", _worded(one.detail)) for one in done]
    if rows:
        say(table(("at", "audit", "action", "who", "detail"), rows))


def _worded(detail: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in detail.items())


def _said(content: dict[str, Any]) -> dict[str, Any]:
    """What a sign-off or the end of an approval says beside what every entry does."""
    by = content.get("by") or {}
    person = {"by": f"{by['name']} (via {by['via']})"} if by else {}
    names = ("verb", "reason", "reference", "expires_at", "because", "superseded_by")
    return person | {name: content[name] for name in names if content.get(name) is not None}


def _plain(checked: Checked, source: str) -> dict[str, Any]:
    return {
        "intact": checked.intact,
        "source": source,
        "as_of": checked.as_of,
        "entries": checked.entries,
        "signed": checked.signed,
        "taken_in": checked.taken_in,
        "head": checked.head,
        "reports": checked.reports,
        "witnesses": checked.witnesses,
        "counts": checked.counts,
        "findings": [
            {
                "code": finding.code.value,
                "fault": finding.is_fault,
                "sequence": finding.sequence,
                "audit_id": finding.audit_id,
                "text": finding.text,
            }
            for finding in checked.findings
        ],
    }


def _print(checked: Checked, source: str) -> None:
    when = f" as of {checked.as_of}" if checked.as_of else ""
    verdict = "is intact" if checked.intact else "IS NOT INTACT"
    say(
        f"{source}{when} {verdict}: {checked.entries} entries, {checked.signed} of them signed by a key that is trusted"
    )
    say(
        f"  {checked.reports} reports and {checked.witnesses} attestations or checkpoints held to it"
        + (f"; {checked.taken_in} entries were taken in, decided before there was a log" if checked.taken_in else "")
    )
    say(f"  head {checked.head or 'none'}")
    # What is wrong before what is only worth knowing.
    findings = sorted(checked.findings, key=lambda finding: not finding.is_fault)
    if findings:
        rows = [
            ("fault" if one.is_fault else "note", one.code.value, one.sequence or "", one.audit_id or "", one.text)
            for one in findings[:_SHOWN]
        ]
        say(table(("", "code", "entry", "audit", "what"), rows))
    if len(findings) > _SHOWN:
        say(f"{len(findings) - _SHOWN} more: --format json has all of them")
