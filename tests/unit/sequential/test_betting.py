"""Confidence sequences by betting: against their definition, and at every number of items together."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from proctor.evidence.answers import FloatArray
from proctor.evidence.planning.families import FAMILIES
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.sequential.betting import (
    Crossed,
    SequenceBounds,
    crossed,
    inflation_crossed,
    inflation_sequence,
    score_crossed,
    score_sequence,
)

LEVEL = 0.95


def drawn(family: str, share: float, audits: int, items: int, *, seed: int) -> tuple[FloatArray, FloatArray]:
    chances = pattern_chances(FAMILIES[family], 3, leaked_share=share)
    places = np.random.default_rng(seed).choice(chances.size, size=(audits, items), p=chances.ravel())
    canonical, right = np.divmod(places, 4)
    return canonical - right / 3, canonical.astype(np.float64)


def wealth(values: list[float], mean: float, error: float) -> tuple[list[float], list[float]]:
    """Both capitals after each value, by the paper's formulas and one value at a time."""
    up, down, ups, downs = 1.0, 1.0, [], []
    total, squares, variance = 0.5, 0.25, 0.25
    for t, value in enumerate(values, 1):
        bet = math.sqrt(2 * math.log(1 / error) / (variance * t * math.log(t + 1)))
        up *= 1 + min(bet, 0.5 / mean) * (value - mean)
        down *= 1 - min(bet, 0.5 / (1 - mean)) * (value - mean)
        total += value
        squares += (value - total / (t + 1)) ** 2
        variance = squares / (t + 1)
        ups.append(up)
        downs.append(down)
    return ups, downs


@pytest.mark.parametrize("mean", [0.03, 0.4, 0.5, 0.62, 0.97])
def test_a_mean_is_ruled_out_once_half_of_a_capital_is_a_twentieths_inverse(mean: float) -> None:
    values = np.random.default_rng(4).beta(2, 3, 200)
    ups, downs = wealth(values.tolist(), mean, (1 - LEVEL) / 2)
    found = crossed(values, mean, level=LEVEL)
    assert found.above.tolist() == [max(ups[: t + 1]) / 2 >= 1 / (1 - LEVEL) for t in range(200)]
    assert found.below.tolist() == [max(downs[: t + 1]) / 2 >= 1 / (1 - LEVEL) for t in range(200)]


@pytest.mark.parametrize(
    ("family", "share"), [("consistent", 0.0), ("consistent", 0.1), ("together", 0.0), ("beta_4_1", 0.2)]
)
@pytest.mark.parametrize("tuned_to", [None, 400])
def test_the_truth_is_outside_at_any_time_in_at_most_a_twentieth(family: str, share: float, tuned_to: int) -> None:
    differences, canonical = drawn(family, share, 2_000, 400, seed=5)
    d = FAMILIES[family].inflation(share)
    score = d / (FAMILIES[family].accuracy + d)
    for found in (
        inflation_crossed(differences, d, level=LEVEL, tuned_to=tuned_to),
        score_crossed(differences, canonical, score, level=LEVEL, tuned_to=tuned_to),
    ):
        ever = (found.above | found.below)[:, -1]
        assert stats.binomtest(int(ever.sum()), ever.size, 1 - LEVEL, alternative="greater").pvalue > 1e-4


def test_bounds_are_where_a_value_begins_to_be_ruled_out() -> None:
    differences, canonical = (rows[0] for rows in drawn("guessers", 0.1, 1, 300, seed=6))

    def of_inflation(points: float) -> Crossed:
        return inflation_crossed(differences, points / 100, level=LEVEL)

    def of_score(score: float) -> Crossed:
        return score_crossed(differences, canonical, score, level=LEVEL)

    checked: list[tuple[SequenceBounds, Callable[[float], Crossed], float]] = [
        (inflation_sequence(differences, level=LEVEL), of_inflation, 0.21),
        (score_sequence(differences, canonical, level=LEVEL), of_score, 0.0011),
    ]
    for bounds, crosses, step in checked:
        for t in (40, 150, 299):
            low, high = float(bounds.low[t]), float(bounds.high[t])
            assert low < high
            assert crosses(low).above[t]
            assert crosses(high).below[t]
            inside = crosses((low + high) / 2)
            assert not inside.above[t]
            assert not inside.below[t]
            # The next place of the grid is not ruled out any more.
            assert not crosses(low + step).above[t]
            assert not crosses(high - step).below[t]


def test_bounds_never_widen_and_the_estimate_comes_to_lie_within() -> None:
    differences, canonical = (rows[0] for rows in drawn("consistent", 0.1, 1, 500, seed=7))
    for bounds, value in (
        (inflation_sequence(differences, level=LEVEL), 100 * differences.mean()),
        (score_sequence(differences, canonical, level=LEVEL), differences.sum() / canonical.sum()),
    ):
        assert bounds.low.tolist() == sorted(bounds.low)
        assert bounds.high.tolist() == sorted(bounds.high, reverse=True)
        assert bounds.low[-1] < value < bounds.high[-1]


def test_before_anything_is_ruled_out_bounds_are_those_of_the_scale() -> None:
    one = np.array([0.0])
    assert [side.tolist() for side in inflation_sequence(one, level=LEVEL)] == [[-100.0], [100.0]]
    assert [side.tolist() for side in score_sequence(one, one, level=LEVEL)] == [[-math.inf], [1.0]]


def test_bets_tuned_to_a_sample_are_narrower_at_its_end_than_those_of_who_knows_none() -> None:
    differences = drawn("beta_1_1", 0.0, 1, 500, seed=8)[0][0]
    untuned, tuned = (inflation_sequence(differences, level=LEVEL, tuned_to=to) for to in (None, 500))
    assert tuned.high[-1] - tuned.low[-1] < untuned.high[-1] - untuned.low[-1]


def test_many_audits_at_once_are_those_one_by_one() -> None:
    differences, _ = drawn("shared_luck", 0.05, 7, 120, seed=9)
    scores = np.linspace(-0.3, 0.4, 7)
    together = crossed((1 + differences) / 2, (1 + scores) / 2, level=0.9)
    for place, score in enumerate(scores):
        alone = inflation_crossed(differences[place], float(score), level=0.9)
        assert (together.above[place].tolist(), together.below[place].tolist()) == (
            alone.above.tolist(),
            alone.below.tolist(),
        )
