"""Whether what stands for an audit is what the signed log says of it, from that audit's entries and their neighbours.

Quick enough to be asked at each deployment. What only the whole chain shows, such as an entry that was taken away with
everything that named it, `proctor record verify` finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from proctor.domain.canonical import json_digest
from proctor.domain.record.attestation import STATEMENT_PAYLOAD, signed_bytes, statement_bytes
from proctor.domain.record.chain import Trust, event_digest, read_entry
from proctor.domain.record.entry import Entry, EntryKind, LoggedEntry, text_digest
from proctor.domain.standing import Standing, standing_after


class Surroundings(NamedTuple):
    """What is around an audit's entries in the log."""

    others: Mapping[int, LoggedEntry]
    """The entries before and after each of them, by number."""
    length: int
    """The number of entries that the log is said to have."""
    head: str | None
    """The digest of the last."""


def fault_of_standing(
    standing: Standing, event: Mapping[str, object], entries: Sequence[LoggedEntry], around: Surroundings, trust: Trust
) -> str | None:
    """What is wrong with what stands for an audit; None where the log bears it out.

    Args:
        standing: as the store has it, whether its time is over or not.
        event: of the decision's own row.
        entries: those of the audit, in the log's order.
        around: what is around them.
        trust: whose signatures count.
    """
    holds: Standing | None = None
    first: str | None = None
    for logged in entries:
        read = read_entry(logged.text)
        if isinstance(read, str):
            return f"entry {logged.sequence}: {read}."
        if fault := _fault(logged, read, around, trust):
            return f"entry {logged.sequence} {fault}."
        if read.kind is EntryKind.DECISION:
            if event_digest(read.content) != json_digest(event):
                return f"its decision is not the one of entry {logged.sequence}."
            first = logged.digest
        elif read.content.get("of") != first:
            return f"entry {logged.sequence} is about another decision."
        try:
            holds = standing_after(holds, read)
        except ValidationError:
            return f"entry {logged.sequence} is damaged, or needs a newer Proctor."
    if holds is None:
        return "its decision is not in the log."
    if holds != standing:
        return f"by the log it stands at {holds.outcome.value} since entry {holds.sequence}, and the store differs."
    return None


def _fault(logged: LoggedEntry, entry: Entry, around: Surroundings, trust: Trust) -> str:
    if text_digest(logged.text) != logged.digest or entry.sequence != logged.sequence:
        return "is not the text that its digest was taken of"
    if entry.signer is None or logged.signature is None:
        return "is not signed"
    if entry.signer.key_id not in trust.keys:
        return f"is signed by the key {entry.signer.key_id[:16]}…, which is not trusted here"
    try:
        message = signed_bytes(STATEMENT_PAYLOAD, statement_bytes(entry.plain()))
    except ValueError:
        return "names no weights"
    if not trust.verifies(trust.keys[entry.signer.key_id], message, logged.signature):
        return "has a signature that is not its key's"
    before, after = around.others.get(logged.sequence - 1), around.others.get(logged.sequence + 1)
    if entry.previous != (None if before is None else text_digest(before.text)):
        return "does not follow on the entry before it"
    if logged.sequence == around.length:
        return "" if logged.digest == around.head else "is not the end that the log is said to have"
    following = None if after is None else read_entry(after.text)
    if not isinstance(following, Entry) or following.previous != logged.digest:
        return "is not the one that the entry after it names"
    return ""
