"""The lottery rate: against a count by hand, and where it is undefined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.proportion import proportion_confint

from proctor.evidence.protocol.lottery import lottery


def graded(*rows: str) -> np.ndarray:
    return np.asarray([[cell == "1" for cell in row] for row in rows], dtype=np.bool_)


def test_wrong_answers_that_most_samples_get_right_are_counted() -> None:
    greedy = np.asarray([False, False, False, True, True])
    found = lottery(greedy, graded("11100", "11000", "11111", "00011", "10101"))
    assert (found.n, found.k, found.greedy_wrong, found.rescued, found.rate.value) == (5, 5, 3, 2, 2 / 3)
    assert (found.greedy_right, found.lost, found.reverse_rate.value) == (2, 1, 1 / 2)
    assert (found.accuracy_greedy.value, found.accuracy_majority.value) == (2 / 5, 3 / 5)


def test_the_published_case_study_has_its_rate_and_wilsons_interval() -> None:
    samples = np.zeros((65, 5), dtype=np.bool_)
    samples[:25, :3] = True
    found = lottery(np.zeros(65, dtype=np.bool_), samples)
    assert found.rate.value == pytest.approx(0.3846, abs=5e-5)
    assert (found.rate.low, found.rate.high) == pytest.approx(proportion_confint(25, 65, method="wilson"))


def test_a_tie_of_an_even_number_of_samples_is_no_majority_either_way() -> None:
    found = lottery(np.asarray([False, True]), graded("1100", "1100"))
    assert (found.rescued, found.lost, found.tied) == (0, 0, 2)


def test_a_rate_without_a_wrong_answer_is_undefined_and_not_zero() -> None:
    found = lottery(np.asarray([True]), graded("000"))
    assert found.rate.value is None
    assert found.reverse_rate.value == 1.0
    nothing = lottery(np.zeros(0, dtype=np.bool_), np.zeros((0, 5), dtype=np.bool_))
    assert (nothing.rate.value, nothing.reverse_rate.value) == (None, None)


@pytest.mark.parametrize(("shape", "samples"), [((3,), (2, 5)), ((3,), (3, 0)), ((3,), (3,)), ((3, 1), (3, 5))])
def test_shapes_that_do_not_fit_are_refused(shape: tuple[int, ...], samples: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="samples"):
        lottery(np.zeros(shape, dtype=np.bool_), np.zeros(samples, dtype=np.bool_))


@given(st.data(), st.integers(1, 30), st.integers(1, 9))
def test_it_agrees_with_a_loop_over_items(data: st.DataObject, n: int, k: int) -> None:
    greedy = data.draw(hnp.arrays(np.bool_, n))
    samples = data.draw(hnp.arrays(np.bool_, (n, k)))
    found = lottery(greedy, samples)
    wrong = [i for i in range(n) if not greedy[i]]
    rescued = [i for i in wrong if sum(map(bool, samples[i])) > k / 2]
    lost = [i for i in range(n) if greedy[i] and sum(not cell for cell in samples[i]) > k / 2]
    assert (found.greedy_wrong, found.rescued, found.lost) == (len(wrong), len(rescued), len(lost))
