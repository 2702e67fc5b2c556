"""A model that answers no better than chance: it is said that it cannot do the benchmark, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.evidence import Evidence, PerturbationEvidence, ProtocolEvidence, Verdict
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.chance import not_above_chance
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.scorer.page.html import render
from proctor.scorer.policy import decide
from tests.report_samples import SampleAudit
from tests.unit.samples import paired, samples
from tests.unit.test_decision_policy import suite

COMPARABLE = ProtocolEvidence(verdict=Verdict.CLEAN, reasons=("Alike.",), arms=())


def weighed(answers: PairedAnswers, chance: float | None, **scoring: object) -> tuple[PerturbationEvidence, Decision]:
    of = suite(dict(scoring))
    found = perturbation_evidence(answers, of.scoring, of.governance, chance)
    return found, decide(Evidence(perturbation=found, protocol=COMPARABLE, not_audited={}), of)


def right(of: int, n: int, reworded: Sequence[int] | None = None) -> PairedAnswers:
    """n items of which so many are right canonically, with one rewording each, right where it is said."""
    return paired([1] * of + [0] * (n - of), reworded or [0] * n, [1] * n)


def test_one_right_answer_of_39_says_that_the_model_cannot_do_the_benchmark_and_nothing_else() -> None:
    found, decision = weighed(right(1, 39), None)
    assert decision.outcome is DecisionOutcome.REVIEW
    assert [reason.code for reason in decision.reasons] == ["accuracy_too_low"]
    assert decision.reasons[0].text == (
        "The model cannot do this benchmark: on 39 items 2.56 % of its canonical answers are right, which is not "
        "clearly above 0. Nothing that memory could have added can be told from that; audit with a benchmark that the "
        "model can answer, or look at the prompt template, the extractor and the token limit."
    )
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reasons == (decision.reasons[0].text,)
    assert not any(item.flagged for item in found.items)


def test_four_options_are_answered_by_guessing() -> None:
    found, decision = weighed(right(81, 300, [1] * 75 + [0] * 225), 0.25)
    assert (decision.outcome, len(decision.reasons)) == (DecisionOutcome.REVIEW, 1)
    assert (
        "on 300 items 27 % of its canonical answers are right (95 % interval 22.29 % to 32.29 %), which is not above "
        "the 25 % that guessing gives"
    ) in decision.reasons[0].text
    assert found.not_above_chance == decision.reasons[0].text


def test_a_leaked_benchmark_is_blocked_where_the_model_answers_it_better_than_chance() -> None:
    for chance, answers in ((None, right(12, 40)), (0.25, right(24, 40)), (0.25, paired([1] * 24, [0] * 24, [3] * 24))):
        found, decision = weighed(answers, chance)
        assert decision.outcome is DecisionOutcome.BLOCK
        assert found.not_above_chance is None
        assert "not_above_chance" not in found.plain()


def test_no_rule_decides_from_one_lucky_answer_neither_the_articles() -> None:
    lucky = paired([1] + [0] * 9, [0] * 10, [9] * 10)
    _, decision = weighed(lucky, None, method="per_item_t_test")
    assert [reason.code for reason in decision.reasons] == ["accuracy_too_low"]


def test_a_model_that_guesses_alike_in_every_wording_is_not_approved_for_that() -> None:
    """Of guesses that are the same in every wording D is 0 without any doubt; the score is still one of guesses."""
    _, decision = weighed(paired([1] * 250 + [0] * 750, [3] * 250 + [0] * 750, [3] * 1000), 0.25)
    assert [reason.code for reason in decision.reasons] == ["accuracy_too_low"]
    _, better = weighed(paired([1] * 400 + [0] * 600, [3] * 400 + [0] * 600, [3] * 1000), 0.25)
    assert better.outcome is DecisionOutcome.APPROVE


def test_what_is_missing_comes_first() -> None:
    of = suite({"required_channels": ["perturbation", "protocol", "fresh"]})
    found = perturbation_evidence(right(1, 39), of.scoring, of.governance, None)
    decision = decide(Evidence(perturbation=found, protocol=COMPARABLE, not_audited={"fresh": "none given"}), of)
    assert [reason.code for reason in decision.reasons] == ["fresh_not_audited"]


@given(samples(max_items=40), st.sampled_from([None, 0.1, 0.25, 0.5]))
def test_it_is_a_review_with_one_reason_or_plays_no_part(answers: PairedAnswers, chance: float | None) -> None:
    found, decision = weighed(answers, chance)
    if found.not_above_chance is not None:
        assert decision.outcome is DecisionOutcome.REVIEW
        assert [reason.text for reason in decision.reasons] == [found.not_above_chance]
    else:
        assert "accuracy_too_low" not in {reason.code for reason in decision.reasons}


@given(st.integers(1, 200), st.data(), st.sampled_from([0.0, 0.1, 0.25, 0.5]), st.sampled_from([0.8, 0.95, 0.99]))
def test_one_more_right_answer_a_lower_chance_or_a_lower_level_never_takes_a_model_below_chance(
    n: int, data: st.DataObject, chance: float, level: float
) -> None:
    of = data.draw(st.integers(0, n - 1))

    def above(count: int, guessed: float, confidence: float) -> bool:
        found, _ = weighed(right(count, n), guessed, confidence_level=confidence)
        return found.not_above_chance is None

    if above(of, chance, level):
        assert above(of + 1, chance, level)
        assert above(of, chance / 2, level)
        assert above(of, chance, level - 0.1)


@pytest.mark.parametrize("chance", [0.1, 0.25, 0.5])
def test_guessers_are_seldom_taken_for_models_that_can_do_a_benchmark(chance: float) -> None:
    """The interval's lower bound is one-sided at 2.5 %."""
    rng, n, audits = np.random.default_rng(5), 200, 2_000
    counts, times = np.unique(rng.binomial(n, chance, size=audits), return_counts=True)
    passed = sum(
        int(often)
        for count, often in zip(counts, times, strict=True)
        if weighed(right(int(count), n), chance)[0].not_above_chance is None
    )
    assert passed / audits <= 0.035


def test_without_an_interval_nothing_is_above_chance() -> None:
    found, _ = weighed(right(30, 40), None)
    unknown = found.accuracy_canonical.model_copy(update={"low": None})
    assert not_above_chance(40, found.accuracy_canonical, found.contamination_score, None) is None
    assert not_above_chance(40, unknown, found.contamination_score, None) is not None


def test_the_page_and_its_limits_say_that_and_nothing_of_limits_or_power() -> None:
    report = SampleAudit(n_items=40, knows=0.0, leaked=0.0).report()
    assert report.decision.reasons[0].code == "accuracy_too_low"
    page = render(report)
    assert "The model cannot do this benchmark" in page
    assert "The three numbers that decided" not in page
    assert "Effect against the limits" not in page
    assert "review limit" not in page
    assert "too_few_items" not in {limit.code for limit in report.limits}
