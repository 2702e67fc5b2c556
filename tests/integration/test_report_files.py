"""The report of an audit that was scored on another machine comes from the artifact store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proctor.cli.audits.report_files import report_page
from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import StoreError
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.scorer.report.document import Report, report_digest, to_json
from tests.report_samples import in_review


@pytest.fixture(scope="module")
def report() -> Report:
    return in_review().report()


@pytest.fixture
def artifacts(tmp_path: Path) -> LocalArtifacts:
    return LocalArtifacts(tmp_path / "artifacts")


def _event(report: Report, page: Path, digest: str | None = None) -> DecisionEvent:
    return DecisionEvent.model_validate(
        {
            "auditId": "4f1d0c2b9a7e6d53-1",
            "auditSuiteId": report.suite.audit_suite_id,
            "modelId": report.subject.model_id,
            "modelDigest": report.subject.digest,
            "outcome": report.decision.outcome,
            "reasons": report.decision.reasons,
            "fingerprint": report.fingerprint,
            "protocolDigest": report.protocol_digest,
            "reportDigest": digest or report_digest(report),
            "reportPath": str(page),
            "nItems": report.counts.items_audited,
        }
    )


def test_a_report_that_lies_on_this_machine_is_read_where_it_is(
    report: Report, artifacts: LocalArtifacts, tmp_path: Path
) -> None:
    page = tmp_path / "scored" / "report.html"
    page.parent.mkdir()
    page.write_text("page")
    page.with_suffix(".json").write_bytes(to_json(report))
    assert report_page(_event(report, page), tmp_path / "home", artifacts) == page
    assert not (tmp_path / "home").exists()


def test_a_report_from_another_machine_is_fetched_by_its_digest(
    report: Report, artifacts: LocalArtifacts, tmp_path: Path
) -> None:
    artifacts.put(to_json(report))
    page = report_page(_event(report, tmp_path / "elsewhere" / "report.html"), tmp_path / "home", artifacts)
    assert page == tmp_path / "home" / "reports" / "4f1d0c2b9a7e6d53-1" / "report.html"
    assert page.with_suffix(".json").read_bytes() == to_json(report)
    assert report_digest(report) in page.read_text(encoding="utf-8")


def test_the_page_of_an_earlier_version_s_report_states_the_digest_of_the_file_beside_it(
    report: Report, artifacts: LocalArtifacts, tmp_path: Path
) -> None:
    """Of before items had ranks and decisions a scope: read, it would be written with other bytes."""
    document = json.loads(to_json(report))
    del document["decision"]["scope"]
    for item in document["evidence"]["perturbation"]["items"]:
        del item["rank"]
    stored = canonical_json(document)
    event = _event(report, tmp_path / "elsewhere" / "report.html", artifacts.put(stored))
    page = report_page(event, tmp_path / "home", artifacts)
    assert page.with_suffix(".json").read_bytes() == stored
    assert bytes_digest(stored) in page.read_text(encoding="utf-8")


def test_a_report_that_is_nowhere_is_an_error_with_its_digest(
    report: Report, artifacts: LocalArtifacts, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match=report_digest(report)):
        report_page(_event(report, tmp_path / "elsewhere" / "report.html"), tmp_path / "home", artifacts)


def test_a_report_of_another_version_is_refused_with_the_place_where_it_can_be_read(
    report: Report, artifacts: LocalArtifacts, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere" / "report.html"
    event = _event(report, elsewhere, artifacts.put(b'{"schema": 0}'))
    with pytest.raises(StoreError, match=f"another version of Proctor.*{elsewhere}"):
        report_page(event, tmp_path / "home", artifacts)
