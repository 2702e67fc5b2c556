"""The decision log in a real store: one chain whoever decides at once, one entry a decision, and every edit found."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from proctor.domain.canonical import canonical_json
from proctor.domain.errors import StoreError
from proctor.domain.record.entry import text_digest
from proctor.domain.record.finding import Code
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.decision_log import NoKey
from proctor.runtime.records.migrations.versions.v0001_baseline import _BASELINE
from proctor.runtime.records.schema import SCHEMA_VERSION, version_of
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import DECISION_LOG, DECISION_LOG_HEAD
from proctor.runtime.signing import Ed25519Key
from proctor.studies.record.checks import Checked, check_store, trust_in
from proctor.studies.record.exporting import checkpoint_line
from tests.record_samples import a_key, a_log, an_event, by_hand, decide, lay
from tests.together import said_together

PROCESSES, DECISIONS_EACH = 6, 10


def check(records_url: str, home: Path, *witnesses: Path, key: Ed25519Key | None = None) -> Checked:
    with closing(Records(records_url)) as records:
        trust = trust_in([(key or a_key()).signer])
        return check_store(records, None, home, trust, witnesses)


def codes(checked: Checked) -> set[Code]:
    return {finding.code for finding in checked.findings}


def test_a_decision_and_its_entry_are_written_together_once(records_url: str, tmp_path: Path) -> None:
    with closing(Records(records_url)) as records:
        event = an_event("a-1")
        assert records.decide("a-1", event, files={"report.html": "sha256:" + "0" * 64}, key=a_key())
        assert not records.decide("a-1", an_event("a-1", outcome="block"), key=a_key())
        (logged,) = records.logged("a-1")
        assert records.logged("b-1") == []
        assert records.decision("a-1") == event
    entry = json.loads(logged.text)
    assert entry["content"]["event"] == event
    assert entry["content"]["digests"]["report"] == event["reportDigest"]
    assert entry["content"]["taken_in"] is False
    assert entry["time"] == entry["content"]["decided_at"]
    checked = check(records_url, tmp_path)
    assert (checked.intact, checked.entries, checked.signed) == (True, 1, 1)


def test_an_event_that_no_canonical_json_holds_is_not_decided_on(records_url: str, tmp_path: Path) -> None:
    with closing(Records(records_url)) as records:
        with pytest.raises(ValueError, match="non-UTF-8"):
            records.decide("a-1", an_event("a-1", modelId="\ud800"), key=a_key())
        assert records.decision("a-1") is None
    assert check(records_url, tmp_path).entries == 0


_DECIDE = """
import sys
from proctor.runtime.records.store import Records
from tests.record_samples import a_key, an_event
records = Records(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
first = int(sys.argv[2])
for number in range(first, first + int(sys.argv[3])):
    audit_id = f"audit{number}-1"
    # Each audit is decided by two processes, of which one is too late.
    print(int(records.decide(audit_id, an_event(audit_id), key=a_key())))
"""


def test_several_processes_that_decide_at_once_give_one_unbroken_chain(records_url: str, tmp_path: Path) -> None:
    Records(records_url).close()
    calls = [(records_url, str(number // 2 * DECISIONS_EACH), str(DECISIONS_EACH)) for number in range(PROCESSES)]
    said = said_together(_DECIDE, calls)
    assert [errors for _, errors in said] == [""] * PROCESSES
    audits = PROCESSES // 2 * DECISIONS_EACH
    assert sum(out.count("1") for out, _ in said) == audits
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries, checked.signed) == ((), audits, audits)


_DIE = """
import os, signal, sys
import sqlalchemy as sa
from proctor.runtime.records.store import Records
from tests.record_samples import a_key, an_event
records = Records(sys.argv[1])
def die(connection, cursor, statement, parameters, context, executemany):
    if statement.startswith(sys.argv[2]): os.kill(os.getpid(), signal.SIGKILL)
sa.event.listen(records._engine, "after_cursor_execute", die)
records.decide("a-1", an_event("a-1"), key=a_key())
if sys.argv[2] == "committed": os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    "boundary",
    ["INSERT INTO decisions", "UPDATE decision_log_head SET sequence", "INSERT INTO decision_log", "committed"],
)
def test_whoever_dies_while_it_decides_leaves_both_or_neither_and_the_next_one_goes_on(
    records_url: str, tmp_path: Path, boundary: str
) -> None:
    decide(records_url, 2)
    died = subprocess.run([sys.executable, "-c", _DIE, records_url, boundary], capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    with closing(Records(records_url)) as records:
        there = boundary == "committed"
        assert (records.decision("a-1") is not None) == there
        assert len(records.logged("a-1")) == there
        assert records.decide("a-1", an_event("a-1"), key=a_key()) != there
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries) == ((), 3)


