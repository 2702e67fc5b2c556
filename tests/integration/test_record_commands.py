"""`proctor record`: what a person verifies, shows and exports, and an export that verifies without the store."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.canonical import canonical_json
from proctor.domain.record.attestation import ATTESTATION, entry_envelope
from proctor.formats import record_export
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import STANDINGS
from proctor.runtime.signing import home_key_file, open_signing_key
from tests.record_samples import a_key, an_event, by_hand, lay
from tests.support import run_proctor

REPORT = b'{"report":"caf\xc3\xa9"}'


class Home:
    """A home with two decisions in its log, and `proctor record` in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.url = f"sqlite:///{folder / 'records.sqlite'}"
        self.audits = [self.decide(subject) for subject in ("abc", "xyz")]

    def decide(self, subject: str) -> str:
        """Have another audit decided, with what the scorer lays down."""
        LocalArtifacts(self.folder / "artifacts").put(REPORT)
        with closing(Records(self.url)) as records:
            audit_id = records.create_audit(subject, "{}", {}).audit_id
            assert records.decide(audit_id, an_event(audit_id, REPORT), key=open_signing_key(self.folder, None))
            (logged,) = records.logged(audit_id)
        attestation = canonical_json(entry_envelope(json.loads(logged.text), logged.signature))
        lay(self.folder / "reports" / audit_id, ATTESTATION, attestation)
        return audit_id

    def run(self, *arguments: object, code: int = 0) -> str:
        """Give a command; what it prints."""
        self._capsys.readouterr()
        assert main(["record", *map(str, arguments), "--home", str(self.folder)]) == code
        said = self._capsys.readouterr()
        self.errors = said.err
        return said.out

    def verified(self, *arguments: object, code: int = 0) -> dict[str, Any]:
        """What `verify` says in JSON."""
        found: dict[str, Any] = json.loads(self.run("verify", *arguments, "--format", "json", code=code))
        assert found["intact"] == (code == 0)
        return found


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Home:
    return Home(tmp_path / "home", capsys)


def test_a_record_that_nobody_touched_is_intact(home: Home) -> None:
    found = home.verified()
    assert {name: found[name] for name in ("entries", "signed", "taken_in", "reports", "witnesses", "findings")} == {
        "entries": 2, "signed": 2, "taken_in": 0, "reports": 2, "witnesses": 2, "findings": [],
    }  # fmt: skip
    said = home.run("verify")
    assert "the record store is intact: 2 entries" in said
    assert found["head"] in said


def test_a_record_that_was_edited_is_exit_code_1_and_a_table_of_what(home: Home) -> None:
    with by_hand(home.url) as connection:
        connection.exec_driver_sql("UPDATE decisions SET event = '{}' WHERE audit_id = 'abc-1'")
    said = home.run("verify", code=1)
    assert "IS NOT INTACT" in said
    assert any({"fault", "decision_edited", "abc-1"} <= set(line.split()) for line in said.splitlines())


def test_an_end_that_was_cut_off_is_found_by_the_attestation_that_lies_beside_its_report(home: Home) -> None:
    with by_hand(home.url) as connection:
        for statement in (
            "DELETE FROM decision_log WHERE sequence = 2",
            "DELETE FROM decisions WHERE audit_id = 'xyz-1'",
            "DELETE FROM standings WHERE audit_id = 'xyz-1'",
            "DELETE FROM audits WHERE audit_id = 'xyz-1'",
            "UPDATE decision_log_head SET sequence = 1, digest = (SELECT digest FROM decision_log)",
        ):
            connection.exec_driver_sql(statement)
    (finding,) = home.verified(code=1)["findings"]
    assert (finding["code"], finding["audit_id"]) == ("attestation_differs", "xyz-1")
    assert "entries were taken away" in finding["text"]


