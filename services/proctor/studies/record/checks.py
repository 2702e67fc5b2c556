"""Verifying the record: a store with what lies around it, or an export by itself.

Nothing is written, and nothing that is read is taken for true because it stands where it should: an entry is held to
its digest, its neighbours and its signature, a decision's row and a report to the entry.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from proctor.domain.canonical import bytes_digest, json_digest
from proctor.domain.errors import StoreError
from proctor.domain.problems import visible
from proctor.domain.record.attestation import CHECKPOINT_PAYLOAD, entry_envelope, signed_bytes
from proctor.domain.record.chain import Chain, Decided, Trust
from proctor.domain.record.entry import LoggedEntry, Signer, plain_of, text_digest
from proctor.domain.record.finding import Code, Finding
from proctor.formats.record_export import ExportedEntry, ExportHead, read_export
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.records.attestations import ATTESTATIONS
from proctor.runtime.records.decision_log import Head, LogView
from proctor.runtime.records.standings import row_of
from proctor.runtime.records.store import Records
from proctor.runtime.signing import key_id, verifies

#: As Proctor makes them. Another in a damaged log is not made a path of.
_AUDIT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_REPORT_FILE: Final = "report.json"
#: An attestation is a few kilobytes.
MAX_ATTESTATION_BYTES: Final = 16 << 20

Told = Callable[[int], None]


class Checked(NamedTuple):
    """What a check came to."""

    entries: int
    signed: int
    """Of them, by a key that is trusted."""
    taken_in: int
    """Of them, decided before there was a log."""
    head: str | None
    as_of: str | None
    """When an export was made; None for a store, which was looked at now."""
    reports: int
    """How many reports were held to their digests."""
    witnesses: int
    """How many attestations and checkpoints outside of the log were held to it."""
    findings: tuple[Finding, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.is_fault for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """How many findings of each code."""
        return dict(Counter(finding.code.value for finding in self.findings))


def trust_in(keys: Iterable[Signer]) -> Trust:
    """Believe these keys, and no others."""
    return Trust({key.key_id: key.public_key for key in keys}, verifies, key_id)


def check_store(
    records: Records,
    artifacts: ArtifactStore | None,
    home: Path,
    trust: Trust,
    witnesses: Sequence[Path] = (),
    told: Told = lambda number: None,
) -> Checked:
    """Verify the log of a record store, the decisions in it, and the reports that they name.

    Args:
        records: the store.
        artifacts: where reports are; None leaves them out.
        home: where the scorer laid reports and attestations, as far as it runs on this machine.
        trust: whose signatures count.
        witnesses: checkpoints or exports that were made before, and kept where nobody who writes to the store writes.
        told: told how many entries are done.

    Raises:
        StoreError: the store cannot be read.
        BadInputError: a witness is none.
    """
    heads = [(path, read_export(path)[0]) for path in witnesses]
    chain, findings = Chain(trust), list[Finding]()
    with records.log_view() as view:
        for logged in view.entries():
            findings += chain.feed(logged)
            told(chain.seen)
        findings += chain.ended()
        findings += _end(view.head(), chain)
        findings += _decisions(view, chain)
        findings += _standings(view, chain)
    n_reports = 0
    if artifacts is not None:
        n_reports = sum(decided.report is not None for decided in chain.decided.values())
        findings += _reports(chain.decided, artifacts, home)
    laid = sorted((home / "reports").glob(f"*/{ATTESTATIONS}"))
    for path in laid:
        findings += _attestation(path, chain, trust)
    for path, head in heads:
        findings += _witness(path, head, chain, trust)
    return _checked(chain, findings, n_reports, len(laid) + len(heads), None)


def check_export(path: Path, trust: Trust, witnesses: Sequence[Path] = (), told: Told = lambda number: None) -> Checked:
    """Verify an export by itself: its chain, its signatures, its reports, and that it is whole.

    Raises:
        BadInputError: it is no export, or a witness is none.
    """
    heads = [(witness, read_export(witness)[0]) for witness in witnesses]
    head, entries = read_export(path)
    chain, findings, n_reports = Chain(trust), list[Finding](), 0
    for exported in entries:
        findings += chain.feed(exported.logged)
        findings += _travelling(exported, chain)
        n_reports += exported.report is not None
        told(chain.seen)
    findings += chain.ended()
    findings += _whole(head, chain, trust)
    for witness, known in heads:
        findings += _witness(witness, known, chain, trust)
    return _checked(chain, findings, n_reports, len(heads), head.time)


def _checked(chain: Chain, findings: list[Finding], reports: int, witnesses: int, as_of: str | None) -> Checked:
    found = tuple(findings)
    return Checked(chain.seen, chain.signed, chain.taken_in, chain.head, as_of, reports, witnesses, found)


def _end(head: Head | None, chain: Chain) -> Iterator[Finding]:
    if head is None:
        yield Finding(Code.HEAD_DIFFERS, "the row that says where the log ends (decision_log_head) is gone")
    elif head != (chain.length, chain.head):
        yield Finding(
            Code.HEAD_DIFFERS,
            f"the log ends with entry {chain.length}, and its end (decision_log_head) is said to be entry "
            f"{head.sequence}, or another one of that number: entries at the end were taken away or changed",
        )


def _decisions(view: LogView, chain: Chain) -> Iterator[Finding]:
    unseen = dict(chain.decided)
    for row in view.decisions():
        decided = unseen.pop(row.audit_id, None)
        if decided is None:
            yield Finding(
                Code.DECISION_NOT_LOGGED,
                "it has a decision on record, and no entry; where an earlier Proctor decided during an upgrade, "
                "`proctor record take-in` adds one",
                audit_id=row.audit_id,
            )
        elif decided.event not in _event_digests(row.event) or row.decided_at != decided.decided_at:
            yield Finding(
                Code.DECISION_EDITED, "its decision is not what the log says of it", decided.sequence, row.audit_id
            )
    for audit_id, decided in unseen.items():
        yield Finding(Code.DECISION_MISSING, "the log has a decision, whose row is gone", decided.sequence, audit_id)
    for audit_id in view.without_decision():
        if audit_id not in unseen:
            yield Finding(Code.DECISION_MISSING, "it is decided, and there is neither row nor entry", None, audit_id)


def _standings(view: LogView, chain: Chain) -> Iterator[Finding]:
    unseen = {audit_id: row_of(standing) for audit_id, standing in chain.standings.items()}
    for row in view.standings():
        expected = unseen.pop(row["audit_id"], None)
        sequence = None if expected is None else expected["sequence"]
        if expected is None:
            text = f"the store says that it stands at {visible(row['outcome'])}, and nothing in the log does"
            yield Finding(Code.STANDING_DIFFERS, text, None, row["audit_id"])
        elif odd := sorted(name for name, value in expected.items() if row[name] != value):
            text = f"what the store says that holds is not what the log says: {', '.join(odd)}"
            yield Finding(Code.STANDING_DIFFERS, text, sequence, row["audit_id"])
    for audit_id, expected in unseen.items():
        text = f"by the log it stands at {expected['outcome'].value}, and the store does not say so"
        yield Finding(Code.STANDING_DIFFERS, text, expected["sequence"], audit_id)


def _event_digests(event: str) -> tuple[str, ...]:
    """By which an entry may know a row's event: as JSON, or as the text that was taken in."""
    try:
        return json_digest(json.loads(event)), text_digest(event)
    except (ValueError, RecursionError):
        return (text_digest(event),)


