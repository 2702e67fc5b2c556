"""The hardness correction: its definition, where it must run through, and a spline of scipy's beside it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import make_smoothing_spline
from scipy.special import expit, logit

from proctor.evidence.fresh.hardness import fit_hardness, parameters

FloatArray = npt.NDArray[np.float64]

accuracies = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12)


def curve(abilities: FloatArray, shift: float, *, chance: float = 0.0, items: int = 4_000) -> FloatArray:
    """Accuracies of models of these abilities on items of a two-parameter item response model."""
    rng = np.random.default_rng(77)
    difficulty, discrimination = rng.normal(shift, 1.0, items), np.exp(rng.normal(0.0, 0.3, items))
    chances = chance + (1 - chance) * expit(discrimination * (abilities[:, None] - difficulty))
    mean: FloatArray = chances.mean(axis=1)
    return mean


def test_a_small_panel_shifts_the_logit_by_its_weighted_mean() -> None:
    fresh, benchmark = np.array([0.4, 0.7]), np.array([0.55, 0.8])
    found = fit_hardness(benchmark, fresh, 1_000, 500, 0.0).expected(np.array([0.6]))

    def drawn_in(share: FloatArray, n: int) -> FloatArray:
        drawn: FloatArray = (share * n + 0.5) / (n + 1)
        return drawn

    x, y = drawn_in(fresh, 500), drawn_in(benchmark, 1_000)
    weights = 1 / (1 / (500 * x * (1 - x)) + 1 / (1_000 * y * (1 - y)))
    shift = np.average(logit(y) - logit(x), weights=weights)
    assert found[0] == pytest.approx((expit(logit((0.6 * 500 + 0.5) / 501) + shift) * 1_001 - 0.5) / 1_000)


@given(st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.05, 0.95)), min_size=5, max_size=12))
def test_the_slope_is_least_squares_less_the_noise_with_two_models_on_slope_one(
    points: list[tuple[float, float]],
) -> None:
    n, m = 400, 200
    x_noise, x, y, weights = [], [], [], []
    for benchmark, fresh in points:
        drawn_y, drawn_x = (benchmark * n + 0.5) / (n + 1), (fresh * m + 0.5) / (m + 1)
        x_noise.append(1 / (m * drawn_x * (1 - drawn_x)))
        weights.append(1 / (x_noise[-1] + 1 / (n * drawn_y * (1 - drawn_y))))
        x.append(logit(drawn_x))
        y.append(logit(drawn_y))
    centre_x, centre_y = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = noise = product = 0.0
    for at, to, weight, error in zip(x, y, weights, x_noise, strict=True):
        spread += weight * (at - centre_x) ** 2
        product += weight * (at - centre_x) * (to - centre_y)
        noise += weight * error * (1 - weight / sum(weights))
    wanted = max(0.0, (product + 4) / (max(spread - noise, 0.0) + 4))
    found = fit_hardness(np.array([p[0] for p in points]), np.array([p[1] for p in points]), n, m, 0.0)
    assert found.slope[0] == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_a_panel_measured_on_few_items_keeps_its_slope() -> None:
    """200 items' noise draws a slope of plain least squares to 0.95 here."""
    rng = np.random.default_rng(6)
    abilities = rng.normal(0, 0.6, size=(3_000, 8))
    fresh, benchmark = rng.binomial(200, expit(abilities)) / 200, rng.binomial(200, expit(abilities + 0.3)) / 200
    assert fit_hardness(benchmark, fresh, 200, 200, 0.0).slope.mean() == pytest.approx(1.0, abs=0.03)


def test_models_on_a_line_give_that_line_back() -> None:
    x = np.linspace(-2, 2, 9)
    for slope in (0.8, 1.0, 1.3):
        fit = fit_hardness(expit(0.4 + slope * x), expit(x), 10**7, 10**7, 0.0)
        assert fit.slope[0] == pytest.approx(slope, rel=1e-3)
        assert fit.expected(expit(np.array([-3.0, 3.0]))) == pytest.approx(
            expit(0.4 + slope * np.array([-3, 3])), abs=2e-3
        )