def test_the_log_refuses_to_be_changed_by_accident(records_url: str, tmp_path: Path) -> None:
    decide(records_url, 2)
    engine = sa.create_engine(records_url.replace("postgresql://", "postgresql+psycopg://"))
    for change in ("UPDATE decision_log SET entry = '{}'", "DELETE FROM decision_log WHERE sequence = 1"):
        with pytest.raises(DBAPIError, match="only ever added to"), engine.begin() as connection:
            connection.exec_driver_sql(change)
    engine.dispose()
    assert check(records_url, tmp_path).intact


def test_a_decision_does_not_wait_for_a_key_and_verifying_says_that_it_had_none(
    records_url: str, tmp_path: Path
) -> None:
    class Broken:
        signer = a_key().signer

        def sign(self, message: bytes) -> str:
            raise OSError("the token was pulled out")

    with closing(Records(records_url)) as records:
        assert records.decide("a-1", an_event("a-1"), key=NoKey("the disk was full"))
        assert records.decide("b-1", an_event("b-1"), key=Broken())
    checked = check(records_url, tmp_path)
    assert [finding.text for finding in checked.findings if finding.code is Code.UNSIGNED] == [
        "the disk was full",
        "OSError: the token was pulled out",
    ]
    assert (checked.intact, codes(checked)) == (False, {Code.UNSIGNED, Code.UNSIGNED_END})
    with closing(Records(records_url)) as records:
        records.decide("c-1", an_event("c-1"), key=a_key())
    assert check(records_url, tmp_path).intact


# What whoever can write to the database may do, and what is found of it.

_NOT_LOGGED = (Code.DECISION_NOT_LOGGED, Code.STANDING_DIFFERS)
_THREE_ENTRIES = (
    "UPDATE decision_log_head SET sequence = 3, digest = (SELECT digest FROM decision_log WHERE sequence = 3)"
)


def _edit_entry(connection: sa.Connection) -> None:
    row = connection.execute(sa.select(DECISION_LOG).where(DECISION_LOG.c.sequence == 2)).one()
    entry = json.loads(row.entry)
    entry["content"]["event"]["outcome"] = "block"
    connection.execute(
        DECISION_LOG.update().where(DECISION_LOG.c.sequence == 2).values(entry=canonical_json(entry).decode())
    )


def _edit_entry_and_digests(connection: sa.Connection) -> None:
    """From entry 2 on the whole chain is computed anew; the signatures cannot be."""
    previous = None
    for row in connection.execute(sa.select(DECISION_LOG).order_by(DECISION_LOG.c.sequence)).all():
        entry = json.loads(row.entry)
        entry["previous"] = previous
        if row.sequence == 2:
            entry["content"]["event"]["outcome"] = "block"
        text = canonical_json(entry).decode()
        previous = text_digest(text)
        change = DECISION_LOG.update().where(DECISION_LOG.c.sequence == row.sequence)
        connection.execute(change.values(entry=text, digest=previous))
    connection.execute(DECISION_LOG_HEAD.update().values(digest=previous))


def _resign(connection: sa.Connection) -> None:
    """The whole log written anew with a key of one's own."""
    for logged in a_log(4, a_key(9), start=-1):
        change = DECISION_LOG.update().where(DECISION_LOG.c.sequence == logged.sequence)
        connection.execute(change.values(entry=logged.text, digest=logged.digest, signature=logged.signature))
        head = DECISION_LOG_HEAD.update().values(digest=logged.digest)
        connection.execute(head)


