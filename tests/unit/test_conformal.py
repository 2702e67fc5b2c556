"""Split-conformal intervals: against the definition evaluated naively, and their coverage by simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.evidence.protocol.conformal import conformal_future_accuracy, conformal_next_run

REPLICATES = 2000


def grades(n: int, right: int) -> np.ndarray:
    return np.arange(n) < right


def naive(correct: np.ndarray, batch: int, seed: int, alpha: Fraction) -> list[Fraction]:
    """Accuracies that the definition admits: those whose score is no larger than the ranked one."""
    shuffled = correct[np.random.default_rng(seed).permutation(len(correct))]
    fitting = (len(correct) - 1) // batch
    needed = next(k for k in range(1, 10_000) if math.ceil((k + 1) * (1 - alpha)) <= k)
    blocks = max(fitting // 2, min(needed, fitting))
    training = shuffled[blocks * batch :]
    centre = Fraction(int(training.sum()), len(training))
    scores = sorted(
        abs(Fraction(int(shuffled[j * batch : (j + 1) * batch].sum()), batch) - centre) for j in range(blocks)
    )
    every = [Fraction(right, batch) for right in range(batch + 1)]
    rank = math.ceil((blocks + 1) * (1 - alpha))
    return every if rank > blocks else [value for value in every if abs(value - centre) <= scores[rank - 1]]


@given(
    n=st.integers(2, 400),
    batch=st.integers(1, 20),
    share=st.floats(0, 1),
    seed=st.integers(0, 99),
    alpha=st.sampled_from(["0.05", "0.1", "0.2", "0.5"]),
)
def test_the_interval_is_what_the_definition_admits(n: int, batch: int, share: float, seed: int, alpha: str) -> None:
    correct = grades(n, round(share * n))
    found = conformal_future_accuracy(
        correct, batch=batch, rng=np.random.default_rng(seed), level=float(1 - Fraction(alpha))
    )
    admitted = naive(correct, batch, seed, Fraction(alpha))
    assert (found.low, found.high) == (float(min(admitted)), float(max(admitted)))
    assert 0 <= found.low <= found.high <= 1
    assert found.guaranteed >= found.level


@pytest.mark.parametrize(("n", "batch", "level"), [(300, 10, 0.9), (420, 20, 0.95), (60, 3, 0.8)])
def test_a_future_batch_is_covered_at_least_as_often_as_promised(n: int, batch: int, level: float) -> None:
    """Items of one benchmark drawn without replacement: exchangeable, and not independent."""
    rng = np.random.default_rng(20261121)
    covered = 0
    for _ in range(REPLICATES):
        population = rng.random(n + 2 * batch) < rng.beta(8, 3)
        items = population[rng.permutation(n + 2 * batch)]
        found = conformal_future_accuracy(items[:n], batch=batch, rng=rng, level=level)
        assert found.n_calibration >= found.n_needed
        covered += found.low <= items[n : n + batch].mean() <= found.high
    assert stats.binomtest(covered, REPLICATES, level, alternative="less").pvalue > 0.01


def test_the_next_run_is_covered_about_as_often_as_promised_where_accuracies_do_not_tie() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(REPLICATES):
        runs = np.clip(0.7 + 0.05 * rng.standard_t(3, size=40), 0, 1)
        found = conformal_next_run(runs[:39], rng=rng, level=0.9)
        covered += found.low <= runs[39] <= found.high
    promised = conformal_next_run(np.linspace(0.6, 0.8, 39), rng=rng, level=0.9).guaranteed
    assert promised == 0.9
    assert stats.binomtest(covered, REPLICATES, promised).pvalue > 0.01


def test_too_few_scores_admit_every_accuracy() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 19 * 10):
        found = conformal_future_accuracy(grades(n, n), batch=10, rng=rng)
        assert (found.low, found.high, found.guaranteed, found.informative) == (0.0, 1.0, 1.0, False)
    assert conformal_next_run(np.full(19, 0.5), rng=rng).informative is False


def test_nineteen_blocks_and_an_item_are_enough_at_95_percent() -> None:
    found = conformal_future_accuracy(grades(191, 191), batch=10, rng=np.random.default_rng(0))
    assert (found.n_calibration, found.n_needed, found.guaranteed) == (19, 19, 0.95)
    assert (found.low, found.high) == (1.0, 1.0)
    runs = conformal_next_run(np.full(20, 0.5), rng=np.random.default_rng(0))
    assert runs.n_calibration == 19
    assert (runs.low, runs.high) == pytest.approx((0.5, 0.5))


def test_many_items_give_half_of_the_blocks_to_calibration() -> None:
    found = conformal_future_accuracy(grades(1001, 700), batch=10, rng=np.random.default_rng(0))
    assert found.n_calibration == 50


def test_the_rank_is_not_pushed_up_by_the_rounding_of_the_level() -> None:
    # 20 × 0.95 and 10 × 0.9 are whole numbers, and floating point may put them a hair above.
    for level, needed in ((0.95, 19), (0.9, 9), (0.8, 4), (0.99, 99), (0.7, 3)):
        found = conformal_next_run(np.full(needed + 1, 0.4), rng=np.random.default_rng(1), level=level)
        assert found.n_needed == needed
        assert found.informative


def test_the_same_seed_gives_the_same_split() -> None:
    correct = np.random.default_rng(3).random(500) < 0.6
    first, second = (conformal_future_accuracy(correct, batch=12, rng=np.random.default_rng(9)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan")])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        conformal_next_run(np.full(50, 0.5), rng=np.random.default_rng(0), level=level)


def test_a_batch_without_items_and_an_accuracy_in_percent_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="batch"):
        conformal_future_accuracy(grades(10, 5), batch=0, rng=rng)
    with pytest.raises(ValueError, match="fractions"):
        conformal_next_run(np.asarray([0.5, 55.0]), rng=rng)
