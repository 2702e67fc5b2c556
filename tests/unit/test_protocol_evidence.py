"""Whether arms are comparable: truncated, unreadable and failed answers by arm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from proctor.domain.evidence import ProtocolEvidence, Verdict
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer
from proctor.evidence.multiplicity import holm
from proctor.evidence.protocol.channel import fisher_two_sided, protocol_evidence

ARMS = ("canonical", "perturbed")


def rows(
    arm: Arm, n: int, *, variants: int = 1, truncated: int = 0, cut_short: int = 0, invalid: int = 0, failed: int = 0
) -> list[Answer]:
    truncated = max(truncated, cut_short)
    outcomes = [None] * failed + [Outcome.INVALID] * invalid + [Outcome.CORRECT] * (n - failed - invalid)
    return [
        Answer(
            arm,
            f"item-{i // variants:04d}",
            outcome,
            truncated=failed <= i < failed + truncated,
            cut_short=failed <= i < failed + cut_short,
        )
        for i, outcome in enumerate(outcomes)
    ]


def check(canonical: list[Answer], perturbed: list[Answer]) -> ProtocolEvidence:
    return protocol_evidence([*canonical, *perturbed], expected_arms=ARMS)


def test_arms_that_answer_alike_are_comparable() -> None:
    found = check(
        rows(Arm.CANONICAL, 200, truncated=4, invalid=2), rows(Arm.PERTURBED, 600, variants=3, truncated=13, invalid=7)
    )
    assert found.verdict is Verdict.CLEAN
    canonical, perturbed = found.arms
    assert (canonical.arm, canonical.n_items, canonical.n_answers, canonical.n_truncated, canonical.n_invalid) == (
        "canonical", 200, 200, 4, 2,
    )  # fmt: skip
    assert (perturbed.n_items, perturbed.n_answers, perturbed.n_errors) == (200, 600, 0)
    assert canonical.accuracy.value == pytest.approx(198 / 200)


@pytest.mark.parametrize("what", ["truncated", "invalid"])
def test_a_rate_that_differs_between_arms_makes_the_comparison_invalid(what: str) -> None:
    found = check(rows(Arm.CANONICAL, 200, **{what: 2}), rows(Arm.PERTURBED, 600, variants=3, **{what: 90}))
    assert found.verdict is Verdict.INVALID
    named = "truncated" if what == "truncated" else "empty or unparsable"
    assert f"1 % of the answers are {named} in arm canonical and 15 % in arm perturbed" in found.reasons[0]


def test_a_significant_difference_within_the_tolerance_is_left_to_the_intervals() -> None:
    found = check(rows(Arm.CANONICAL, 20_000), rows(Arm.PERTURBED, 20_000, truncated=300))
    assert found.verdict is Verdict.CLEAN


def test_a_large_difference_by_chance_is_left_to_the_intervals() -> None:
    assert check(rows(Arm.CANONICAL, 20), rows(Arm.PERTURBED, 20, truncated=1)).verdict is Verdict.CLEAN


def test_a_token_limit_of_one_that_cuts_every_answer_alike_is_comparable() -> None:
    found = check(rows(Arm.CANONICAL, 100, truncated=100), rows(Arm.PERTURBED, 300, variants=3, truncated=300))
    assert found.verdict is Verdict.CLEAN


def test_more_than_a_fifth_of_answers_cut_short_is_invalid_though_the_arms_are_cut_alike() -> None:
    found = check(rows(Arm.CANONICAL, 39, cut_short=33), rows(Arm.PERTURBED, 39, cut_short=33))
    assert found.verdict is Verdict.INVALID
    assert len(found.reasons) == 2
    assert found.reasons[0] == (
        "84.62 % of the 39 answers of arm canonical were cut at the token limit before an answer stood in them, more "
        "than 20 %: what the model would have answered is not known. Raise the token limit "
        "(decoding_config.max_tokens); where the model goes on after its answer, name the text at which an answer ends "
        "in decoding_config.stop."
    )
    assert found.arms[0].n_cut_short == 33


def test_a_fifth_itself_is_comparable_and_counted() -> None:
    found = check(rows(Arm.CANONICAL, 100, cut_short=20), rows(Arm.PERTURBED, 300, variants=3, cut_short=60))
    assert found.verdict is Verdict.CLEAN
    assert [arm.n_cut_short for arm in found.arms] == [20, 60]


def test_a_share_is_of_the_answers_that_came_back() -> None:
    found = check(rows(Arm.CANONICAL, 100, cut_short=20, failed=1), rows(Arm.PERTURBED, 100, cut_short=20))
    assert found.verdict is Verdict.INVALID
    assert "of the 99 answers of arm canonical" in found.reasons[0]


@given(st.integers(1, 60), st.data())
def test_one_more_answer_cut_short_in_every_arm_never_makes_arms_comparable(n: int, data: st.DataObject) -> None:
    short = data.draw(st.integers(0, n - 1))

    def verdict(cut: int) -> Verdict:
        return check(rows(Arm.CANONICAL, n, cut_short=cut), rows(Arm.PERTURBED, n, cut_short=cut)).verdict

    if verdict(short) is Verdict.INVALID:
        assert verdict(short + 1) is Verdict.INVALID


def test_an_arm_that_is_mostly_unreadable_is_invalid_even_when_the_other_is_too() -> None:
    found = check(rows(Arm.CANONICAL, 100, invalid=60), rows(Arm.PERTURBED, 100, invalid=60))
    assert found.verdict is Verdict.INVALID
    assert "60 % of the 100 answers of arm canonical are empty or unparsable" in found.reasons[0]


def test_failed_answers_could_hide_what_is_looked_for() -> None:
    assert check(rows(Arm.CANONICAL, 100, failed=6), rows(Arm.PERTURBED, 100, failed=6)).verdict is Verdict.INVALID
    one_failed = check(rows(Arm.CANONICAL, 200, failed=1), rows(Arm.PERTURBED, 200))
    assert one_failed.verdict is Verdict.CLEAN
    assert (one_failed.arms[0].n_answers, one_failed.arms[0].n_errors) == (199, 1)


@pytest.mark.parametrize(
    "answers", [[], rows(Arm.CANONICAL, 50), rows(Arm.CANONICAL, 50) + rows(Arm.PERTURBED, 9, failed=9)]
)
def test_an_arm_without_answers_is_invalid(answers: list[Answer]) -> None:
    found = protocol_evidence(answers, expected_arms=ARMS)
    assert found.verdict is Verdict.INVALID
    assert found.plain()


def test_without_any_row_nothing_is_comparable() -> None:
    assert protocol_evidence([]).verdict is Verdict.INVALID


def test_accuracy_is_the_mean_over_items_and_not_over_answers() -> None:
    answers = [Answer(Arm.PERTURBED, "a", Outcome.CORRECT)] + [Answer(Arm.PERTURBED, "b", Outcome.INCORRECT)] * 3
    assert protocol_evidence(answers).arms[0].accuracy.value == 0.5


def test_the_order_of_the_rows_changes_nothing() -> None:
    answers = rows(Arm.CANONICAL, 60, invalid=7, failed=1) + rows(Arm.PERTURBED, 180, variants=3, truncated=20)
    assert protocol_evidence(answers[::-1]) == protocol_evidence(answers)


@given(st.integers(0, 80), st.integers(0, 80), st.data())
def test_fishers_test_is_that_of_scipy(m: int, n: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, m)), data.draw(st.integers(0, n))
    wanted = stats.fisher_exact([[a, m - a], [b, n - b]]).pvalue
    assert fisher_two_sided(a, m, b, n) == pytest.approx(wanted, rel=1e-7)


# statsmodels collects the garbage of the whole test run at every call.
@settings(max_examples=15)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holms_correction_is_that_of_statsmodels(p_values: list[float]) -> None:
    wanted = multipletests(p_values, method="holm")[1] if p_values else []
    assert holm(p_values) == pytest.approx(tuple(wanted))
