"""The learned ends of the gate, and the curve over it, against their definitions."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.perturbation.admission.gate import Placed
from proctor.perturbation.admission.window import STEP, Goals, learn_window, roc

GOALS = Goals(true_admits=0.9, false_admits=0.1)
_DISTANCES = st.integers(0, 20_000).map(lambda n: round(n * STEP, 4))


_MARGINS = st.one_of(st.none(), st.integers(-5_000, 15_000).map(lambda n: round(n * STEP, 4)))
_PLACED = st.builds(Placed, _DISTANCES, _MARGINS)


def _at(*distances: float) -> list[Placed]:
    """Pairs that have no other item to be taken for."""
    return [Placed(distance) for distance in distances]


def _tenths() -> list[float]:
    return [round(0.01 * n, 2) for n in range(1, 11)]


def test_the_window_ends_at_the_smallest_distance_that_holds_the_wanted_share() -> None:
    near = _at(*_tenths())
    assert learn_window(near, [], 100, GOALS) == (0.09, STEP, "equivalent")
    assert learn_window(near, [], 100, Goals(0.5, 0.1)) == (0.05, STEP, "equivalent")


def test_the_margin_is_the_largest_that_holds_the_wanted_share() -> None:
    same_distance = [Placed(0.2, margin) for margin in _tenths()]
    assert learn_window(same_distance, [], 100, GOALS) == (0.2, 0.02, "equivalent")
    assert learn_window(same_distance, [], 100, Goals(0.5, 0.1)) == (0.2, 0.06, "equivalent")


def test_window_and_margin_give_up_rewordings_by_turns() -> None:
    pairs = [Placed(0.1 + 0.01 * n, 0.5) for n in range(10)] + [Placed(0.1, 0.3 + 0.01 * n) for n in range(10)]
    # Two of twenty may be given up: the farthest, and the one with the least margin.
    learned = learn_window(pairs, [], 100, GOALS)
    assert (learned.high, learned.margin) == pytest.approx((0.18, 0.31))
    assert learned.bounded_by == "equivalent"


def test_an_outlier_among_the_equivalent_pairs_does_not_widen_the_window() -> None:
    assert learn_window(_at(*[0.05] * 19, 0.9), [], 100, GOALS).high == 0.05
    assert learn_window([Placed(0.05, 0.2)] * 19 + [Placed(0.05, 0.0)], [], 100, GOALS).margin == 0.2


def test_different_pairs_that_come_too_near_narrow_the_window_until_they_are_out() -> None:
    # One of ten may be admitted: the first is, the window ends before the second.
    assert learn_window(_at(*_tenths()), _at(0.02, 0.06, 0.07), 10, GOALS) == (0.05, STEP, "different")


def test_different_pairs_that_stand_apart_from_other_items_raise_the_margin_until_they_are_out() -> None:
    near = [Placed(0.1, margin) for margin in _tenths()]
    assert learn_window(near, [Placed(0.1, 0.075)] * 2, 10, GOALS) == (0.1, 0.08, "different")


def test_another_items_question_never_passes_whatever_the_window_is() -> None:
    near = [Placed(0.3, 0.05)] * 20
    learned = learn_window(near, [Placed(0.001, -0.001)] * 50, 50, GOALS)
    assert learned == (0.3, 0.05, "equivalent")
    assert not learned.admits(Placed(0.001, -0.001))


def test_rewordings_nearer_to_another_item_than_to_their_own_are_given_up_whatever_share_is_wanted() -> None:
    learned = learn_window([Placed(0.2, 0.1)] * 15 + [Placed(0.2, -0.1)] * 5, [], 100, GOALS)
    assert learned == (0.2, STEP, "different")
    assert not learned.admits(Placed(0.2, -0.1))


def test_different_pairs_at_the_same_distance_are_turned_away_together() -> None:
    assert learn_window(_at(*_tenths()), _at(0.05, 0.05, 0.3), 10, GOALS).high == 0.04


def test_different_pairs_beyond_the_equivalent_ones_do_not_move_the_window() -> None:
    assert learn_window(_at(*_tenths()), _at(*[0.0901] * 10), 100, GOALS) == (0.09, STEP, "equivalent")


def test_a_window_of_texts_at_distance_zero_is_not_empty() -> None:
    assert learn_window(_at(*[0.0] * 10), [], 100, GOALS).high == STEP


def test_labels_that_no_distance_can_part_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"more than 1 of the 10 different pairs are as near .* cannot tell them"):
        learn_window(_at(*[0.5] * 10), _at(*[0.01] * 10), 10, GOALS)


def test_too_few_equivalent_pairs_are_refused_with_the_number_that_it_takes() -> None:
    with pytest.raises(BadInputError, match=r"^9 equivalent .* takes 10: give about 20 in all, or lower --true-admits"):
        learn_window(_at(*[0.1] * 9), [], 100, GOALS)
    with pytest.raises(BadInputError, match="takes 100: give about 200"):
        learn_window(_at(*[0.1] * 99), [], 10_000, Goals())


def test_too_few_different_pairs_are_refused_with_the_number_that_it_takes() -> None:
    with pytest.raises(BadInputError, match=r"^999 different .* takes 1000: give about 2000 in all, or raise"):
        learn_window(_at(*[0.1] * 100), [], 999, Goals())


@given(st.lists(_PLACED, min_size=10, max_size=60), st.lists(_PLACED, max_size=60), st.integers(60, 200))
def test_what_is_learned_keeps_its_promises_or_is_refused(near: list[Placed], far: list[Placed], total: int) -> None:
    try:
        learned = learn_window(near, far, total, GOALS)
    except BadInputError:
        return
    assert sum(map(learned.admits, far)) <= GOALS.false_admits * total
    assert learned.high > 0
    assert learned.margin > 0
    admitted = sum(map(learned.admits, near))
    assert admitted > 0
    if learned.bounded_by == "equivalent":
        assert admitted >= GOALS.true_admits * len(near) - 1e-9
    else:
        # Without it, either too many different pairs would be admitted or other items are as near as the own.
        wider = [one for one in near if one.margin is None or one.margin > 0]
        assert len(wider) < GOALS.true_admits * len(near) or len(far) > GOALS.false_admits * total


@given(st.lists(_PLACED, min_size=20, max_size=60), st.lists(_PLACED, max_size=60), st.data())
def test_a_stricter_goal_never_widens_the_gate(near: list[Placed], far: list[Placed], data: st.DataObject) -> None:
    less, more = sorted((data.draw(st.floats(0.5, 0.95)), data.draw(st.floats(0.5, 0.95))))
    few, many = sorted((data.draw(st.floats(0.02, 0.4)), data.draw(st.floats(0.02, 0.4))))
    try:
        wide = learn_window(near, far, 60, Goals(more, many))
        narrow = learn_window(near, far, 60, Goals(less, few))
    except BadInputError:
        return
    assert narrow.high <= wide.high
    assert narrow.margin >= wide.margin


@given(st.lists(_PLACED, min_size=10, max_size=40), st.lists(_PLACED, max_size=40), st.randoms())
def test_the_order_of_the_pairs_changes_nothing(near: list[Placed], far: list[Placed], random: Random) -> None:
    def learned() -> object:
        try:
            return learn_window(near, far, 60, GOALS)
        except BadInputError as error:
            return str(error)

    before = learned()
    random.shuffle(near)
    random.shuffle(far)
    assert learned() == before


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