def test_a_model_that_guesses_and_a_perfect_one_stay_what_they_are() -> None:
    fresh = np.linspace(0.35, 0.8, 8)
    fit = fit_hardness(fresh + 0.1, fresh, 10**6, 10**6, 0.25)
    assert fit.expected(np.array([0.25, 1.0])) == pytest.approx([0.25, 1.0], abs=1e-3)


def test_bad_luck_below_chance_counts_as_much_as_good_luck_above_it() -> None:
    fresh = np.linspace(0.35, 0.8, 8)
    found = fit_hardness(fresh + 0.1, fresh, 400, 400, 0.25).expected(np.array([0.23, 0.27]))
    assert found.sum() == pytest.approx(0.5)
    assert found[0] < 0.25


@given(accuracies, st.sampled_from([0.0, 0.25, 0.5]))
def test_more_right_on_fresh_items_never_lowers_what_is_expected(
    points: list[tuple[float, float]], chance: float
) -> None:
    fit = fit_hardness(np.array([p[0] for p in points]), np.array([p[1] for p in points]), 300, 200, chance)
    expected = fit.expected(np.linspace(0, 1, 50))
    assert np.all(np.diff(expected) >= 0)
    assert np.all((expected >= 0) & (expected <= 1))
    assert np.all(expected[np.linspace(0, 1, 50) > chance] >= chance)


@given(accuracies)
def test_the_order_of_the_models_changes_nothing(points: list[tuple[float, float]]) -> None:
    benchmark, fresh = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    order = np.random.default_rng(2).permutation(len(points))
    once, again = (
        fit_hardness(benchmark[of], fresh[of], 300, 200, 0.0).expected(np.array([0.3, 0.9]))
        for of in (np.arange(len(points)), order)
    )
    assert once == pytest.approx(again)


def test_panels_are_fitted_at_once_as_they_are_one_by_one() -> None:
    rng = np.random.default_rng(3)
    benchmark, fresh = rng.random((4, 3, 6)), rng.random((4, 3, 6))
    together = fit_hardness(benchmark, fresh, 300, 200, 0.0).expected(np.full((4, 3, 1), 0.5))
    for place in np.ndindex(4, 3):
        alone = fit_hardness(benchmark[place], fresh[place], 300, 200, 0.0).expected(np.array([0.5]))
        assert together[place] == pytest.approx(alone)


@pytest.mark.parametrize("chance", [0.0, 0.25])
@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
def test_item_response_models_lie_on_the_curve_within_a_point(shift: float, chance: float) -> None:
    panel = np.linspace(-2, 2, 10)
    benchmark, fresh = curve(panel, 0.0, chance=chance), curve(panel, shift, chance=chance)
    fit = fit_hardness(benchmark, fresh, 4_000, 4_000, chance)
    within = np.linspace(-2, 2, 33)
    expected = fit.expected(curve(within, shift, chance=chance))
    assert np.abs(expected - curve(within, 0.0, chance=chance)).max() < 0.011


def test_it_agrees_with_a_smoothing_spline_where_the_panel_is_large_and_quiet() -> None:
    """ConStat's curve, by scipy: generalised cross-validation chooses its smoothness."""
    panel, within = np.linspace(-2, 2, 25), np.linspace(-1.8, 1.8, 40)
    benchmark, fresh = curve(panel, 0.0), curve(panel, 0.7)
    spline = make_smoothing_spline(fresh, benchmark)
    at = curve(within, 0.7)
    assert np.abs(fit_hardness(benchmark, fresh, 4_000, 4_000, 0.0).expected(at) - spline(at)).max() < 0.015


def test_models_that_are_equally_able_leave_the_slope_near_one() -> None:
    rng = np.random.default_rng(4)
    slopes = []
    for _ in range(200):
        benchmark, fresh = rng.binomial(300, 0.7, 6) / 300, rng.binomial(300, 0.6, 6) / 300
        slopes.append(float(fit_hardness(benchmark, fresh, 300, 300, 0.0).slope[0]))
    assert np.all(np.array(slopes) < 3)
    assert np.median(slopes) == pytest.approx(1.0, abs=0.2)


def test_a_slope_is_learnt_from_five_models_up() -> None:
    assert [parameters(models) for models in (1, 4, 5, 20)] == [1, 1, 2, 2]
    x = np.linspace(-1, 1, 4)
    assert fit_hardness(expit(2 * x), expit(x), 10**6, 10**6, 0.0).slope[0] == 1.0