def test_a_sign_off_that_was_cut_off_with_what_held_by_it_is_found_by_its_attestation(home: Home) -> None:
    with by_hand(home.url) as connection:
        (before,) = connection.execute(STANDINGS.select().where(STANDINGS.c.audit_id == "xyz-1")).mappings().all()
    assert main(["review", "reject", "xyz", "--reason", "r", "--reference", "q", "--home", str(home.folder)]) == 0
    assert home.verified()["witnesses"] == 3
    with by_hand(home.url) as connection:
        for statement in (
            "DELETE FROM decision_log WHERE sequence = 3",
            "DELETE FROM standings WHERE audit_id = 'xyz-1'",
            "UPDATE decision_log_head SET sequence = 2, digest = (SELECT digest FROM decision_log WHERE sequence = 2)",
        ):
            connection.exec_driver_sql(statement)
        connection.execute(STANDINGS.insert().values(**before))
    (finding,) = home.verified(code=1)["findings"]
    assert (finding["code"], finding["audit_id"]) == ("attestation_differs", "xyz-1")
    assert "entries were taken away" in finding["text"]


@pytest.mark.parametrize(
    ("old", "new"), [('"kind":"override"', '"kind":"absolution"'), ('"verb":"reject"', '"verb":"absolve"')]
)
def test_an_export_with_a_sign_off_verifies_and_what_only_a_later_proctor_writes_is_said_to_need_it(
    home: Home, tmp_path: Path, old: str, new: str
) -> None:
    assert main(["review", "reject", "xyz", "--reason", "r", "--reference", "q", "--home", str(home.folder)]) == 0
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    found = home.verified(export)
    assert (found["entries"], found["signed"], found["reports"]) == (3, 3, 2)
    text = export.read_text()
    quoted_old, quoted_new = (json.dumps(one)[1:-1] for one in (old, new))
    assert quoted_old in text
    export.write_text(text.replace(quoted_old, quoted_new))
    texts = [one["text"] for one in home.verified(export, code=1)["findings"] if one["code"] == "unreadable"]
    assert any("needs a newer Proctor" in text for text in texts)


def _edit_payload(envelope: dict[str, Any]) -> None:
    payload = base64.b64decode(envelope["payload"]).replace(b'"abc-1"', b'"abc-2"')
    envelope["payload"] = base64.b64encode(payload).decode()


def _resign(envelope: dict[str, Any]) -> None:
    entry = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    envelope.update(entry_envelope(entry, a_key(5).sign(b"something")))


def _unsign(envelope: dict[str, Any]) -> None:
    envelope["signatures"] = []


@pytest.mark.parametrize(
    "change", [_edit_payload, _resign, _unsign, dict.clear], ids=["edited", "signed again", "unsigned", "emptied"]
)
@pytest.mark.parametrize("name", [ATTESTATION, "attestation-3.json"], ids=["decision", "sign-off"])
def test_an_attestation_that_is_not_the_log_s_is_found(
    home: Home, change: Callable[[dict[str, Any]], None], name: str
) -> None:
    assert main(["review", "reject", "abc", "--reason", "r", "--reference", "q", "--home", str(home.folder)]) == 0
    path = home.folder / "reports" / "abc-1" / name
    envelope = json.loads(path.read_bytes())
    change(envelope)
    path.write_bytes(json.dumps(envelope).encode())
    (finding,) = home.verified(code=1)["findings"]
    assert (finding["code"], finding["audit_id"]) == ("attestation_differs", "abc-1")


def test_a_key_is_printed_with_its_id_and_verifies_an_export_elsewhere(home: Home, tmp_path: Path) -> None:
    public = lay(tmp_path, "public.pem", home.run("key").encode())
    assert "key id" in home.errors
    told = json.loads(home.run("key", "--format", "json"))
    assert public.read_text() == told["public_key"]
    assert [known["key_id"] for known in told["known"]] == [told["key_id"]]
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    assert "2 entries were written" in home.errors
    head = json.loads(export.read_bytes().splitlines()[0])
    assert [known["key_id"] for known in head["keys"]] == [told["key_id"]]
    elsewhere = tmp_path / "elsewhere"
    assert main(["record", "verify", str(export), "--key", str(public), "--home", str(elsewhere)]) == 0
    assert not elsewhere.exists()
    # An export brings its keys, and is not believed for it.
    assert main(["record", "verify", str(export), "--home", str(elsewhere)]) == 1


def test_an_export_has_the_reports_and_is_verified_by_this_home_s_keys(home: Home, tmp_path: Path) -> None:
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    found = home.verified(export)
    assert (found["entries"], found["signed"], found["reports"], found["source"]) == (2, 2, 2, str(export))
    assert found["as_of"] is not None
    assert json.loads(export.read_bytes().splitlines()[1])["report"].encode() == REPORT
    home.run("export", export, "--no-reports")
    assert home.verified(export)["reports"] == 0