def _reports(decided: dict[str, Decided], artifacts: ArtifactStore, home: Path) -> Iterator[Finding]:
    for audit_id, one in decided.items():
        if one.report is None:
            continue
        try:
            artifacts.get(one.report)
        except StoreError as error:
            yield Finding(
                Code.REPORT_MISSING, f"its report is not in the artifact store: {error}", one.sequence, audit_id
            )
        if not _AUDIT_ID.fullmatch(audit_id):
            continue
        folder = home / "reports" / audit_id
        for name, digest in {_REPORT_FILE: one.report, **one.files}.items():
            if _FILE_NAME.fullmatch(name) and (found := _file_digest(folder / name)) not in (None, digest):
                yield Finding(
                    Code.REPORT_SWAPPED,
                    f"{folder / name} is not the file that was written with the decision, but {found}",
                    one.sequence,
                    audit_id,
                )


def _file_digest(path: Path) -> str | None:
    """The digest of a file's bytes; None where it cannot be read, as where the scorer ran elsewhere."""
    try:
        return bytes_digest(path.read_bytes())
    except OSError:
        return None


def _attestation(path: Path, chain: Chain, trust: Trust) -> Iterator[Finding]:
    """An attestation beside a report bears witness to an entry: the log must have just that one."""
    audit_id = path.parent.name
    try:
        with path.open("rb") as stream:
            envelope = json.loads(stream.read(MAX_ATTESTATION_BYTES))
        entry = plain_of(base64.b64decode(envelope["payload"], validate=True).decode())["predicate"]
        number, digest = entry["sequence"], json_digest(entry)
        signatures = envelope["signatures"]
        is_whole = envelope == entry_envelope(entry, signatures[0]["sig"] if signatures else None)
        is_whole &= (entry["signer"] is None) == (not signatures)
    except (OSError, ValueError, ArithmeticError, TypeError, LookupError, RecursionError) as error:
        text = f"{path} is no attestation ({type(error).__name__})"
        yield Finding(Code.ATTESTATION_DIFFERS, text, audit_id=audit_id)
        return
    known = chain.digests.get(number) if isinstance(number, int) else None
    if known is None:
        text = f"{path} attests entry {visible(str(number)[:20])}, which the log does not have: entries were taken away"
        yield Finding(Code.ATTESTATION_DIFFERS, text, None, audit_id)
    elif known != digest:
        text = f"{path} attests another entry {number} than the log has: one of the two was changed"
        yield Finding(Code.ATTESTATION_DIFFERS, text, number, audit_id)
    elif not is_whole or (signatures and not _is_signed(envelope, trust)):
        text = f"{path} holds entry {number}, under a signature that is not its own or whose key is not trusted"
        yield Finding(Code.ATTESTATION_DIFFERS, text, number, audit_id)


