"""Truncation in one run and in two: what it is known from, what it can cost, and when a verdict may rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from proctor.domain.errors import BadInputError
from proctor.domain.evidence import Verdict
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.evidence.multiplicity import holm
from proctor.evidence.protocol.truncation import Cuts, compare_truncation, cuts, truncation_of
from proctor.evidence.protocol.truncation_results import Basis, RateName, TruncationEvidence


def never(text: str) -> bool:
    return False


def ends_open(text: str) -> bool:
    return not text.endswith(".")


def run(rows: Sequence[LoggedAnswer], *, limit: int | None = None, source: str = "log") -> RunLog:
    return RunLog(source, "csv", "x", tuple(rows), token_limit=limit)


def row(number: int, *, correct: bool | None = True, **fields: Any) -> LoggedAnswer:
    return LoggedAnswer(item_id=f"i{number}", correct=correct, line=number + 2, **fields)


def reasons(n: int, cut: int, *, wrong: int = 0, source: str = "log") -> RunLog:
    """n answers, the first `cut` cut by finish reason, the first `wrong` wrong."""
    return run(
        [row(i, correct=i >= wrong, finish_reason="length" if i < cut else "stop") for i in range(n)], source=source
    )


def compared(a: RunLog, b: RunLog, **options: Any) -> TruncationEvidence:
    found = [cuts(one, token_limit=None, looks_cut=ends_open) for one in (a, b)]
    return compare_truncation(a, b, found[0], found[1], **options)


def audited(one: RunLog) -> TruncationEvidence:
    return truncation_of(one, cuts(one, token_limit=None, looks_cut=ends_open))


def test_finish_reasons_are_believed_before_tokens_and_tokens_before_texts() -> None:
    full = row(0, finish_reason="stop", tokens=300, text="no end")
    assert cuts(run([full], limit=300), token_limit=None, looks_cut=ends_open) == Cuts(
        Basis.FINISH_REASON, {"i0": False}
    )
    counted = row(0, tokens=300, text="An end.")
    assert cuts(run([counted], limit=300), token_limit=None, looks_cut=ends_open) == Cuts(Basis.TOKENS, {"i0": True})
    assert cuts(run([counted]), token_limit=None, looks_cut=ends_open) == Cuts(Basis.TEXT, {"i0": False})
    assert cuts(run([row(0)]), token_limit=None, looks_cut=ends_open) == Cuts(Basis.UNKNOWN, {})


def test_a_given_token_limit_replaces_the_logs_own() -> None:
    counted = run([row(0, tokens=300), row(1, tokens=299)], limit=512)
    assert cuts(counted, token_limit=300, looks_cut=never).flags == {"i0": True, "i1": False}


def test_a_finish_reason_that_says_nothing_is_not_taken_for_a_whole_answer() -> None:
    silent = run([row(0, finish_reason="unknown"), row(1, finish_reason=" None ", tokens=9)], limit=9)
    assert cuts(silent, token_limit=None, looks_cut=never) == Cuts(Basis.TOKENS, {"i1": True})


def test_one_known_answer_is_enough_for_texts_not_to_be_guessed_at() -> None:
    mixed = run([row(0, finish_reason="stop", text="open"), row(1, text="open")])
    found = cuts(mixed, token_limit=None, looks_cut=ends_open)
    assert found == Cuts(Basis.FINISH_REASON, {"i0": False})
    arm = truncation_of(mixed, found).arms[0]
    assert (arm.n, arm.unknown) == (1, 1)


def test_the_rate_of_a_run_has_wilsons_interval() -> None:
    arm = audited(reasons(200, 31)).arms[0]
    assert (arm.n, arm.truncated, arm.rate, arm.basis) == (200, 31, 31 / 200, Basis.FINISH_REASON)
    assert arm.rate_ci == pytest.approx(proportion_confint(31, 200, method="wilson"))


def test_accuracy_is_bounded_by_what_cut_answers_could_have_been() -> None:
    # 40 wrong, of which 25 were cut; 5 right answers were cut as well and change nothing.
    rows = [row(i, correct=i >= 40, finish_reason="length" if i < 25 or i >= 95 else "stop") for i in range(100)]
    arm = audited(run(rows)).arms[0]
    assert (arm.truncated, arm.wrong_and_truncated) == (30, 25)
    assert (arm.accuracy_low, arm.accuracy_high) == (0.60, 0.85)


def test_answers_of_which_nothing_is_known_may_have_been_right_too() -> None:
    rows = [row(i, correct=i >= 10, finish_reason="stop" if i >= 4 else None) for i in range(100)]
    one = audited(run(rows))
    assert one.arms[0].accuracy_high == 0.94
    assert one.verdict is Verdict.INCONCLUSIVE


def test_a_run_whose_score_cannot_move_is_clean_and_one_cut_in_most_answers_is_invalid() -> None:
    assert audited(reasons(100, 2, wrong=30)).verdict is Verdict.CLEAN
    assert audited(reasons(100, 3, wrong=30)).verdict is Verdict.INCONCLUSIVE
    assert audited(reasons(100, 50, wrong=30)).verdict is Verdict.INCONCLUSIVE
    assert audited(reasons(100, 51, wrong=30)).verdict is Verdict.INVALID


def test_cut_answers_that_are_right_do_not_make_a_run_doubtful() -> None:
    assert audited(reasons(100, 40, wrong=2)).verdict is Verdict.CLEAN


def test_a_guess_is_never_the_ground_of_a_verdict() -> None:
    whole, cut = (run([row(i, text=text) for i in range(300)]) for text in ("An end.", "no end"))
    assert audited(whole).verdict is Verdict.INCONCLUSIVE
    assert audited(cut).verdict is Verdict.INCONCLUSIVE
    both = compared(cut, whole)
    assert both.verdict is Verdict.INCONCLUSIVE
    assert both.difference == 1.0
    assert both.p_value is not None
    assert both.p_value < 1e-6
    assert "guess" in both.conclusion
    assert "suspected" in both.conclusion


def test_a_run_of_which_nothing_is_known_is_not_audited() -> None:
    unknown = run([row(i) for i in range(300)])
    one = audited(unknown)
    assert (one.verdict, one.arms[0].rate, one.arms[0].accuracy_high) == (Verdict.NOT_AUDITED, None, None)
    assert compared(unknown, unknown).verdict is Verdict.NOT_AUDITED


def test_a_known_and_a_guessed_rate_are_not_compared_and_that_is_said() -> None:
    known, guessed = reasons(300, 60), run([row(i, text="An end.") for i in range(300)])
    both = compared(known, guessed)
    assert (both.difference, both.p_value, both.verdict) == (None, None, Verdict.INCONCLUSIVE)
    assert "A's from finish reasons, B's from a guess" in both.conclusion


def test_finish_reasons_and_token_counts_are_compared_and_the_mixture_is_said() -> None:
    counted = run([row(i, tokens=10 + (i < 60)) for i in range(300)], limit=11)
    both = compared(reasons(300, 60), counted)
    assert (both.difference, both.verdict) == (0.0, Verdict.CLEAN)
    assert "not known from the same thing" in both.conclusion


def test_runs_that_are_cut_differently_cannot_be_compared() -> None:
    both = compared(reasons(200, 30), reasons(200, 10))
    assert both.verdict is Verdict.INVALID
    assert both.difference == pytest.approx(0.1)
    assert both.p_value == pytest.approx(stats.binomtest(20, 20, 0.5).pvalue)
    assert "10 points more of A's answers" in both.conclusion


def test_a_significant_difference_within_the_tolerance_is_not_invalid() -> None:
    both = compared(reasons(5000, 60), reasons(5000, 10))
    assert both.p_value is not None
    assert both.p_value < 0.001
    assert both.verdict is Verdict.CLEAN


def test_few_items_without_a_cut_answer_are_inconclusive_and_enough_are_clean() -> None:
    assert compared(reasons(179, 0), reasons(179, 0)).verdict is Verdict.INCONCLUSIVE
    assert compared(reasons(180, 0), reasons(180, 0)).verdict is Verdict.CLEAN


def test_one_error_row_does_not_keep_whole_runs_from_being_clean_and_a_difference_in_them_does() -> None:
    def failing(n: int) -> RunLog:
        return run([row(i, correct=None if i < n else True, finish_reason="stop") for i in range(250)])

    assert compared(failing(1), failing(0)).verdict is Verdict.CLEAN
    assert compared(failing(20), failing(0)).verdict is Verdict.INVALID


def test_two_runs_mostly_cut_are_invalid_even_where_they_do_not_differ() -> None:
    assert compared(reasons(300, 200), reasons(300, 200)).verdict is Verdict.INVALID


def test_an_item_that_failed_in_one_run_counts_as_a_pair_of_error_rows_and_nowhere_else() -> None:
    a = run([row(i, correct=None if i < 30 else True, finish_reason="stop", text="An end.") for i in range(200)])
    b = run([row(i, finish_reason="stop", text="An end.") for i in range(200)])
    both = compared(a, b)
    found = {one.rate: one for one in both.comparisons}
    assert (found[RateName.ERROR].n, found[RateName.ERROR].only_a) == (200, 30)
    assert (found[RateName.TRUNCATED].n, found[RateName.EMPTY].n) == (170, 170)
    assert both.verdict is Verdict.INVALID
    assert "error rows" in both.conclusion


def test_empty_and_unreadable_answers_are_told_apart() -> None:
    rows = [
        row(0, text=" \n", answer="[invalid]"),
        row(1, text="Well.", answer="[invalid]"),
        row(2, text="2", answer="2"),
    ]
    arm = audited(run(rows)).arms[0]
    assert (arm.empty.n, arm.empty.count) == (3, 1)
    assert (arm.unreadable.n, arm.unreadable.count) == (3, 1)


def test_a_rate_that_a_log_cannot_tell_is_not_compared() -> None:
    both = compared(reasons(200, 0), reasons(200, 0))
    assert [one.rate for one in both.comparisons] == [RateName.TRUNCATED, RateName.ERROR]
    assert both.arms[0].empty.rate is None


def test_the_other_rates_are_corrected_over_their_family_and_truncation_is_not() -> None:
    def one(empty: int, unread: int, cut: int) -> RunLog:
        return run(
            [
                row(
                    i,
                    text="" if i < empty else "Text.",
                    answer="" if 50 <= i < 50 + unread else "1",
                    finish_reason="length" if i < cut else "stop",
                )
                for i in range(200)
            ]
        )

    both = compared(one(7, 6, 6), one(0, 0, 0))
    found = {rate.rate: rate for rate in both.comparisons}
    family = [found[name] for name in (RateName.EMPTY, RateName.UNREADABLE, RateName.ERROR)]
    assert [rate.p_holm for rate in family] == list(holm([rate.p_value for rate in family]))
    assert found[RateName.TRUNCATED].p_holm is None
    assert found[RateName.UNREADABLE].p_value < 0.05 < (found[RateName.UNREADABLE].p_holm or 0)


def test_runs_without_a_common_item_are_refused_with_both_names() -> None:
    a = run([row(1, finish_reason="stop")], source="first.csv")
    b = run([row(2, finish_reason="stop")], source="second.csv")
    with pytest.raises(BadInputError, match=r"second\.csv.*first\.csv"):
        compared(a, b)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))))
def test_changing_places_changes_the_sign_and_nothing_else(case: tuple[int, int, int]) -> None:
    n, first, second = case
    a, b = reasons(n, first), reasons(n, second)
    there, back = compared(a, b), compared(b, a)
    assert there.verdict is back.verdict
    assert there.p_value == back.p_value
    assert there.difference == -(back.difference or 0.0)


# --- the test of equivalence ---------------------------------------------------------------------------------------