def test_an_export_to_standard_output_is_the_same_lines(home: Home, tmp_path: Path) -> None:
    home.run("export", tmp_path / "export.jsonl")
    printed = run_proctor("record", "export", "-", home=home.folder)
    assert printed.returncode == 0, printed.stderr
    head, *entries = printed.stdout.splitlines()
    assert json.loads(head)["format"] == record_export.FORMAT
    assert entries == (tmp_path / "export.jsonl").read_text().splitlines()[1:]


Lines = list[dict[str, Any]]


def _swap_report(lines: Lines) -> None:
    lines[1]["report"] = '{"report":"another"}'


def _edit(lines: Lines) -> None:
    lines[2]["entry"] = lines[2]["entry"].replace('"approve"', '"block"')


def _other_envelope(lines: Lines) -> None:
    lines[1]["envelope"] = lines[2]["envelope"]


def _new_checkpoint(lines: Lines) -> None:
    payload = json.loads(base64.b64decode(lines[0]["checkpoint"]["payload"]))
    payload.update(sequence=1, digest=lines[1]["digest"])
    lines[0]["checkpoint"]["payload"] = base64.b64encode(canonical_json(payload)).decode()
    del lines[2]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_swap_report, {"report_swapped"}),
        (_edit, {"edited", "signature_wrong", "envelope_differs", "cut_off"}),
        (_other_envelope, {"envelope_differs"}),
        (lambda lines: lines.pop(), {"cut_off"}),
        (lambda lines: lines.pop(1), {"gap"}),
        (_new_checkpoint, {"cut_off"}),
        (lambda lines: _unsign(lines[0]["checkpoint"]), {"cut_off"}),
    ],
    ids=["report", "entry", "envelope", "end", "middle", "end and checkpoint", "unsigned checkpoint"],
)
def test_an_edit_of_an_export_is_found(
    home: Home, tmp_path: Path, change: Callable[[Lines], Any], expected: set[str]
) -> None:
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    lines = [json.loads(line) for line in export.read_bytes().splitlines()]
    change(lines)
    export.write_bytes(b"".join(canonical_json(line) + b"\n" for line in lines))
    assert set(home.verified(export, code=1)["counts"]) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is no export of Proctor's record"),
        (b'{"a": 1}\n', "is no export of Proctor's record"),
        (b"\xff\n", "is not UTF-8"),
        (b'{"format":"proctor-record/1"}\n', ":1: its checkpoint cannot be read"),
        (b'{"format":"proctor-record/1","checkpoint":{"payload":"bm8="}}\n', ":1: its checkpoint cannot be read"),
        (b"HEAD" + b'{"entry": 1}\n', ":2: this is no entry of a record"),
        (
            b"HEAD" + b'{"sequence":1,"entry":"\\ud800","digest":"","signature":null,"envelope":null,"report":null}\n',
            ":2: this is no entry of a record",
        ),
        (b"HEAD" + b'{"a": 1, "a": 2}\n', "stands twice"),
        (b"HEAD" + b"[" * 100_000 + b"\n", ":2: not JSON"),
    ],
    ids=["empty", "other", "binary", "no head", "odd head", "no entry", "surrogate", "twice", "deep"],
)
def test_a_file_that_is_no_export_is_one_clear_error(home: Home, tmp_path: Path, content: bytes, words: str) -> None:
    head = tmp_path / "head.jsonl"
    home.run("checkpoint", head)
    file = lay(tmp_path, "file.jsonl", content.replace(b"HEAD", head.read_bytes()))
    home.run("verify", file, code=2)
    assert words in home.errors
    assert "Traceback" not in home.errors
    home.run("verify", "--witness", tmp_path / "nowhere", code=2)
    assert "No such file" in home.errors


