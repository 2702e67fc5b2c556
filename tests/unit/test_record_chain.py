"""The chain of the decision log: a log as it was written has no fault, and every edit of it is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proctor.domain.record.attestation import STATEMENT_PAYLOAD, signed_bytes, statement_bytes
from proctor.domain.record.chain import Chain
from proctor.domain.record.entry import Entry, EntryKind, LoggedEntry, text_digest
from proctor.domain.record.finding import Code, Finding
from proctor.runtime.signing import Ed25519Key
from proctor.studies.record.checks import trust_in
from tests.record_samples import a_key, a_log, written

Log = list[LoggedEntry]


def found(log: Sequence[LoggedEntry], *keys: Ed25519Key) -> list[Finding]:
    """What a check finds that trusts these keys, by default the one of the samples."""
    chain = Chain(trust_in(key.signer for key in keys or (a_key(),)))
    findings = [finding for logged in log for finding in chain.feed(logged)]
    return [*findings, *chain.ended()]


def faults(log: Sequence[LoggedEntry], *keys: Ed25519Key) -> set[Code]:
    return {finding.code for finding in found(log, *keys) if finding.is_fault}


def changed(logged: LoggedEntry, change: Callable[[dict[str, Any]], None], *, rehash: bool) -> LoggedEntry:
    """An entry with other content, its digest left as it was or taken anew."""
    entry = json.loads(logged.text)
    change(entry)
    text = rfc8785.dumps(entry).decode()
    return logged._replace(text=text, digest=text_digest(text) if rehash else logged.digest)


def approve(entry: dict[str, Any]) -> None:
    entry["content"]["event"]["outcome"] = "block"


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_a_log_as_it_was_written_has_no_finding(n: int) -> None:
    assert found(a_log(n)) == []


def test_an_entry_s_digest_is_the_sha_256_of_its_rfc_8785_form_and_stands_in_the_next() -> None:
    first, second = a_log(2)
    canonical = rfc8785.dumps(json.loads(first.text))
    assert first.text.encode() == canonical
    assert first.digest == "sha256:" + hashlib.sha256(canonical).hexdigest()
    assert json.loads(second.text)["previous"] == first.digest
    assert json.loads(first.text)["previous"] is None


def test_an_edited_entry_is_found_whether_its_digest_was_mended_or_not() -> None:
    log = a_log(3)
    assert faults([log[0], changed(log[1], approve, rehash=False), log[2]]) == {Code.EDITED, Code.SIGNATURE_WRONG}
    mended = [log[0], changed(log[1], approve, rehash=True), log[2]]
    assert faults(mended) == {Code.SIGNATURE_WRONG, Code.BROKEN_CHAIN}


def test_an_edited_entry_spoils_no_other_than_the_next_link() -> None:
    log = a_log(9)
    log[3] = changed(log[3], approve, rehash=True)
    assert {finding.sequence for finding in found(log)} == {4, 5}


def test_a_deleted_entry_in_the_middle_is_one_finding_that_says_which() -> None:
    log = a_log(5)
    (finding,) = found([*log[:2], *log[3:]])
    assert (finding.code, finding.sequence) == (Code.GAP, 4)
    assert "entry 3 is missing" in finding.text
    (finding,) = found([log[0], log[4]])
    assert "entries 2 to 4 are missing" in finding.text


def test_a_deleted_beginning_is_found() -> None:
    assert faults(a_log(3)[1:]) == {Code.GAP}


def test_entries_in_another_order_or_twice_are_found() -> None:
    log = a_log(3)
    assert Code.GAP in faults([log[1], log[0], log[2]])
    assert Code.GAP in faults([log[0], log[0], log[1], log[2]])


def test_an_entry_that_is_renumbered_is_found() -> None:
    log = a_log(3)
    assert Code.EDITED in faults([log[0], log[2]._replace(sequence=2)])


def test_a_log_that_was_written_anew_with_another_key_is_known_by_the_key() -> None:
    (finding,) = found(a_log(4, a_key(2)))
    assert finding.code is Code.UNKNOWN_KEY
    assert a_key(2).signer.key_id in finding.text
    assert "4 entries from 1 to 4" in finding.text


def test_an_entry_that_was_signed_again_with_another_key_is_found() -> None:
    log = a_log(3)
    message = signed_bytes(STATEMENT_PAYLOAD, statement_bytes(json.loads(log[1].text)))
    log[1] = log[1]._replace(signature=a_key(2).sign(message))
    assert faults(log, a_key(), a_key(2)) == {Code.SIGNATURE_WRONG}


def test_a_key_id_that_is_not_the_key_s_is_found() -> None:
    key = a_key(2)
    entry = Entry.model_validate(json.loads(a_log(1)[0].text))
    forged = entry.model_copy(update={"signer": key.signer.model_copy(update={"key_id": a_key().signer.key_id})})
    assert faults([written(forged, key)]) == {Code.SIGNATURE_WRONG}


def test_a_signature_that_was_taken_away_is_found() -> None:
    log = a_log(3)
    log[1] = log[1]._replace(signature=None)
    assert faults(log) == {Code.SIGNATURE_MISSING}


def test_entries_of_two_keys_are_intact_where_both_are_trusted() -> None:
    first, second = a_log(2), Entry.model_validate(json.loads(a_log(3)[2].text))
    other = written(second.model_copy(update={"signer": a_key(2).signer}), a_key(2))
    assert found([*first, other], a_key(), a_key(2)) == []
    assert faults([*first, other]) == {Code.UNKNOWN_KEY}


def test_an_unsigned_entry_is_a_note_where_a_later_one_is_signed_and_a_fault_at_the_end() -> None:
    (note,) = found(a_log(3, unsigned=[2]))
    assert (note.code, note.sequence, note.text, note.is_fault) == (Code.UNSIGNED, 2, "the disk was full", False)
    assert faults(a_log(3, unsigned=[2, 3])) == {Code.UNSIGNED_END}


def test_a_signature_under_an_entry_that_says_it_has_none_is_found() -> None:
    log = a_log(2, unsigned=[1])
    log[0] = log[0]._replace(signature=log[1].signature)
    assert Code.SIGNATURE_WRONG in faults(log)


def test_a_second_decision_on_an_audit_is_found() -> None:
    log = a_log(2)
    second = Entry.model_validate(json.loads(log[1].text)).model_copy(update={"audit_id": "audit2-1"})
    (finding,) = found([log[0], written(second, a_key())])
    assert (finding.code, finding.audit_id) == (Code.DECIDED_TWICE, "audit2-1")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"version": 1}', "[" * 5000, '{"a":"\\ud800"}', "1" * 5000],
    ids=["nothing", "cut", "list", "null", "half", "deep", "surrogate", "long number"],
)
def test_what_is_no_entry_is_found_and_stops_nothing(text: str) -> None:
    log = a_log(3)
    log[1] = LoggedEntry(2, text, text_digest(text), None)
    assert Code.UNREADABLE in faults(log)
    assert {finding.sequence for finding in found(log)} <= {2, 3}


def test_an_entry_that_is_not_in_canonical_json_is_found() -> None:
    log = a_log(1)
    text = json.dumps(json.loads(log[0].text), indent=1)
    assert faults([log[0]._replace(text=text, digest=text_digest(text))]) == {Code.UNREADABLE}


def test_a_kind_that_this_proctor_does_not_know_needs_a_newer_one() -> None:
    log = a_log(1)
    odd = changed(log[0], lambda entry: entry.update(kind="pardon"), rehash=True)
    assert any("newer Proctor" in finding.text for finding in found([odd]))
    assert {kind.value for kind in EntryKind} == {"decision", "override", "expiry"}


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_one_edit_of_a_log_is_found(data: st.DataObject) -> None:
    """But one: the end may be cut off. That is what a checkpoint, a witness and the attestations are for."""
    n = data.draw(st.integers(2, 6))
    log = a_log(n)
    place = data.draw(st.integers(0, n - 1))
    kind = data.draw(st.sampled_from(["text", "digest", "signature", "drop", "swap", "repeat"]))
    edited = list(log)
    if kind == "drop":
        place = data.draw(st.integers(0, n - 2))
        del edited[place]
    elif kind == "swap":
        other = data.draw(st.integers(0, n - 1).filter(lambda at: at != place))
        edited[place], edited[other] = edited[other], edited[place]
    elif kind == "repeat":
        edited.insert(data.draw(st.integers(0, n)), log[place])
    else:
        values = dict(log[place]._asdict())
        old = values[kind]
        at = data.draw(st.integers(0, len(old) - 1))
        values[kind] = (
            old[:at] + data.draw(st.characters(codec="ascii").filter(lambda one: one != old[at])) + old[at + 1 :]
        )
        edited[place] = LoggedEntry(**values)
    assert any(finding.is_fault for finding in found(edited))


@settings(max_examples=50, deadline=None)
@example(content={"": 2.0**53})
@given(
    content=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_whatever_an_event_holds_its_entry_is_read_as_it_was_written(content: dict[str, Any]) -> None:
    entry = Entry.model_validate(json.loads(a_log(1)[0].text))
    event = {**entry.content, "event": {**entry.content["event"], "scope": content}}
    assert found([written(entry.model_copy(update={"content": event}), a_key())]) == []