def _is_signed(envelope: dict[str, Any], trust: Trust) -> bool:
    """Whether an attestation has the signature of a key that is trusted."""
    try:
        (signature,) = envelope["signatures"]
        known = trust.keys[signature["keyid"]]
        message = signed_bytes(envelope["payloadType"], base64.b64decode(envelope["payload"]))
        return trust.verifies(known, message, signature["sig"])
    except (ValueError, TypeError, LookupError):
        return False


def _travelling(exported: ExportedEntry, chain: Chain) -> Iterator[Finding]:
    """What travels with an entry of an export, which was fed before."""
    entry = chain.last
    if entry is None:
        return
    number, audit_id = exported.logged.sequence, entry.audit_id
    if exported.envelope is not None:
        try:
            expected = entry_envelope(entry.plain(), exported.logged.signature)
        except ValueError:
            expected = {}
        if exported.envelope != expected:
            yield Finding(Code.ENVELOPE_DIFFERS, "its attestation is not the one of this entry", number, audit_id)
    if exported.report is not None:
        decided = chain.decided.get(audit_id)
        if decided is None or bytes_digest(exported.report) != decided.report:
            yield Finding(Code.REPORT_SWAPPED, "the report is not the one that was decided on", number, audit_id)


def _whole(head: ExportHead, chain: Chain, trust: Trust) -> Iterator[Finding]:
    if (head.sequence, head.digest) != (chain.length, chain.head):
        yield Finding(
            Code.CUT_OFF,
            f"the checkpoint says that the log ends with entry {head.sequence} ({head.digest}), and the file ends with "
            f"{chain.length} ({chain.head})",
        )
    if why := _unproven(head, trust):
        yield Finding(Code.CUT_OFF, f"that the file holds the whole log is not proven: its checkpoint {why}")


def _unproven(head: ExportHead, trust: Trust) -> str:
    """What is wrong with a checkpoint's signature; empty where nothing is."""
    signatures = head.envelope.get("signatures")
    if not signatures:
        return "is not signed"
    try:
        (signature,) = signatures
        known = trust.keys.get(signature["keyid"])
        if known is None:
            key = visible(str(signature["keyid"])[:64])
            return f"is signed by the key {key}, which is none of those that are trusted here"
        message = signed_bytes(CHECKPOINT_PAYLOAD, base64.b64decode(head.envelope["payload"]))
        right = head.envelope["payloadType"] == CHECKPOINT_PAYLOAD
        return "" if right and trust.verifies(known, message, signature["sig"]) else "has a wrong signature"
    except (ValueError, TypeError, LookupError):
        return "has a signature that cannot be read"


def _witness(path: Path, head: ExportHead, chain: Chain, trust: Trust) -> Iterator[Finding]:
    if why := _unproven(head, trust):
        yield Finding(Code.WITNESS_CONTRADICTS, f"{path} proves nothing: its checkpoint {why}")
    elif head.sequence > chain.length:
        text = f"{path} says that there were {head.sequence} entries at {head.time}, and there are {chain.length}"
        yield Finding(Code.WITNESS_CONTRADICTS, text)
    elif head.sequence and chain.digests.get(head.sequence) != head.digest:
        text = f"entry {head.sequence} is not the one that {path} saw at {head.time}"
        yield Finding(Code.WITNESS_CONTRADICTS, text, head.sequence)


def attestation_of(logged: LoggedEntry) -> dict[str, Any]:
    """The DSSE envelope of an entry.

    Raises:
        StoreError: the entry cannot be read.
    """
    try:
        return entry_envelope(plain_of(logged.text), logged.signature)
    except (ValueError, ArithmeticError, TypeError, LookupError, RecursionError) as error:
        raise StoreError(f"entry {logged.sequence} of the decision log cannot be read: {error}") from None
