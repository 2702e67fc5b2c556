"""The learned end of the window, and the curve over it, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.perturbation.admission.window import STEP, Goals, learn_window, roc

GOALS = Goals(true_admits=0.9, false_admits=0.1)
_DISTANCES = st.integers(0, 20_000).map(lambda n: round(n * STEP, 4))


def test_the_window_ends_at_the_smallest_distance_that_holds_the_wanted_share() -> None:
    near = [0.01 * n for n in range(1, 11)]
    assert learn_window(near, [], 100, GOALS) == (0.09, "equivalent")
    assert learn_window(near, [], 100, Goals(0.5, 0.1)) == (0.05, "equivalent")


def test_an_outlier_among_the_equivalent_pairs_does_not_widen_the_window() -> None:
    assert learn_window([0.05] * 19 + [0.9], [], 100, GOALS).high == 0.05


def test_different_pairs_that_come_too_near_end_the_window_before_them() -> None:
    near = [0.01 * n for n in range(1, 11)]
    # One of ten may be admitted: the first is, the window ends before the second.
    assert learn_window(near, [0.02, 0.06, 0.07], 10, GOALS) == (0.0599, "different")


def test_different_pairs_at_the_same_distance_are_turned_away_together() -> None:
    near = [0.01 * n for n in range(1, 11)]
    assert learn_window(near, [0.05, 0.05, 0.3], 10, GOALS).high == 0.0499


def test_different_pairs_beyond_the_equivalent_ones_do_not_move_the_window() -> None:
    near = [0.01 * n for n in range(1, 11)]
    assert learn_window(near, [0.0901] * 50, 100, GOALS) == (0.09, "equivalent")


def test_a_window_of_texts_at_distance_zero_is_not_empty() -> None:
    assert learn_window([0.0] * 10, [], 100, GOALS).high == STEP


def test_labels_that_no_distance_can_part_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"2 of the 10 different pairs are as near as 0\.0100.*cannot tell them"):
        learn_window([0.5] * 10, [0.01] * 10, 10, GOALS)


def test_too_few_equivalent_pairs_are_refused_with_the_number_that_it_takes() -> None:
    with pytest.raises(BadInputError, match=r"^9 equivalent .* takes 10: give about 20 in all, or lower --true-admits"):
        learn_window([0.1] * 9, [], 100, GOALS)
    with pytest.raises(BadInputError, match="takes 100: give about 200"):
        learn_window([0.1] * 99, [], 10_000, Goals())


def test_too_few_different_pairs_are_refused_with_the_number_that_it_takes() -> None:
    with pytest.raises(BadInputError, match=r"^999 different .* takes 1000: give about 2000 in all, or raise"):
        learn_window([0.1] * 100, [], 999, Goals())


@given(st.lists(_DISTANCES, min_size=10, max_size=60), st.lists(_DISTANCES, max_size=60), st.integers(60, 200))
def test_the_window_keeps_its_promises_and_is_the_smallest_that_does(
    near: list[float], far: list[float], total: int
) -> None:
    try:
        high, bounded_by = learn_window(near, far, total, GOALS)
    except BadInputError:
        return
    assert sum(distance <= high for distance in far) <= GOALS.false_admits * total
    holds = sum(distance <= high for distance in near) >= GOALS.true_admits * len(near) - 1e-9
    if bounded_by == "equivalent":
        assert holds
        assert high == STEP or sum(distance < high for distance in near) < GOALS.true_admits * len(near)
    else:
        assert sum(distance <= round(high + STEP, 4) for distance in far) > GOALS.false_admits * total


@given(
    st.lists(st.one_of(_DISTANCES, st.just(math.inf)), min_size=1, max_size=40),
    st.lists(st.one_of(_DISTANCES, st.just(math.inf)), min_size=1, max_size=40),
)
def test_the_area_is_the_chance_that_an_equivalent_pair_is_nearer(near: list[float], far: list[float]) -> None:
    won = sum(1.0 if a < b else 0.5 if a == b else 0.0 for a in near for b in far)
    assert roc(np.asarray(near), np.asarray(far)).auc == pytest.approx(won / (len(near) * len(far)))


@given(st.lists(_DISTANCES, min_size=1, max_size=300), st.lists(_DISTANCES, min_size=1, max_size=300))
def test_each_point_of_the_curve_counts_the_pairs_up_to_its_distance(near: list[float], far: list[float]) -> None:
    points = roc(np.asarray(near), np.asarray(far)).points
    assert len(points) <= 200
    for point in points:
        assert point.true_admits == pytest.approx(np.mean([d <= point.max_semantic_distance for d in near]))
        assert point.false_admits == pytest.approx(np.mean([d <= point.max_semantic_distance for d in far]))
    assert (points[-1].true_admits, points[-1].false_admits) == (1.0, 1.0)


def test_pairs_that_are_never_admitted_keep_the_curve_below_one() -> None:
    curve = roc(np.asarray([0.1, math.inf]), np.asarray([math.inf, math.inf]))
    assert curve.auc == 0.75
    assert [(point.true_admits, point.false_admits) for point in curve.points] == [(0.5, 0.0)]
