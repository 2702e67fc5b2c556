"""Checking the chain of a log, entry by entry, in the order in which it was written.

What one entry is found to be does not spoil the next: an edited entry is one finding, and a gap is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from proctor.domain.canonical import json_digest
from proctor.domain.problems import visible
from proctor.domain.record.attestation import STATEMENT_PAYLOAD, signed_bytes, statement_bytes
from proctor.domain.record.entry import Entry, EntryKind, LoggedEntry, plain_of, text_digest
from proctor.domain.record.finding import Code, Finding
from proctor.domain.standing import Standing, standing_after

#: Whether a signature (base64) over a message is that of a public key (base64).
Verifies = Callable[[str, bytes, str], bool]
#: The id of a public key (base64).
KeyId = Callable[[str], str]


class Trust(NamedTuple):
    """Whom a check believes, and how it computes."""

    keys: Mapping[str, str]
    """The keys whose signatures count: public key (base64) by id."""
    verifies: Verifies
    key_id: KeyId


class Decided(NamedTuple):
    """What the log says of an audit's decision."""

    sequence: int
    event: str
    """Digest of the event's canonical JSON, or of the text that was taken in."""
    decided_at: str
    report: str | None
    files: dict[str, str]


class Chain:
    """A log that is being checked. `feed` takes its entries one after the other, `ended` says what is left to say."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._previous: str | None = None
        self._unsigned: list[int] = []
        #: Whether nothing but what was there before the log, which nobody signed.
        self._only_taken_in = True
        self._unknown: dict[str, list[int]] = {}
        self.length = 0
        """Sequence number of the last entry."""
        self.seen = 0
        self.signed = 0
        """Entries with a signature that counts."""
        self.taken_in = 0
        self.digests: dict[int, str] = {}
        """The digest of each entry's text as it was found."""
        self.decided: dict[str, Decided] = {}
        self.last: Entry | None = None
        """The entry that was fed last, where it can be read."""
        self.standings: dict[str, Standing] = {}
        """What holds for each audit after the entries so far."""

    @property
    def head(self) -> str | None:
        """Digest of the last entry."""
        return self.digests.get(self.length)

    def feed(self, logged: LoggedEntry) -> Iterator[Finding]:
        """Take the next entry, and say what is wrong with it."""
        expected, number = self.length + 1, logged.sequence
        if number != expected:
            yield Finding(Code.GAP, _gap(expected, number), number)
        digest = text_digest(logged.text)
        before, self._previous = self._previous, logged.digest
        self.seen, self.length, self.digests[number] = self.seen + 1, number, digest
        if digest != logged.digest:
            yield Finding(Code.EDITED, "its text is not the one that its digest was taken of", number)
        entry = read_entry(logged.text)
        self.last = None if isinstance(entry, str) else entry
        if isinstance(entry, str):
            yield Finding(Code.UNREADABLE, entry, number)
            return
        if entry.sequence != number:
            yield Finding(Code.EDITED, f"it says of itself that it is number {entry.sequence}", number)
        if number == expected and entry.previous != before:
            yield Finding(
                Code.BROKEN_CHAIN, f"it does not follow on entry {number - 1}: one of the two was changed", number
            )
        yield from self._check_signature(logged, entry)
        if entry.kind is EntryKind.DECISION:
            yield from self._note_decision(entry)
        else:
            yield from self._hold_to_decision(entry)
        try:
            standing = standing_after(self.standings.get(entry.audit_id), entry)
        except ValidationError as error:
            yield Finding(Code.UNREADABLE, _newer(error), number, entry.audit_id)
            return
        if standing is not None:
            self.standings[entry.audit_id] = standing

    def ended(self) -> Iterator[Finding]:
        """What can be said only when the last entry is known."""
        for key, numbers in self._unknown.items():
            yield Finding(
                Code.UNKNOWN_KEY,
                f"{_entries(numbers)} signed by the key {key}, which is none of those that are trusted here",
                numbers[0],
            )
        if self._unsigned and not self._only_taken_in:
            yield Finding(
                Code.UNSIGNED_END,
                f"{_entries(self._unsigned)} unsigned, and nothing behind is signed: whoever can write to the log can "
                "have written this",
                self._unsigned[0],
            )

    def _check_signature(self, logged: LoggedEntry, entry: Entry) -> Iterator[Finding]:
        number, signer, signature = logged.sequence, entry.signer, logged.signature
        taken_in = entry.content.get("taken_in") is True
        self.taken_in += taken_in
        if signer is None or signature is None:
            self._unsigned.append(number)
            if signer is not None:
                yield Finding(Code.SIGNATURE_MISSING, "it says who signed it, and has no signature", number)
            elif signature is not None:
                yield Finding(Code.SIGNATURE_WRONG, "it has a signature, and says that it has none", number)
            elif taken_in and self._only_taken_in:
                return
            else:
                yield Finding(Code.UNSIGNED, visible(entry.unsigned_because or "it does not say why"), number)
            self._only_taken_in = False
            return
        self._only_taken_in = False
        if self._trust.key_id(signer.public_key) != signer.key_id or not self._is_signed(entry, signature):
            yield Finding(Code.SIGNATURE_WRONG, f"it is not what the key {signer.key_id} signed", number)
        elif signer.key_id not in self._trust.keys:
            self._unknown.setdefault(signer.key_id, []).append(number)
        else:
            self.signed += 1
            # It names the entry before by its digest, and that one the one before it.
            self._unsigned.clear()

    def _is_signed(self, entry: Entry, signature: str) -> bool:
        try:
            message = signed_bytes(STATEMENT_PAYLOAD, statement_bytes(entry.plain()))
        except ValueError:
            return False
        assert entry.signer is not None
        return self._trust.verifies(entry.signer.public_key, message, signature)

    def _note_decision(self, entry: Entry) -> Iterator[Finding]:
        if entry.audit_id in self.decided:
            first = self.decided[entry.audit_id].sequence
            yield Finding(
                Code.DECIDED_TWICE, f"entry {first} holds a decision on it already", entry.sequence, entry.audit_id
            )
            return
        content = entry.content
        digests, files = content.get("digests"), content.get("files")
        report = digests.get("report") if isinstance(digests, dict) else None
        self.decided[entry.audit_id] = Decided(
            entry.sequence,
            event_digest(content),
            str(content.get("decided_at")),
            report if isinstance(report, str) else None,
            {str(name): str(digest) for name, digest in files.items()} if isinstance(files, dict) else {},
        )

    def _hold_to_decision(self, entry: Entry) -> Iterator[Finding]:
        decided, audit_id = self.decided.get(entry.audit_id), entry.audit_id
        if decided is None:
            yield Finding(Code.UNFOUNDED, "no entry before it decides on its audit", entry.sequence, audit_id)
        elif entry.content.get("of") != self.digests[decided.sequence]:
            text = f"it is about another decision than entry {decided.sequence}: one of the two was changed"
            yield Finding(Code.UNFOUNDED, text, entry.sequence, audit_id)


def event_digest(content: dict[str, Any]) -> str:
    """Digest of a decision entry's event, by which it is compared with the decision's row."""
    if "event_text" in content:
        return text_digest(str(content["event_text"]))
    return json_digest(content.get("event"))


def read_entry(text: str) -> Entry | str:
    """The entry of a text, or what is wrong with it."""
    try:
        entry = Entry.model_validate(plain_of(text))
        if entry.text() != text:
            return "it is not in canonical JSON"
    except ValidationError as error:
        return _newer(error)
    except (ValueError, OverflowError, RecursionError) as error:
        return f"it cannot be read: {visible(str(error)[:200])}"
    return entry


def _newer(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = visible(".".join(map(str, fault["loc"]))[:60])
    return f"it is damaged, or needs a newer Proctor: {where or 'it'}: {visible(fault['msg'])}"


def _gap(expected: int, found: int) -> str:
    if found < expected:
        return f"it stands where entry {expected} should"
    missing = f"entry {expected} is" if found == expected + 1 else f"entries {expected} to {found - 1} are"
    return f"{missing} missing before it"


def _entries(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"entry {numbers[0]} is"
    return f"{len(numbers)} entries from {numbers[0]} to {numbers[-1]} are"
