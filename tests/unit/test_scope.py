"""The scope of a decision, on every surface that shows one, and decisions of before there was a scope."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cli.audits.auditing import AuditResult
from proctor.cli.audits.results import print_results
from proctor.cli.audits.showing import print_status
from proctor.domain.channel_results import OtherEvidence
from proctor.domain.channels import ASKED_IN_SECTION, BEYOND_WORDING, BUILT_IN
from proctor.domain.decision import DecisionEvent, DecisionOutcome, scope_caveat
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.messages import WriteDecision
from proctor.domain.scope import MEASURED, NOT_RULED_OUT, TO_COVER_IT, WORDING_ALONE, Scope
from proctor.gateway.status import AuditStatus
from proctor.gateway.status import Verdict as Shown
from proctor.registry.version_record import VersionRecord
from proctor.registry.version_tags import DECISION_TAG, SCOPE_TAG, version_tags
from proctor.router.ledger.types import Progress
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.decisions import decision_of
from proctor.scorer.page.html import render
from proctor.scorer.policy import decide
from proctor.scorer.report.document import Report, to_json
from proctor.scorer.report.event import event_of
from tests.report_samples import SampleAudit, approved, blocked, in_review

RAN = (Verdict.CLEAN, Verdict.CONTAMINATED, Verdict.INCONCLUSIVE)


def found(verdict: Verdict) -> OtherEvidence:
    return OtherEvidence(
        verdict=verdict, reasons=("Found.",), null_hypothesis="None.", compares="Both.", wording=verdict.value
    )


def with_channels(evidence: Evidence, **verdicts: Verdict) -> Evidence:
    """Evidence in which these channels ran, as those of a later version may."""
    not_audited = {name: why for name, why in evidence.not_audited.items() if name not in verdicts}
    others = {name: found(verdict) for name, verdict in verdicts.items()}
    return evidence.model_copy(update={"others": others, "not_audited": not_audited})


@given(st.dictionaries(st.sampled_from(sorted(BUILT_IN)), st.sampled_from(Verdict)))
def test_the_scope_is_that_of_the_channels_beyond_wording_that_ran_with_a_valid_result(
    verdicts: dict[str, Verdict],
) -> None:
    protocol = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=(), arms=())
    bare = Evidence(perturbation=None, protocol=protocol, not_audited=dict.fromkeys(BUILT_IN, "it was not asked"))
    ran = [name for name in ("exposure", "fresh") if verdicts.get(name) in RAN]
    beyond = {name: verdict for name, verdict in verdicts.items() if name in BEYOND_WORDING}
    assert with_channels(bare, **beyond).scope == "+".join(["wording", *ran])


def test_only_an_approval_by_wordings_alone_has_a_caveat_and_it_says_what_was_measured_and_what_to_require() -> None:
    said = {
        (outcome, scope)
        for outcome in DecisionOutcome
        for scope in (*Scope, None)
        if scope_caveat(outcome, scope) is not None
    }
    assert said == {(DecisionOutcome.APPROVE, Scope.WORDING)}
    for part in ("50.0 %", "49.8 %", "D 0.2 points", "16 exposures", "twelve points", "D 7.2", "4.7 to 6.7"):
        assert part in WORDING_ALONE
    assert "require fresh or exposure evidence in scoring_config.required_channels" in WORDING_ALONE


@pytest.fixture(scope="module")
def clean() -> Report:
    return approved().report()


@pytest.fixture(scope="module", params=[blocked, in_review], ids=["block", "review"])
def other(request: pytest.FixtureRequest) -> Report:
    make: type[SampleAudit] = request.param
    return make().report()


def _text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\N{NO-BREAK SPACE}", " ").split())


def test_the_page_of_an_approval_by_wordings_says_so_before_anything_else_of_it(clean: Report) -> None:
    page = render(clean)
    shown = _text(page[page.index("<h1>") :])
    first = f"Approved {NOT_RULED_OUT} {TO_COVER_IT} What was measured {MEASURED} The gate lets"
    assert shown.startswith(first)
    assert "<title>Approved, scope wording: " in page
    assert "<dt>Scope</dt><dd>wording</dd>" in page


def test_the_document_has_the_scope_with_the_decision_and_says_it_first_of_what_it_cannot_say(clean: Report) -> None:
    document = json.loads(to_json(clean))
    assert document["decision"]["outcome"] == "approve"
    assert document["decision"]["scope"] == "wording"
    assert document["limits"][0] == {"code": "scope_wording", "text": WORDING_ALONE}


def test_reviews_and_blocks_carry_the_scope_and_no_caveat(other: Report) -> None:
    document, page = json.loads(to_json(other)), render(other)
    assert document["decision"]["scope"] == "wording"
    assert "scope_wording" not in {limit["code"] for limit in document["limits"]}
    assert "<dt>Scope</dt><dd>wording</dd>" in page
    assert NOT_RULED_OUT not in _text(page)
    event = event_of("a", other, "sha256:0", "r.html")
    assert event.plain()["scope"] == version_tags(VersionRecord.of_event(event))[SCOPE_TAG] == "wording"


@pytest.mark.parametrize("channel", BEYOND_WORDING)
def test_an_approval_with_evidence_beyond_the_wording_has_that_scope_and_no_caveat(clean: Report, channel: str) -> None:
    evidence = with_channels(clean.evidence, **{channel: Verdict.CLEAN})
    decision = decide(evidence, clean.suite)
    assert (decision.outcome, decision.scope) == (DecisionOutcome.APPROVE, f"wording+{channel}")
    page = render(clean.model_copy(update={"evidence": evidence, "decision": decision, "limits": ()}))
    assert f"<dt>Scope</dt><dd>wording+{channel}</dd>" in page
    assert 'id="scope"' not in page


def test_the_channels_that_are_said_not_to_run_yet_are_those_that_no_suite_can_ask_for(clean: Report) -> None:
    """The noise channel runs where the suite asks routers, and others where it has a section for them; a channel that
    an audit runs leaves the list."""
    assert set(clean.evidence.not_audited) == {*ASKED_IN_SECTION, "noise"}


def test_a_strict_suite_s_report_says_that_fresh_is_required_and_why_it_is_a_review() -> None:
    report = approved(n_items=400, changes={"governance": {"profile": "strict"}}).report()
    assert report.decision.outcome is DecisionOutcome.REVIEW
    assert report.suite.plain()["governance"]["profile"] == "strict"
    shown = _text(render(report))
    assert "Needs review" in shown
    assert "The fresh channel, which the profile strict requires, was not audited" in shown
    assert "fresh required Not audited" in shown


def _ended(report: Report, folder: Path, **changes: Any) -> AuditResult:
    event = event_of("a", report, "sha256:0", "report.html").model_copy(update=changes)
    progress = Progress(planned=1, done=1, leased=0, dead=0)
    return AuditResult("a", event, json.loads(to_json(report)), folder / "report.html", progress, None)


def test_a_finished_run_says_the_scope_of_an_approval_before_its_reasons(
    clean: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = _ended(clean, tmp_path)
    print_results([ended])
    printed = capsys.readouterr().out
    assert printed.index("reference-clean: approve") < printed.index(WORDING_ALONE)
    assert printed.index(WORDING_ALONE) < printed.index(clean.decision.reasons[0].text)
    assert (ended.summary()["scope"], ended.summary()["scope_caveat"]) == ("wording", WORDING_ALONE)
    json.dumps(ended.summary())


def test_a_finished_run_of_a_block_prints_no_caveat_and_has_the_scope_in_its_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = _ended(blocked().report(), tmp_path)
    print_results([ended])
    assert WORDING_ALONE not in capsys.readouterr().out
    assert (ended.summary()["scope"], ended.summary()["scope_caveat"]) == ("wording", None)


def _status(event: DecisionEvent) -> AuditStatus:
    verdict = Shown.of(event, None, None)
    return AuditStatus(audit_id="a", suite="s", model_id="m", state=AuditState.DECIDED, decision=verdict)


def test_show_and_watch_say_the_scope_of_an_approval_before_its_reason(
    clean: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    status = _status(event_of("a", clean, "sha256:0", "report.html"))
    print_status(status)
    printed = capsys.readouterr().out
    assert f"was decided: approve. {WORDING_ALONE} {clean.decision.reasons[0].text}" in printed
    decision = status.plain()["decision"]
    assert decision["scope"] == "wording"


def test_the_event_carries_the_scope_and_the_message_with_it_is_of_the_version_that_has_one(clean: Report) -> None:
    event = event_of("a", clean, "sha256:0", "report.html")
    assert event.plain()["scope"] == "wording"
    without = event.model_copy(update={"weights": None})
    assert [WriteDecision(event=one).version for one in (event, without)] == [3, 2]
    assert WriteDecision(event=without.model_copy(update={"scope": None})).version == 1


def test_the_registry_s_tag_of_the_scope_is_written_before_the_decision(clean: Report) -> None:
    tags = version_tags(VersionRecord.of_event(event_of("a", clean, "sha256:0", "report.html")))
    assert tags[SCOPE_TAG] == "wording"
    assert list(tags).index(SCOPE_TAG) < list(tags).index(DECISION_TAG)


def test_a_decision_of_before_there_was_a_scope_is_read_shown_and_written_as_it_was(
    clean: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = event_of("a", clean, "sha256:0", "report.html").plain()
    del plain["scope"]
    event = decision_of("a", plain)
    assert event.scope is None
    assert event.plain() == plain
    assert SCOPE_TAG not in version_tags(VersionRecord.of_event(event))
    print_status(_status(event))
    print_results([_ended(clean, tmp_path, scope=None)])
    assert "approve" in capsys.readouterr().out


def test_a_report_of_before_there_was_a_scope_keeps_its_bytes_and_its_page_says_the_scope_by_its_evidence(
    clean: Report,
) -> None:
    document = json.loads(to_json(clean))
    del document["decision"]["scope"]
    document["limits"] = document["limits"][1:]
    old = Report.model_validate(document)
    assert json.loads(to_json(old)) == document
    assert NOT_RULED_OUT in _text(render(old))
