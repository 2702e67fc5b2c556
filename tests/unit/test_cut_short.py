"""Answers that were cut at the token limit, alike in every arm: what the report says of them, and the gate does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Verdict
from proctor.domain.limitation import Limitation
from proctor.domain.suite import ScoringSection
from proctor.domain.suite_fields import all_places
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, to_json
from tests.report_samples import SampleAudit, approved, blocked
from tests.scored_audits import AskedTrial

UNDECIDED = "Let us look at every one of the options in turn, beginning with the"


def cut(sample: SampleAudit, *, every: int, text: str | None = None) -> Report:
    """The report of an audit in which every so-many-th answer of each arm ended at the limit, with this text or its
    own."""
    arms: dict[str, int] = {}
    for place, (trial, completion) in enumerate(sample.asked):
        arms[trial.arm] = arms.get(trial.arm, -1) + 1
        if completion is not None and arms[trial.arm] % every == 0:
            changed = {"finish_reason": "length", "text": completion.text if text is None else text}
            sample.asked[place] = AskedTrial(trial, completion.model_copy(update=changed))
    return sample.report()


def said(report: Report) -> list[Limitation]:
    return [limit for limit in report.limits if limit.code == "answers_cut_short"]


@pytest.mark.parametrize(("sample", "outcome"), [(approved, DecisionOutcome.APPROVE), (blocked, DecisionOutcome.BLOCK)])
def test_letters_that_end_at_the_limit_are_answers(sample: Callable[[], SampleAudit], outcome: DecisionOutcome) -> None:
    report = cut(sample(), every=1)
    assert report.counts.truncated == report.counts.graded
    assert (report.decision.outcome, report.evidence.protocol.verdict) == (outcome, Verdict.CLEAN)
    assert said(report) == []
    assert b'"n_cut_short"' not in to_json(report)


def test_a_model_that_is_cut_before_it_answers_is_not_judged() -> None:
    report = cut(blocked(), every=1, text=UNDECIDED)
    assert report.decision.outcome is DecisionOutcome.REVIEW
    (reason,) = report.decision.reasons
    assert reason.code == "protocol_invalid"
    assert "100 % of the 397 answers of arm canonical were cut at the token limit before an answer stood" in reason.text
    assert "Raise the token limit (decoding_config.max_tokens)" in reason.text


def test_every_tenth_answer_cut_short_is_a_limit_that_names_what_to_raise() -> None:
    report = cut(approved(), every=10, text=UNDECIDED)
    assert report.evidence.protocol.verdict is Verdict.CLEAN
    (limit,) = said(report)
    assert limit.text == (
        "Answers were cut at the token limit before an answer stood in them: 40 of 397 (10.08 %) in arm canonical, 120 "
        "of 1,191 (10.08 %) in arm perturbed. They count as not right, and accuracies are too low by what they would "
        "have got right. Raise the token limit (decoding_config.max_tokens); where the model goes on after its answer, "
        "name the text at which an answer ends in decoding_config.stop. The limit is 4 tokens now, and how long the "
        "answers would have become is not known: begin with twice as many."
    )
    assert limit.text[:60] in render(report)


def test_a_hundredth_is_passed_over_unless_the_suite_says_otherwise() -> None:
    assert said(cut(approved(), every=100, text=UNDECIDED)) == []
    strict = approved(changes={"scoring_config": {"max_cut_short_pct": 0.5}})
    assert len(said(cut(strict, every=100, text=UNDECIDED))) == 1
    lenient = approved(changes={"scoring_config": {"max_cut_short_pct": 15}})
    assert said(cut(lenient, every=10, text=UNDECIDED)) == []


def test_the_share_is_part_of_the_fingerprint_and_its_default_leaves_others_as_they_were() -> None:
    assert "max_cut_short_pct" not in ScoringSection().plain()
    assert ScoringSection(max_cut_short_pct=5.0).plain()["max_cut_short_pct"] == 5.0
    plain, changed = (
        approved(n_items=4, changes=change) for change in ({}, {"scoring_config": {"max_cut_short_pct": 5}})
    )
    assert plain.manifest.card.fingerprint != changed.manifest.card.fingerprint
    assert "scoring_config.max_cut_short_pct" in {place.dotted for place in all_places()}