def _sql(*statements: str) -> Callable[[sa.Connection], None]:
    def change(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_edit_entry, {Code.EDITED, Code.SIGNATURE_WRONG, Code.DECISION_EDITED, Code.STANDING_DIFFERS}),
        (_edit_entry_and_digests, {Code.SIGNATURE_WRONG, Code.DECISION_EDITED, Code.STANDING_DIFFERS}),
        (_resign, {Code.UNKNOWN_KEY, Code.DECISION_MISSING, *_NOT_LOGGED}),
        (_sql("DELETE FROM decision_log WHERE sequence = 2"), {Code.GAP, *_NOT_LOGGED}),
        (_sql("DELETE FROM decision_log WHERE sequence = 4"), {Code.HEAD_DIFFERS, *_NOT_LOGGED}),
        (_sql("DELETE FROM decision_log"), {Code.HEAD_DIFFERS, *_NOT_LOGGED}),
        (_sql("DELETE FROM decision_log_head"), {Code.HEAD_DIFFERS}),
        (_sql("UPDATE decision_log_head SET sequence = 9"), {Code.HEAD_DIFFERS}),
        (_sql("UPDATE decision_log SET signature = NULL WHERE sequence = 3"), {Code.SIGNATURE_MISSING}),
        (_sql("UPDATE decisions SET event = REPLACE(event, 'approve', 'block')"), {Code.DECISION_EDITED}),
        (
            _sql("UPDATE decisions SET decided_at = '2020' WHERE audit_id = 'subject0-1'"),
            {Code.DECISION_EDITED},
        ),
        (_sql("DELETE FROM decisions WHERE audit_id = 'subject1-1'"), {Code.DECISION_MISSING}),
        (
            _sql("INSERT INTO decisions VALUES ('evil-1', '{\"outcome\": \"approve\"}', '2026')"),
            {Code.DECISION_NOT_LOGGED},
        ),
        (
            # Entry, row and head go; the audit's own row still says that it was decided.
            _sql(
                "UPDATE audits SET state = 'decided'",
                "DELETE FROM decision_log WHERE sequence = 4",
                "DELETE FROM decisions WHERE audit_id = 'subject3-1'",
                "DELETE FROM standings WHERE audit_id = 'subject3-1'",
                _THREE_ENTRIES,
            ),
            {Code.DECISION_MISSING},
        ),
    ],
    ids=[
        "edited entry", "edited entry and digests", "written anew with another key", "deleted in the middle",
        "deleted at the end", "deleted all", "deleted head", "edited head", "deleted signature", "edited decision",
        "edited time", "deleted decision", "added decision", "cut end and its decision",
    ],
)  # fmt: skip
def test_an_edit_of_the_store_is_found(
    records_url: str, tmp_path: Path, change: Callable[[sa.Connection], None], expected: set[Code]
) -> None:
    decide(records_url, 4)
    assert check(records_url, tmp_path).findings == ()
    with by_hand(records_url) as connection:
        change(connection)
    checked = check(records_url, tmp_path)
    assert codes(checked) == expected
    assert not checked.intact


def _cut(connection: sa.Connection) -> None:
    """The end is taken away without a trace: entry, decision, what holds, audit and head."""
    _sql(
        "DELETE FROM decision_log WHERE sequence = 4",
        "DELETE FROM decisions WHERE audit_id = 'subject3-1'",
        "DELETE FROM standings WHERE audit_id = 'subject3-1'",
        "DELETE FROM audits WHERE audit_id = 'subject3-1'",
        _THREE_ENTRIES,
    )(connection)


def test_an_end_that_was_cut_off_without_a_trace_is_found_by_a_witness_alone(records_url: str, tmp_path: Path) -> None:
    decide(records_url, 4)
    with closing(Records(records_url)) as records:
        witness = lay(tmp_path, "then.checkpoint", checkpoint_line(records, a_key(), []))
    with by_hand(records_url) as connection:
        _cut(connection)
    assert check(records_url, tmp_path).intact
    checked = check(records_url, tmp_path, witness)
    assert codes(checked) == {Code.WITNESS_CONTRADICTS}
    # Another decision in the place of the one that was cut off.
    with closing(Records(records_url)) as records:
        records.decide("other-1", an_event("other-1"), key=a_key())
    assert codes(check(records_url, tmp_path, witness)) == {Code.WITNESS_CONTRADICTS}


def test_a_witness_that_nobody_trusted_signed_proves_nothing(records_url: str, tmp_path: Path) -> None:
    decide(records_url, 1)
    with closing(Records(records_url)) as records:
        forged = lay(tmp_path, "forged", checkpoint_line(records, a_key(2), []))
        unsigned = lay(tmp_path, "unsigned", checkpoint_line(records, NoKey("none"), []))
        good = lay(tmp_path, "good", checkpoint_line(records, a_key(), []))
    assert check(records_url, tmp_path, good).findings == ()
    for witness in (forged, unsigned):
        (finding,) = check(records_url, tmp_path, witness).findings
        assert "proves nothing" in finding.text


# Stores of before there was a log.


def make_as_version_1(records_url: str, n: int) -> None:
    """A store as the version before left it, with so many decisions, and one that is no JSON."""
    with by_hand(records_url) as connection:
        _BASELINE.create_all(connection)
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0001')")
        insert = sa.text("INSERT INTO decisions VALUES (:audit_id, :event, :at)")
        for number in range(n):
            event = json.dumps(an_event(f"old{number}-1"), sort_keys=True)
            connection.execute(insert, {"audit_id": f"old{number}-1", "event": event, "at": f"2026-01-{n - number:02}"})
        for name, event in (("odd", '["\\ud800"]'), ("broken", "{")):
            connection.execute(insert, {"audit_id": f"{name}-1", "event": event, "at": "2026-02-01"})


