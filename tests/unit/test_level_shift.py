"""A change of level in a short series: right where it is, seldom where there is none, whatever errors share."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from proctor.evidence.answers import FloatArray
from proctor.evidence.level_shift import MIN_SHARED_ITEMS, MIN_VERSIONS, error_correlation, level_shift

SERIES = 600
DRAWS = 199


def rejected(mean: FloatArray, covariance: FloatArray, correlation: FloatArray | None, seed: int) -> int:
    """How many of SERIES series of this distribution have a p of at most 0.05."""
    rng, errors = np.random.default_rng(seed), np.sqrt(np.diag(covariance))
    drawn = rng.multivariate_normal(mean, covariance, size=SERIES)
    found = [level_shift(row.tolist(), errors.tolist(), rng=rng, correlation=correlation, draws=DRAWS) for row in drawn]
    return sum(one is not None and one.p_value <= 0.05 for one in found)


def neighbours(versions: int, alike: float) -> FloatArray:
    """Correlations that fall with the distance between versions."""
    return np.array([[alike ** abs(i - j) for j in range(versions)] for i in range(versions)])


def test_the_place_the_size_and_the_interval_are_those_of_the_weighted_means() -> None:
    values, errors = [1.0, 1.2, 0.9, 4.0, 4.4], [0.5, 0.25, 0.5, 0.5, 1.0]
    found = level_shift(values, errors, rng=np.random.default_rng(1))
    assert found is not None
    weights = [1 / error**2 for error in errors]
    before = sum(w * x for w, x in zip(weights[:3], values[:3], strict=True)) / sum(weights[:3])
    after = sum(w * x for w, x in zip(weights[3:], values[3:], strict=True)) / sum(weights[3:])
    half = 1.959963984540054 * math.sqrt(1 / sum(weights[:3]) + 1 / sum(weights[3:]))
    assert found.before == 3
    assert found.shift == pytest.approx(after - before)
    assert (found.low, found.high) == pytest.approx((after - before - half, after - before + half))
    assert found.p_value < 0.001


def test_p_is_that_of_the_largest_of_all_places_by_numerical_integration() -> None:
    # Five versions with equal errors: P(max |Z_k| >= c) of a normal vector with the contrasts' correlations.
    errors, values = [1.0] * 5, [0.0, 0.0, 0.0, 1.9, 1.9]
    found = level_shift(values, errors, rng=np.random.default_rng(2), draws=99_999)
    assert found is not None
    contrasts = np.array([[-1 / k] * k + [1 / (5 - k)] * (5 - k) for k in range(1, 5)])
    scaled = contrasts / np.sqrt((contrasts**2).sum(axis=1))[:, None]
    largest = float(np.abs(scaled @ np.array(values)).max())
    exact = 1 - stats.multivariate_normal(cov=scaled @ scaled.T, allow_singular=True).cdf(
        [largest] * 4, lower_limit=[-largest] * 4
    )
    assert found.p_value == pytest.approx(exact, abs=0.006)


@pytest.mark.parametrize("versions", [5, 8, 20])
def test_a_level_that_stays_is_rarely_called_changed_whatever_versions_share(versions: int) -> None:
    errors = np.linspace(0.5, 1.5, versions)
    for shared in (np.eye(versions), neighbours(versions, 0.7), 0.8 + 0.2 * np.eye(versions)):
        covariance = shared * np.outer(errors, errors)
        found = rejected(np.zeros(versions), covariance, shared, seed=3)
        assert stats.binomtest(found, SERIES, 0.05, alternative="greater").pvalue > 0.001


def test_what_neighbours_share_would_be_called_a_change_were_it_not_known() -> None:
    shared = neighbours(12, 0.8)
    assert rejected(np.zeros(12), shared, None, seed=4) > 2 * 0.05 * SERIES
    assert rejected(np.zeros(12), shared, shared, seed=4) < 2 * 0.05 * SERIES


def test_a_shift_of_three_errors_is_found_and_more_surely_where_versions_err_together() -> None:
    mean = np.array([0.0] * 4 + [3.0] * 4)
    alone = rejected(mean, np.eye(8), None, seed=5)
    together = 0.7 + 0.3 * np.eye(8)
    assert alone > 0.9 * SERIES
    assert rejected(mean, together, together, seed=5) >= alone


def test_the_same_seed_gives_the_same_p() -> None:
    values, errors = [0.0, 1.0, 0.5, 1.5, 2.0, 1.0], [1.0] * 6
    first, second = (level_shift(values, errors, rng=np.random.default_rng(7)) for _ in range(2))
    assert first == second


def test_nothing_is_said_of_few_versions_or_of_the_same_answers() -> None:
    rng = np.random.default_rng(8)
    few = MIN_VERSIONS - 1
    assert level_shift([1.0] * few, [1.0] * few, rng=rng) is None
    assert level_shift([1.0] * 6, [1.0] * 6, rng=rng, correlation=np.ones((6, 6))) is None


@pytest.mark.parametrize("errors", [[1.0] * 4, [1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, math.nan, 1.0, 1.0]])
def test_errors_that_are_none_are_refused(errors: list[float]) -> None:
    with pytest.raises(ValueError, match="standard error above 0"):
        level_shift([1.0] * 5, errors, rng=np.random.default_rng(9))


def test_the_correlation_is_that_of_the_items() -> None:
    rng = np.random.default_rng(10)
    differences = rng.normal(size=(3, 50)) + rng.normal(size=50)
    found = error_correlation(differences)
    assert found is not None
    assert found == pytest.approx(np.corrcoef(differences))
    flat = error_correlation(np.vstack([differences[:2], np.zeros(50)]))
    assert flat is not None
    assert flat[2].tolist() == [0.0, 0.0, 1.0]
    assert error_correlation(differences[:, : MIN_SHARED_ITEMS - 1]) is None