def test_a_line_that_is_too_long_is_not_read_to_its_end(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    monkeypatch.setattr(record_export, "_LIMITS", record_export._LIMITS._replace(row_bytes=4000))
    with export.open("ab") as stream:
        stream.write(b'{"entry": "' + b"x" * 10_000 + b'"}\n')
    home.run("verify", export, code=2)
    assert "the line is longer than 4000 bytes" in home.errors


def test_a_checkpoint_is_a_witness_of_what_comes_later(home: Home, tmp_path: Path) -> None:
    then = tmp_path / "then.checkpoint"
    home.run("checkpoint", then)
    home.decide("more")
    assert home.verified("--witness", then)["witnesses"] == 4
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    assert home.verified(export, "--witness", then)["entries"] == 3
    (home.folder / "records.sqlite").unlink()
    for path in (home.folder / "reports").rglob(ATTESTATION):
        path.unlink()
    Records(home.url).close()
    (finding,) = home.verified("--witness", then, code=1)["findings"]
    assert finding["code"] == "witness_contradicts"


def test_an_entry_is_shown_by_the_beginning_of_its_audit_s_id(home: Home) -> None:
    said = home.run("show", "abc")
    assert "entry 1  decision  approve" in said
    (shown,) = json.loads(home.run("show", "abc-1", "--format", "json"))
    assert shown["entry"]["audit_id"] == "abc-1"
    assert shown["digest"] in said
    assert json.loads(home.run("show", "abc", "--attestation")) == shown["attestation"]
    home.run("show", "nobody", code=2)
    assert "no audit that begins with 'nobody'" in home.errors


def test_a_name_with_control_characters_reaches_no_terminal(home: Home) -> None:
    with closing(Records(home.url)) as records:
        records.decide("evil-1", an_event("evil-1", outcome="\x1b[2Japprove"), key=a_key())
    assert "\x1b" not in home.run("show", "evil-1")
    assert "\x1b" not in home.run("verify", code=1)


def test_a_home_without_a_store_is_one_clear_error_and_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["verify"], ["show", "a"], ["export", str(tmp_path / "e")], ["checkpoint"], ["take-in"]):
        assert main(["record", *command, "--home", str(tmp_path / "nowhere")]) == 2
        assert "there is no record store" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()


def test_decisions_without_an_entry_are_taken_in_when_asked(home: Home) -> None:
    with by_hand(home.url) as connection:
        connection.exec_driver_sql("INSERT INTO decisions VALUES ('late-1', '{}', '2026')")
    assert home.verified("--no-reports", code=1)["counts"] == {"decision_not_logged": 1}
    # It names no weights, and so cannot be attested: what is signed next vouches for it.
    assert json.loads(home.run("take-in", "--format", "json")) == {"taken_in": ["late-1"]}
    assert home.verified(code=1)["counts"] == {"unsigned": 1, "unsigned_end": 1}
    home.decide("next")
    assert home.verified()["counts"] == {"unsigned": 1}


def test_a_signing_key_that_cannot_be_used_is_told(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_SIGNING_KEY", str(lay(tmp_path, "key.pem", b"nonsense")))
    for command in (["key"], ["verify"]):
        home.run(*command, code=2)
        assert "PROCTOR_SIGNING_KEY" in home.errors


def test_a_scorer_does_not_start_with_a_signing_key_that_cannot_be_used(tmp_path: Path) -> None:
    key = lay(tmp_path, "key.pem", b"nonsense")
    environment = {
        **os.environ,
        "PROCTOR_HOME": str(tmp_path / "home"),
        "PROCTOR_SIGNING_KEY": str(key),
        "PROCTOR_BROKER_URL": "redis://127.0.0.1:9/0",
    }
    worker = subprocess.run(
        [sys.executable, "-m", "proctor", "worker", "scorer"],
        env=environment, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert worker.returncode == 2
    assert f"{key}, the signing key (PROCTOR_SIGNING_KEY), cannot be read" in worker.stderr
    assert "Traceback" not in worker.stderr


def test_the_private_key_is_in_nothing_that_is_printed_or_exported(home: Home, tmp_path: Path) -> None:
    secret = "".join(home_key_file(home.folder).read_text().splitlines()[1:-1])
    export = tmp_path / "export.jsonl"
    home.run("export", export)
    said = [home.run("key"), home.run("verify"), home.run("show", "abc", "--format", "json"), export.read_text()]
    assert len(secret) == 64
    assert not any(secret in text for text in said)


@pytest.fixture(autouse=True)
def no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PROCTOR_RECORDS_URL", "PROCTOR_ARTIFACTS", "PROCTOR_SIGNING_KEY"):
        monkeypatch.delenv(name, raising=False)
