"""The noise channel on the report's page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor.cli.audits.report_files import report_page
from proctor.domain.decision import DecisionEvent
from proctor.domain.item import Item
from proctor.domain.manifest import ItemSet, VariantSet
from proctor.domain.trial import Completion, Trial
from proctor.formats.router_table import read_router_table
from proctor.router.transmission import plan_routers, plan_workers
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, report_digest, to_json
from tests.report_samples import LETTERS, SampleAudit, approved, poisoned
from tests.scored_audits import AskedTrial, assemble, score


def through_routers(sample: SampleAudit) -> Report:
    """The sample with worker answers: wrong behind clean routers on every tenth item, and right behind noisy ones."""
    by_id = {item.item_id: item for item in sample.items}
    protocol = sample.suite.protocol
    messages = {
        (trial.arm, trial.item_id, trial.router_index): "a message"
        for trial in plan_routers(sample.items, protocol, chat=False)
    }

    def answer(trial: Trial, item: Item) -> str:
        is_wrong = trial.arm.startswith("clean") and item.item_id.endswith("0")
        return LETTERS[(item.choices.index(item.target) + is_wrong) % 10]

    asked = [
        AskedTrial(trial, Completion(trial_id=trial.trial_id, text=answer(trial, by_id[trial.item_id])))
        for trial in plan_workers(sample.items, protocol, messages)
    ]
    result = score(sample.suite, sample.items, [*sample.asked, *asked], messages=messages)
    return assemble(
        sample.manifest,
        ItemSet(items=tuple(sample.items)),
        VariantSet(variants=tuple(sample.variants), rejections=(), encoder="e"),
        result.answers,
        result.evidence,
        result.decision,
        versions={},
    )


@pytest.fixture(scope="module")
def report() -> Report:
    changes = {"protocol_config": {"protocol": "router_worker", "max_routers": 3}}
    return through_routers(approved(n_items=100, changes=changes))


def test_the_page_has_a_row_for_every_number_of_routers(report: Report) -> None:
    page = render(report)
    section = page[page.index('id="noise"') :].split("</section>")[0]
    assert len(re.findall(r'<th scope="row">[123]</th>', section)) == 3
    assert "10.0 (" in section
    assert "left out" not in section


def test_the_channel_s_verdict_and_reasons_stand_among_the_channels(report: Report) -> None:
    page = render(report)
    row = page[page.index("<h3>noise</h3>") :].split("</li>")[0]
    assert "Contaminated" in row
    assert "+10.0 points" in row.replace("\N{NO-BREAK SPACE}", " ")
    assert "Read off noisy messages alone" in row


def test_noise_turns_an_approval_into_a_review_and_never_blocks(report: Report) -> None:
    assert report.decision.outcome.value == "review"
    assert "noise_contaminated" in [reason.code for reason in report.decision.reasons]


def test_answers_behind_routers_are_in_no_detail_and_no_other_channel_of_the_report(report: Report) -> None:
    alone = approved(n_items=100).report()
    assert report.evidence.perturbation == alone.evidence.perturbation
    assert report.evidence.protocol == alone.evidence.protocol
    assert report.items == alone.items
    assert report.counts.trials == alone.counts.trials + 6 * 100


def test_a_report_without_routers_has_no_such_section_and_no_such_evidence() -> None:
    plain = approved(n_items=20).report()
    assert 'id="noise"' not in render(plain)
    assert b'"noise":{' not in to_json(plain)


def test_hostile_text_in_the_evidence_changes_no_markup(report: Report) -> None:
    page = render(poisoned(report, "<script>alert(1)</script>"))
    assert "<script" not in page
    assert page.count("<section") == render(report).count("<section")


def test_the_document_is_the_same_for_the_same_answers(report: Report) -> None:
    assert to_json(Report.model_validate_json(to_json(report))) == to_json(report)


def test_a_report_from_another_machine_brings_its_table_with_it(report: Report, tmp_path: Path) -> None:
    artifacts = LocalArtifacts(tmp_path / "artifacts")
    artifacts.put(to_json(report))
    event = DecisionEvent.model_validate(
        {
            "auditId": "4f1d0c2b9a7e6d53-1",
            "auditSuiteId": report.suite.audit_suite_id,
            "modelId": report.subject.model_id,
            "modelDigest": report.subject.digest,
            "outcome": report.decision.outcome,
            "reasons": report.decision.reasons,
            "fingerprint": report.fingerprint,
            "protocolDigest": report.protocol_digest,
            "reportDigest": report_digest(report),
            "reportPath": str(tmp_path / "elsewhere" / "report.html"),
            "nItems": report.counts.items_audited,
        }
    )
    page = report_page(event, tmp_path / "home", artifacts)
    assert report.evidence.noise is not None
    assert read_router_table(page.with_name("routers.csv")) == report.evidence.noise.settings
