"""The decision table, first match wins; a missing input never approves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.channel_results import OtherEvidence
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Evidence, ProtocolEvidence, Verdict
from proctor.domain.suite import Suite
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.scorer.policy import decide
from tests.unit.samples import paired, samples

CLEAN = paired([1] * 450 + [0] * 150, [3] * 450 + [0] * 150, [3] * 600)
LEAKED = paired([1] * 540 + [0] * 60, [3] * 450 + [0] * 150, [3] * 600)
FEW = paired([1] * 34 + [0] * 16, [1] * 34 + [0] * 16, [1] * 50)
BETWEEN = paired([1] * 490 + [0] * 110, [3] * 455 + [0] * 145, [3] * 600)
COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=("Alike.",), arms=())
INCOMPARABLE = ProtocolEvidence(verdict=Verdict.INVALID, reasons=("15 % truncated.",), arms=())


def suite(scoring: dict[str, Any] | None = None, governance: dict[str, Any] | None = None) -> Suite:
    return Suite.model_validate(
        {
            "audit_suite_id": "facts",
            "model_config": {"model_id": "m", "model_version": "sha256:a1b2c3d4e5f6", "endpoint": "local"},
            "dataset_config": {"benchmark_name": "facts"},
            "scoring_config": scoring or {},
            "governance": governance or {},
        }
    )


def evidence(
    answers: PairedAnswers | None,
    of: Suite,
    protocol: ProtocolEvidence = COMPARABLE,
    not_audited: dict[str, str] | None = None,
) -> Evidence:
    result = None if answers is None else perturbation_evidence(answers, of.scoring, of.governance, None)
    return Evidence(perturbation=result, protocol=protocol, not_audited=not_audited or {})


def outcome_and_codes(answers: PairedAnswers | None, of: Suite, **more: Any) -> tuple[DecisionOutcome, list[str]]:
    decision = decide(evidence(answers, of, **more), of)
    assert decision.reasons
    return decision.outcome, [reason.code for reason in decision.reasons]


def test_a_clean_model_is_approved_with_its_numbers() -> None:
    decision = decide(evidence(CLEAN, suite()), suite())
    assert decision.outcome is DecisionOutcome.APPROVE
    assert "600 items" in decision.reasons[0].text
    assert "5 points" in decision.reasons[0].text


def test_a_leaked_model_is_blocked_by_both_estimates() -> None:
    outcome, codes = outcome_and_codes(LEAKED, suite())
    assert outcome is DecisionOutcome.BLOCK
    assert codes == ["score_inflation_past_limit", "contamination_score_past_limit"]


def test_too_few_items_are_reviewed_and_the_sample_that_would_settle_it_is_named() -> None:
    decision = decide(evidence(FEW, suite()), suite())
    assert decision.outcome is DecisionOutcome.REVIEW
    assert decision.reasons[-1].code == "too_few_items"
    assert "A sample of 50 items is too small" in decision.reasons[-1].text


def test_an_estimate_between_the_limits_is_reviewed_and_more_items_are_not_promised_to_help() -> None:
    outcome, codes = outcome_and_codes(BETWEEN, suite())
    assert outcome is DecisionOutcome.REVIEW
    assert codes[-1] == "estimate_past_allowance"


def test_a_model_that_answers_nothing_right_is_reviewed() -> None:
    outcome, codes = outcome_and_codes(paired([0] * 600, [0] * 600, [3] * 600), suite())
    assert (outcome, codes) == (DecisionOutcome.REVIEW, ["accuracy_too_low"])


@pytest.mark.parametrize("answers", [CLEAN, LEAKED])
def test_an_invalid_protocol_comes_before_everything_else(answers: PairedAnswers) -> None:
    for required in (("perturbation", "protocol"), ("perturbation",), ()):
        of = suite({"required_channels": required})
        outcome, codes = outcome_and_codes(answers, of, protocol=INCOMPARABLE)
        assert (outcome, codes) == (DecisionOutcome.REVIEW, ["protocol_invalid"])


@pytest.mark.parametrize("channel", ["noise", "exposure", "fresh"])
def test_a_required_channel_that_did_not_run_is_reviewed(channel: str) -> None:
    of = suite({"required_channels": ["perturbation", "protocol", channel]})
    decision = decide(evidence(CLEAN, of, not_audited={channel: "no corpus was given"}), of)
    assert decision.outcome is DecisionOutcome.REVIEW
    assert decision.reasons[0].code == f"{channel}_not_audited"
    assert "no corpus was given" in decision.reasons[0].text


@pytest.mark.parametrize("required", [("perturbation", "protocol"), ()])
def test_the_profile_strict_requires_fresh_whatever_the_suite_names(required: tuple[str, ...]) -> None:
    of = suite({"required_channels": required}, {"profile": "strict"})
    assert set(of.required_channels) == {"perturbation", "protocol", "fresh"}
    missing = evidence(CLEAN, of, not_audited={"fresh": "no freshly written items were given"})
    decision = decide(missing, of)
    assert decision.outcome is DecisionOutcome.REVIEW
    assert [reason.code for reason in decision.reasons] == ["fresh_not_audited"]
    assert decision.reasons[0].text == (
        "The fresh channel, which the profile strict requires, was not audited: no freshly written items were given."
    )
    assert decide(missing, suite({"required_channels": required})).outcome is DecisionOutcome.APPROVE


@pytest.mark.parametrize("verdict", Verdict)
def test_under_the_profile_strict_only_clean_fresh_items_let_a_clean_model_be_approved(verdict: Verdict) -> None:
    of = suite(governance={"profile": "strict"})
    fresh = OtherEvidence(verdict=verdict, reasons=("So.",), null_hypothesis="-", compares="-", wording="-")
    outcome = decide(evidence(CLEAN, of).model_copy(update={"others": {"fresh": fresh}}), of).outcome
    assert (outcome is DecisionOutcome.APPROVE) is (verdict is Verdict.CLEAN)


def test_without_the_perturbation_channel_nothing_is_approved_even_when_it_is_not_required() -> None:
    of = suite({"required_channels": ["protocol"]})
    assert outcome_and_codes(None, of) == (DecisionOutcome.REVIEW, ["perturbation_not_audited"])


def test_past_the_review_limit_it_is_at_least_review() -> None:
    lenient = {"contamination_threshold": 0.9, "max_allowed_contaminated_items_pct": 90.0}
    of = suite(lenient, {"block_deployment_above_contaminated_pct": 95.0, "review_required_above_cs": 0.1})
    assert outcome_and_codes(LEAKED, of)[0] is DecisionOutcome.REVIEW
    assert outcome_and_codes(LEAKED, of)[1] == ["contamination_score_past_review_limit"]
    of = suite(lenient, {"block_deployment_above_contaminated_pct": 95.0, "review_required_above_cs": 0.18})
    assert outcome_and_codes(LEAKED, of) == (DecisionOutcome.REVIEW, ["review_limit_not_excluded"])
    of = suite(lenient, {"block_deployment_above_contaminated_pct": 95.0, "review_required_above_cs": 0.25})
    assert outcome_and_codes(LEAKED, of)[0] is DecisionOutcome.APPROVE


def test_past_the_review_limit_does_not_soften_a_block() -> None:
    outcome, codes = outcome_and_codes(LEAKED, suite(governance={"review_required_above_cs": 0.15}))
    assert outcome is DecisionOutcome.BLOCK
    assert codes[-1] == "contamination_score_past_review_limit"


def test_the_articles_rule_blocks_where_the_suite_names_it_and_says_so() -> None:
    """Every tenth item is right in canonical form alone, and as many only in rewordings: no inflation, 10 % flagged."""
    lucky = paired([1] * 60 + [0] * 60 + [1] * 480, [0] * 60 + [3] * 60 + [3] * 480, [3] * 600)
    assert outcome_and_codes(lucky, suite())[0] is not DecisionOutcome.BLOCK
    decision = decide(evidence(lucky, of := suite({"method": "per_item_t_test"})), of)
    assert decision.outcome is DecisionOutcome.BLOCK
    assert decision.reasons[0].code == "per_item_t_test_past_limit"
    assert "flags 60 items (10.00 %)" in decision.reasons[0].text
    assert "It is shown for comparison" in decision.reasons[0].text


def test_the_articles_rule_does_not_approve_what_the_intervals_leave_open() -> None:
    of = suite({"method": "per_item_t_test"})
    assert outcome_and_codes(FEW, of)[0] is DecisionOutcome.REVIEW


@given(samples(max_items=40), st.booleans(), st.booleans())
def test_a_missing_input_never_approves(answers: PairedAnswers, without_result: bool, incomparable: bool) -> None:
    of = suite()
    protocol = INCOMPARABLE if incomparable else COMPARABLE
    decision = decide(evidence(None if without_result else answers, of, protocol=protocol), of)
    if without_result or incomparable or answers.n == 0:
        assert decision.outcome is DecisionOutcome.REVIEW
    assert decision.reasons


@given(st.integers(0, 600), st.integers(0, 600))
def test_one_more_leaked_item_never_leads_to_a_milder_decision(first: int, second: int) -> None:
    severity = [DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK]

    def decided(leaked: int) -> int:
        known = 600 - leaked
        of = suite()
        return severity.index(outcome_and_codes(paired([1] * 600, [3] * known + [0] * leaked, [3] * 600), of)[0])

    fewer, more = sorted((first, second))
    assert decided(fewer) <= decided(more)
