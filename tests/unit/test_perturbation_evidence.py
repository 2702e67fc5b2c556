"""The perturbation channel's verdict, and its size on clean models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from proctor.domain.evidence import PerturbationEvidence, Verdict
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import Exclusion, PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from tests.unit.samples import consistent, paired, sample, samples


def weigh(answers: PairedAnswers, **scoring: object) -> PerturbationEvidence:
    return perturbation_evidence(answers, ScoringSection.model_validate(scoring), GovernanceSection(), 0.1)


def test_a_model_that_answers_alike_is_clean() -> None:
    found = weigh(paired([1] * 450 + [0] * 150, [3] * 450 + [0] * 150, [3] * 600))
    assert (found.verdict, found.p_value) == (Verdict.CLEAN, 1.0)
    assert not any(item.flagged for item in found.items)


def test_a_model_that_only_knows_the_canonical_wording_is_contaminated() -> None:
    found = weigh(paired([1] * 540 + [0] * 60, [3] * 450 + [0] * 150, [3] * 600))
    assert found.verdict is Verdict.CONTAMINATED
    assert found.p_value == max(found.p_exchangeability, found.p_studentised) < 1e-20
    assert found.score_inflation.value == pytest.approx(15.0)
    assert found.contamination_score.value == pytest.approx(1 / 6)
    assert found.leaked_share is not None
    assert found.leaked_share.value == pytest.approx(15 / 0.9)
    assert found.score_inflation.low is not None
    assert sum(item.flagged for item in found.items) == int(6 * found.score_inflation.low)
    assert {item.item_id for item in found.items if item.flagged} <= {f"item-{i:05d}" for i in range(450, 540)}


def test_fifty_items_with_one_variant_each_are_too_few_even_when_nothing_differs() -> None:
    found = weigh(paired([1] * 34 + [0] * 16, [1] * 34 + [0] * 16, [1] * 50))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.score_inflation.value == 0.0
    assert found.items_needed_to_approve is not None
    assert found.items_needed_to_approve > 50
    assert found.minimum_detectable_points > 5.0
    assert "no sign of a clean model" in " ".join(found.reasons)


def test_no_significant_difference_is_not_the_same_as_clean() -> None:
    rng = np.random.default_rng(6)
    found = [weigh(sample(rng, rng.beta(1, 1, 100), variants=3)) for _ in range(40)]
    insignificant = [one for one in found if one.p_value > 0.05]
    assert len(insignificant) > 30
    assert sum(one.verdict is Verdict.INCONCLUSIVE for one in insignificant) > 20
    for one in found:
        high, score_high = one.score_inflation.high, one.contamination_score.high
        assert high is not None
        assert (one.verdict is Verdict.CLEAN) == (high <= 5.0 and score_high is not None and score_high <= 0.1)


def test_a_lower_bound_past_the_limit_is_not_enough_without_significance() -> None:
    answers = paired([1] * 540 + [0] * 60, [3] * 450 + [0] * 150, [3] * 600)
    assert weigh(answers, significance_alpha=1e-30).verdict is Verdict.INCONCLUSIVE


def test_a_better_rewording_is_never_contamination() -> None:
    found = weigh(paired([1] * 300 + [0] * 300, [3] * 450 + [0] * 150, [3] * 600))
    assert found.verdict is Verdict.CLEAN
    assert found.p_value > 0.99


@pytest.mark.parametrize(
    "answers",
    [
        paired([], [], []),
        paired([1], [0], [3]),
        paired([0] * 50, [0] * 50, [3] * 50),
        paired([1] * 9, [2] * 9, [2] * 9),
    ],
)
def test_hardly_any_evidence_is_never_clean(answers: PairedAnswers) -> None:
    found = weigh(answers)
    assert found.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)
    assert found.plain()  # and it can be written as JSON: no NaN, no infinity


def test_no_paired_item_makes_the_channel_invalid() -> None:
    assert weigh(paired([], [], [])).verdict is Verdict.INVALID


def test_items_left_out_are_counted_in_the_reasons() -> None:
    answers = PairedAnswers.of(
        ["a"], [True], [1], [1], [Exclusion("b", "no admitted variant"), Exclusion("c", "no admitted variant")]
    )
    assert "2 items could not be paired and took no part (2: no admitted variant)." in weigh(answers).reasons


@given(samples())
def test_the_evidence_is_sound_whatever_the_answers(answers: PairedAnswers) -> None:
    found = weigh(answers)
    assert 0.0 <= found.p_value <= 1.0
    assert found.n_items == len(found.items) == answers.n
    assert found.verdict is Verdict.CONTAMINATED or not any(item.flagged for item in found.items)
    assert found.plain()


@given(samples(min_items=1))
def test_permuting_items_changes_no_byte_of_the_evidence(answers: PairedAnswers) -> None:
    order = np.random.default_rng(1).permutation(answers.n)
    shuffled = PairedAnswers(
        tuple(answers.item_ids[i] for i in order), answers.canonical[order], answers.right[order], answers.total[order]
    )
    left, right = weigh(answers).plain(), weigh(shuffled).plain()
    # The article's flagged items are listed in the order of the items.
    for plain in (left, right):
        plain["per_item_t_test"]["flagged_items"].sort()
    assert left == right


def _p(answers: PairedAnswers) -> float:
    from proctor.evidence.perturbation.exchangeability import exchangeability_test
    from proctor.evidence.perturbation.studentised import studentised_test

    return max(exchangeability_test(answers).p_value, studentised_test(answers))


@pytest.mark.parametrize("family", ["Beta(1,1)", "Beta(4,1)", "consistent", "guessers", "rise and fall together"])
def test_a_clean_model_is_rejected_at_most_six_times_in_a_hundred(family: str) -> None:
    rng, rejected, replications, n = np.random.default_rng(23), 0, 1_000, 200
    for _ in range(replications):
        if family == "consistent":
            answers = consistent(rng, n, variants=3)
        elif family == "guessers":
            answers = sample(rng, np.where(rng.random(n) < 0.75, 0.99, 0.1), variants=3)
        elif family == "rise and fall together":
            chances = rng.random(n)
            answers = paired((rng.random(n) < chances).tolist(), (3 * (rng.random(n) < chances)).tolist(), [3] * n)
        else:
            answers = sample(rng, rng.beta(4 if family == "Beta(4,1)" else 1, 1, n), variants=3)
        rejected += _p(answers) <= 0.05
    assert stats.binomtest(rejected, replications, 0.06, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(("leaked", "at_least"), [(0.05, 0.95)])
def test_leaks_among_unknown_items_of_a_consistent_model_are_found(leaked: float, at_least: float) -> None:
    rng = np.random.default_rng(29)
    found = sum(_p(consistent(rng, 500, variants=3, leaked=leaked)) <= 0.05 for _ in range(200))
    assert found >= 200 * at_least


def test_600_items_of_a_consistent_clean_model_are_clean() -> None:
    rng = np.random.default_rng(31)
    verdicts = [weigh(consistent(rng, 600, variants=3)).verdict for _ in range(60)]
    assert verdicts.count(Verdict.CLEAN) == 60
