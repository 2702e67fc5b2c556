"""The chance of a decision by the last look, against simulated last looks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from proctor.domain.estimate import Estimate
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.domain.suite_design import DesignSection
from proctor.evidence.sequential.futility import Interval, decision_chance
from proctor.evidence.sequential.schedule import Look, schedule

#: With a gap between what is approved and what is blocked.
SCORING, GOVERNANCE = ScoringSection(), GovernanceSection(block_deployment_above_contaminated_pct=10.0)
ALLOWED, BLOCKED = SCORING.max_allowed_contaminated_items_pct, GOVERNANCE.block_deployment_above_contaminated_pct
LOOKS = schedule(DesignSection(kind="sequential"), tuple(range(100, 501, 50)), level=0.95, alpha=0.05)


def reach(look: Look) -> float:
    return float(stats.norm.ppf(0.5 + look.level / 2))


def seen(value: float, error: float, look: Look) -> Interval:
    return Interval(value, value - reach(look) * error, value + reach(look) * error)


def chance(inflation: Interval, score: Interval, look: Look) -> float:
    return float(decision_chance(inflation, score, SCORING, GOVERNANCE, now=look, last=LOOKS[-1]))


@pytest.mark.parametrize("look", LOOKS[:-1:3])
@pytest.mark.parametrize(("value", "error"), [(1.0, 2.5), (4.0, 2.5), (9.0, 2.0), (13.0, 4.0), (7.5, 0.5)])
def test_it_is_how_often_simulated_last_looks_decide(look: Look, value: float, error: float) -> None:
    draws = 200_000
    at_last = error * math.sqrt(look.information)
    spread = math.sqrt(error**2 - at_last**2)
    last = value + spread * np.random.default_rng(1).standard_normal(draws)
    decides = (last + reach(LOOKS[-1]) * at_last <= ALLOWED) | (last - reach(LOOKS[-1]) * at_last > BLOCKED)
    # A score that is surely within its limit, and surely not past it, leaves both to D.
    found = chance(seen(value, error, look), seen(0.0, 1e-4, look), look)
    assert decides.mean() == pytest.approx(found, abs=5e-3)


def test_among_models_of_which_nothing_is_known_it_comes_true_as_often_as_it_says() -> None:
    """Truths from everywhere, answers until a look, and what the last look then does."""
    rng, look, draws, one = np.random.default_rng(3), LOOKS[2], 400_000, 45.0
    truth = rng.uniform(-40, 60, draws)
    n, total = look.n_items, LOOKS[-1].n_items
    now = truth + one / math.sqrt(n) * rng.standard_normal(draws)
    rest = truth + one / math.sqrt(total - n) * rng.standard_normal(draws)
    last = (n * now + (total - n) * rest) / total
    half = reach(LOOKS[-1]) * one / math.sqrt(total)
    decides = (last + half <= ALLOWED) | (last - half > BLOCKED)
    half_now = reach(look) * one / math.sqrt(n)
    moved = Interval(now, now - half_now, now + half_now)
    score = Interval(np.zeros(draws), np.full(draws, -1e-4), np.full(draws, 1e-4))
    said = decision_chance(moved, score, SCORING, GOVERNANCE, now=look, last=LOOKS[-1])
    for low, high in ((0.0, 0.15), (0.15, 0.4), (0.4, 0.7), (0.7, 1.0)):
        there = (said >= low) & (said < high)
        assert there.sum() > 1_000
        assert decides[there].mean() == pytest.approx(said[there].mean(), abs=0.02)


def test_approval_takes_both_estimates_and_a_block_takes_one() -> None:
    look, sure, hopeless = LOOKS[3], seen(-20.0, 1.0, LOOKS[3]), seen(7.5, 0.5, LOOKS[3])
    within, past = seen(-0.5, 0.01, look), seen(0.9, 0.01, look)
    assert chance(sure, within, look) == pytest.approx(1.0)
    assert chance(hopeless, within, look) == pytest.approx(0.0, abs=1e-3)
    assert chance(hopeless, past, look) == pytest.approx(1.0)


@pytest.mark.parametrize("side", [(-math.inf, 0.3), (-0.1, math.inf), (-math.inf, math.inf)])
def test_where_nothing_is_bounded_yet_anything_may_come(side: tuple[float, float]) -> None:
    look = LOOKS[0]
    assert chance(seen(7.5, 0.5, look), Interval(0.075, *side), look) == 1.0


def test_at_the_last_look_it_is_what_is_there() -> None:
    last = LOOKS[-1]
    score = seen(0.0, 1e-4, last)
    assert chance(seen(1.0, 1.0, last), score, last) == pytest.approx(1.0)
    assert chance(seen(4.9, 1.0, last), score, last) == pytest.approx(0.0)


def test_an_estimate_without_bounds_is_no_interval() -> None:
    bounded = Estimate(value=1.0, low=0.0, high=2.0, level=0.95, method="m")
    assert Interval.of(bounded) == Interval(1.0, 0.0, 2.0)
    for missing in ("value", "low", "high"):
        assert Interval.of(bounded.model_copy(update={missing: None})) is None
