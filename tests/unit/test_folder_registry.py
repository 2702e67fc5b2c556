"""A folder of files as a model registry."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.cli.main import main
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.errors import RegistryError
from proctor.registry.folder_registry import FolderRegistry
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError, open_registry
from tests.standing_audits import DecidedAudits, decided_audits, sha

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK
VERSION = "1" * 12


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home", dashboard_url="https://proctor.example.org") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a folder"
    path.mkdir()
    return path


def uri_of(folder: Path) -> str:
    return folder.as_uri()


def decided(audits: DecidedAudits, folder: Path, outcome: DecisionOutcome, **named: str) -> DecisionEvent:
    event = audits.decide("org/m", outcome, **named)  # type: ignore[arg-type]
    audits.write(uri_of(folder), event)
    return event


def alias(folder: Path) -> str:
    path = folder / "org~m" / "aliases" / "proctor-approved"
    return path.read_text().strip() if path.exists() else ""


def test_a_decision_is_a_document_a_description_and_its_evidence(audits: DecidedAudits, folder: Path) -> None:
    event = decided(audits, folder, APPROVE)
    version = folder / "org~m" / "versions" / VERSION
    said = json.loads((version / "decision.json").read_text())
    assert (said["decision"], said["contamination_score"], said["model_digest"]) == ("approve", "0.1451", sha("1"))
    assert said["suites"][0]["audit_suite_id"] == "facts"
    assert said["report_url"] == f"https://proctor.example.org/audits/{event.audit_id}/report"
    report = (version / "evidence" / event.audit_id / "report.json").read_bytes()
    assert hashlib.sha256(report).hexdigest() == said["report_sha256"]
    assert (version / "evidence" / event.audit_id / "attestation.json").exists()
    assert "**Proctor: approved**" in (version / "description.md").read_text()
    assert alias(folder) == VERSION


def test_the_alias_goes_with_the_approval_and_words_of_others_stay(audits: DecidedAudits, folder: Path) -> None:
    decided(audits, folder, APPROVE)
    description = folder / "org~m" / "versions" / VERSION / "description.md"
    description.write_text("Ours.\n\n" + description.read_text())
    decided(audits, folder, BLOCK)
    assert alias(folder) == ""
    assert description.read_text().startswith("Ours.\n\n<!-- proctor: begin -->\n**Proctor: blocked**")


def test_a_late_event_leaves_the_alias_on_the_version_approved_later(audits: DecidedAudits, folder: Path) -> None:
    first = decided(audits, folder, APPROVE, weights="1")
    decided(audits, folder, APPROVE, weights="2")
    audits.write(uri_of(folder), first)
    assert alias(folder) == "2" * 12


def test_writing_again_touches_no_file(audits: DecidedAudits, folder: Path) -> None:
    event = decided(audits, folder, REVIEW)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    audits.write(uri_of(folder), event)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_that_is_not_there_is_not_made(audits: DecidedAudits, folder: Path) -> None:
    event = audits.decide("org/m", APPROVE)
    folder.rmdir()
    with pytest.raises(RegistryUnavailableError, match="make or mount it"):
        audits.write(uri_of(folder), event)
    assert not folder.exists()


def test_a_version_that_was_deleted_is_not_made_anew(audits: DecidedAudits, folder: Path) -> None:
    event = decided(audits, folder, APPROVE)
    shutil.rmtree(folder / "org~m" / "versions")
    with pytest.raises(VersionGoneError, match="stands on record alone"):
        audits.write(uri_of(folder), event)


def test_a_version_whose_weights_were_edited_is_not_written(audits: DecidedAudits, folder: Path) -> None:
    event = decided(audits, folder, APPROVE)
    version = folder / "org~m" / "versions" / VERSION / "version.json"
    version.write_text(json.dumps({"model_digest": sha("9")}))
    with pytest.raises(RegistryError, match="somebody changed it"):
        audits.write(uri_of(folder), event)


@pytest.mark.parametrize("outcome", list(DecisionOutcome))
def test_the_guard_holds_the_files_against_the_record(
    audits: DecidedAudits, folder: Path, capsys: pytest.CaptureFixture[str], outcome: DecisionOutcome
) -> None:
    decided(audits, folder, outcome)
    where = ["--registry", uri_of(folder), "--home", str(audits.settings.home), "--format", "json"]
    assert main(["gate", "check", f"org/m/{VERSION}", *where]) == {APPROVE: 0, REVIEW: 3, BLOCK: 4}[outcome]
    path = folder / "org~m" / "versions" / VERSION / "decision.json"
    path.write_text(path.read_text().replace(f'"decision": "{outcome}"', '"decision": "edited"'))
    assert main(["gate", "check", f"org/m/{VERSION}", *where]) == 1


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, " " * (5 << 20)])
def test_a_file_that_is_too_large_or_no_document_is_an_error_that_names_it(
    audits: DecidedAudits, folder: Path, content: str
) -> None:
    decided(audits, folder, APPROVE)
    path = folder / "org~m" / "versions" / VERSION / "decision.json"
    path.write_text(content)
    with FolderRegistry(uri_of(folder)) as registry, pytest.raises(RegistryError, match=re.escape(str(path))):
        registry.held("org/m", version=VERSION)


@pytest.mark.parametrize("uri", ["file://host/x", "file:relative", "folder://", "file:///x?y"])
def test_only_a_path_from_the_root_names_a_folder(uri: str) -> None:
    with pytest.raises(RegistryError, match="names no folder"):
        open_registry(uri)


@pytest.mark.parametrize("reference", ["../../etc@x", "org/m@../x", "a\0b@x"])
def test_no_name_leads_out_of_the_folder(folder: Path, reference: str) -> None:
    assert main(["gate", "check", reference, "--registry", uri_of(folder)]) in (1, 2)
