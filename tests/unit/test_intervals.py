"""Intervals: against their definition, published figures, other implementations, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import (
    PairSums,
    contamination_score,
    leaked_share,
    mean_share,
    score_inflation,
    wilson,
)
from tests.unit.samples import consistent, paired, sample, samples

Z_95 = float(stats.norm.ppf(0.95))
PSEUDO = [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]


@pytest.mark.parametrize(
    ("right", "n", "low", "high"), [(13, 22, 0.3873, 0.7674), (135, 199, 0.6106, 0.7394), (0, 10, 0.0, 0.2775)]
)
def test_wilson_gives_the_published_figures(right: int, n: int, low: float, high: float) -> None:
    found = wilson(right, n, 0.95)
    assert found.value == right / n
    assert found.low == pytest.approx(low, abs=1e-4)
    assert found.high == pytest.approx(high, abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_agrees_with_statsmodels(counts: tuple[int, int], level: float) -> None:
    found, theirs = wilson(*counts, level), proportion_confint(*counts, alpha=1 - level, method="wilson")
    assert found.low == pytest.approx(theirs[0], abs=1e-9)
    assert found.high == pytest.approx(theirs[1], abs=1e-9)


@given(samples(min_items=1))
def test_inflation_is_its_definition_with_four_items_more(answers: PairedAnswers) -> None:
    pairs = [(float(c), r / t) for c, r, t in zip(answers.canonical, answers.right, answers.total, strict=True)]
    plain = np.array([c - p for c, p in pairs])
    padded = np.array([c - p for c, p in pairs + PSEUDO])
    half = stats.norm.ppf(0.975) * padded.std(ddof=1) / math.sqrt(padded.size)
    found = score_inflation(answers, 0.95)
    assert found.value == pytest.approx(100 * plain.mean(), abs=1e-9)
    assert found.low == pytest.approx(100 * min(max(-1, padded.mean() - half), plain.mean()), abs=1e-7)
    assert found.high == pytest.approx(100 * max(min(1, padded.mean() + half), plain.mean()), abs=1e-7)


@given(samples(min_items=20))
def test_fiellers_bounds_are_the_ratios_at_which_the_test_turns(answers: PairedAnswers) -> None:
    """The set is defined by inversion: at a bound, mean(D - r B) is exactly z standard errors from 0."""
    found = contamination_score(answers, 0.9)
    if found.low is None or found.high is None or found.value is None:
        return
    base = np.concatenate([answers.canonical.astype(float), [c for c, _ in PSEUDO]])
    difference = base - np.concatenate([answers.right / answers.total, [p for _, p in PSEUDO]])
    for bound in (found.low, found.high):
        if bound in (found.value, 1.0):
            continue
        rest = difference - bound * base
        assert abs(rest.mean()) / (rest.std(ddof=1) / math.sqrt(rest.size)) == pytest.approx(Z_95, rel=1e-5)


def test_a_score_over_hardly_any_right_answer_is_unbounded_and_says_so() -> None:
    found = contamination_score(paired([0] * 30, [0] * 30, [3] * 30), 0.95)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert "unbounded" in found.method
    found = contamination_score(paired([1] + [0] * 30, [0] * 31, [3] * 31), 0.95)
    assert (found.value, found.high) == (1.0, None)


def test_no_items_have_no_estimate() -> None:
    nothing = paired([], [], [])
    for found in (score_inflation(nothing, 0.95), contamination_score(nothing, 0.95), wilson(0, 0, 0.95)):
        assert (found.value, found.low, found.high) == (None, None, None)
    assert mean_share(np.zeros(0), np.zeros(0, dtype=np.int64), 0.95).value is None


@pytest.mark.parametrize("right", [0, 3])
def test_an_interval_of_identical_answers_still_has_width(right: int) -> None:
    found = score_inflation(paired([right > 0] * 40, [right] * 40, [3] * 40), 0.95)
    assert found.value == 0.0
    assert found.low is not None
    assert found.high is not None
    assert found.low < -1.0
    assert found.high > 1.0


def test_the_leaked_share_is_inflation_over_what_a_guess_leaves() -> None:
    inflation = score_inflation(paired([1] * 60 + [0] * 40, [3] * 50 + [0] * 50, [3] * 100), 0.95)
    share = leaked_share(inflation, 0.1)
    assert share is not None
    assert inflation.low is not None
    assert share.value == pytest.approx(10 / 0.9)
    assert share.low == pytest.approx(inflation.low / 0.9)
    assert leaked_share(inflation, None) is None
    assert leaked_share(score_inflation(paired([], [], []), 0.95), 0.1) is None


@given(samples(min_items=1))
def test_every_interval_holds_its_value(answers: PairedAnswers) -> None:
    patterns = answers.patterns
    for found in (
        score_inflation(answers, 0.95),
        contamination_score(answers, 0.95),
        mean_share(patterns.reworded_share, patterns.counts, 0.95),
    ):
        if found.value is not None and found.low is not None and found.high is not None:
            assert found.low <= found.value <= found.high


def test_a_sample_twice_as_large_has_twice_the_sums() -> None:
    once = paired([1, 0, 1], [1, 2, 0], [3, 3, 2])
    twice = paired([1, 0, 1] * 2, [1, 2, 0] * 2, [3, 3, 2] * 2)
    assert PairSums.of(once).scaled(2) == pytest.approx(PairSums.of(twice))


@pytest.mark.parametrize("n_items", [200, 600])
@pytest.mark.parametrize("leaked", [0.0, 0.1])
def test_intervals_cover_the_truth_even_for_near_deterministic_models(n_items: int, leaked: float) -> None:
    """75 % known with 1 % noise, the rest unknown; leaked items among the unknown ones."""
    rng = np.random.default_rng(20260421)
    known, noise = 0.75, 0.01
    canonical = known * (1 - noise) + leaked * 0.99 + (1 - known - leaked) * noise
    reworded = known * (1 - noise) + (1 - known) * noise
    truth = canonical - reworded
    inside_d = inside_cs = 0
    replications = 1_000
    for _ in range(replications):
        answers = consistent(rng, n_items, variants=3, leaked=leaked, known=known, noise=noise)
        inflation, score = score_inflation(answers, 0.95), contamination_score(answers, 0.95)
        assert inflation.low is not None
        assert inflation.high is not None
        inside_d += inflation.low <= 100 * truth <= inflation.high
        inside_cs += score.low is None or score.high is None or score.low <= truth / canonical <= score.high
    for inside in (inside_d, inside_cs):
        assert stats.binomtest(inside, replications, 0.93, alternative="less").pvalue > 1e-3


def test_intervals_cover_the_truth_where_every_answer_is_a_coin_of_its_own() -> None:
    rng = np.random.default_rng(7)
    inside, replications = 0, 1_000
    for _ in range(replications):
        found = score_inflation(sample(rng, rng.beta(1, 1, 300), variants=3), 0.95)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 0.0 <= found.high
    assert stats.binomtest(inside, replications, 0.95).pvalue > 1e-3