def test_decisions_of_before_the_log_are_taken_in_in_their_order_and_marked_so(
    records_url: str, tmp_path: Path
) -> None:
    make_as_version_1(records_url, 9)
    assert version_of(records_url) == 1
    checked = check(records_url, tmp_path)
    assert version_of(records_url) == SCHEMA_VERSION
    assert (checked.findings, checked.entries, checked.taken_in, checked.signed) == ((), 11, 11, 0)
    with closing(Records(records_url)) as records, records.log_view() as view:
        entries = [json.loads(logged.text) for logged in view.entries()]
    assert [entry["audit_id"] for entry in entries[:9]] == [f"old{number}-1" for number in range(8, -1, -1)]
    assert {entry["content"]["taken_in"] for entry in entries} == {True}
    assert entries[0]["content"]["event"] == an_event("old8-1")
    assert {entry["content"]["event_text"] for entry in entries[9:]} == {'["\\ud800"]', "{"}
    # The next decision is signed, and vouches for what was taken in.
    with closing(Records(records_url)) as records:
        assert records.decide("new-1", an_event("new-1"), key=a_key())
        # What nobody can read holds for nothing.
        holds = {one.audit_id for one in records.standings.standings(limit=100)}
        assert holds == {"new-1", *(f"old{number}-1" for number in range(9))}
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.signed) == ((), 1)
    with by_hand(records_url) as connection:
        connection.exec_driver_sql("UPDATE decisions SET event = REPLACE(event, 'approve', 'block')")
    assert codes(check(records_url, tmp_path)) == {Code.DECISION_EDITED}


def test_more_decisions_than_a_page_are_all_taken_in(records_url: str, tmp_path: Path) -> None:
    make_as_version_1(records_url, 9)
    rows = [{"audit_id": f"x{number:04}-1", "event": "{}", "at": f"20{number % 7}"} for number in range(1100)]
    with by_hand(records_url) as connection:
        connection.execute(sa.text("INSERT INTO decisions VALUES (:audit_id, :event, :at)"), rows)
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries) == ((), 1111)


def test_what_an_earlier_proctor_decides_during_an_upgrade_is_named_and_taken_in_when_asked(
    records_url: str, tmp_path: Path
) -> None:
    decide(records_url, 1)
    with by_hand(records_url) as connection:
        insert = sa.text("INSERT INTO decisions VALUES ('late-1', :event, '2026-11-23T05:00:00+00:00')")
        connection.execute(insert, {"event": json.dumps(an_event("late-1"))})
    (finding,) = check(records_url, tmp_path).findings
    assert (finding.code, finding.audit_id) == (Code.DECISION_NOT_LOGGED, "late-1")
    with closing(Records(records_url)) as records:
        assert records.take_in(a_key()) == ["late-1"]
        assert records.take_in(a_key()) == []
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.taken_in, checked.signed) == ((), 1, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM decision_log_head", "lost the row that says where it ends"),
        ("UPDATE decision_log_head SET sequence = 0", "has an entry 1 already"),
    ],
)
def test_a_log_that_lost_its_end_takes_no_decision(records_url: str, change: str, words: str) -> None:
    decide(records_url, 1)
    with by_hand(records_url) as connection:
        connection.exec_driver_sql(change)
    with closing(Records(records_url)) as records:
        with pytest.raises(StoreError, match=words):
            records.decide("b-1", an_event("b-1"), key=a_key())
        assert records.decision("b-1") is None


def test_reports_are_held_to_the_log(tmp_path: Path) -> None:
    url, artifacts = f"sqlite:///{tmp_path / 'records.sqlite'}", LocalArtifacts(tmp_path / "artifacts")
    page = text_digest("<p>page</p>")
    with closing(Records(url)) as records:
        for name in ("a-1", "b-1"):
            document = f'{{"of":"{name}"}}'.encode()
            artifacts.put(document)
            lay(tmp_path / "reports" / name, "report.json", document)
            lay(tmp_path / "reports" / name, "report.html", b"<p>page</p>")
            records.decide(name, an_event(name, document), files={"report.html": page}, key=a_key())

        def seen() -> dict[str | None, Code]:
            checked = check_store(records, artifacts, tmp_path, trust_in([a_key().signer]))
            assert checked.reports == 2
            return {finding.audit_id: finding.code for finding in checked.findings}

        assert seen() == {}
        lay(tmp_path / "reports" / "a-1", "report.json", b'{"of":"somebody else"}')
        assert seen() == {"a-1": Code.REPORT_SWAPPED}
        lay(tmp_path / "reports" / "a-1", "report.json", b'{"of":"a-1"}')
        lay(tmp_path / "reports" / "b-1", "report.html", b"<p>approved</p>")
        assert seen() == {"b-1": Code.REPORT_SWAPPED}
        # One that is not on this machine is no fault; one that is not in the artifact store is.
        os.unlink(tmp_path / "reports" / "b-1" / "report.html")
        assert seen() == {}
        for stored in (tmp_path / "artifacts").rglob("*"):
            if stored.is_file():
                stored.unlink()
        assert seen() == {"a-1": Code.REPORT_MISSING, "b-1": Code.REPORT_MISSING}
