"""Difference-in-differences: its definition, what it removes, what it finds, and its coverage."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from proctor.domain.evidence import ControlledInflation
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import PairSums, contamination_score, score_inflation
from proctor.evidence.perturbation.control import (
    control_items_needed,
    controlled_inflation,
    minimum_detectable_excess,
)
from proctor.evidence.perturbation.power import minimum_detectable_inflation
from tests.unit.samples import consistent, ends, paired, samples

PSEUDO = [0.0, 1.0, -1.0, 0.0]


def weigh(benchmark: PairedAnswers, control: PairedAnswers) -> ControlledInflation:
    return controlled_inflation(benchmark, control, level=0.95, alpha=0.05)


def draw(
    rng: np.random.Generator,
    n: int,
    *,
    known: float = 0.75,
    cost: float = 0.0,
    leaked: float = 0.0,
    noise: float = 0.01,
) -> PairedAnswers:
    """A model that knows an item or does not; rewording loses a share `cost` of its right answers."""
    kind = rng.random(n)
    chance = np.where(kind < known, 1 - noise, noise)
    canonical = np.where((kind >= known) & (kind < known + leaked), 0.99, chance)
    right = rng.binomial(3, chance * (1 - cost))
    return paired((rng.random(n) < canonical).tolist(), right.tolist(), [3] * n)


@settings(max_examples=25)
@given(samples(min_items=1), samples(min_items=1))
def test_points_are_welchs_test_and_interval_with_pseudo_items(
    benchmark: PairedAnswers, control: PairedAnswers
) -> None:
    first, second = np.append(benchmark.differences, PSEUDO), np.append(control.differences, PSEUDO)
    found = weigh(benchmark, control)
    wanted = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    assert found.p_points == pytest.approx(wanted.pvalue, rel=1e-6, abs=1e-12)
    value = benchmark.differences.mean() - control.differences.mean()
    bounds = CompareMeans(DescrStatsW(first), DescrStatsW(second)).tconfint_diff(0.05, usevar="unequal")
    excess = found.excess_inflation
    assert excess.value == pytest.approx(100 * value, abs=1e-9)
    assert excess.low == pytest.approx(100 * min(bounds[0], value), abs=1e-6)
    assert excess.high == pytest.approx(100 * max(bounds[1], value), abs=1e-6)
    assert found.p_value == max(found.p_points, found.p_share)


@settings(max_examples=25)
@given(samples(min_items=1), samples(min_items=1))
def test_the_share_is_tested_by_the_delta_method(benchmark: PairedAnswers, control: PairedAnswers) -> None:
    """The gradient of D_b − (B_b / B_c) · D_c in the four means, spelt out."""
    sets = []
    for answers in (benchmark, control):
        d = np.append(answers.differences, PSEUDO)
        b = np.append(answers.canonical.astype(float), [1.0, 1.0, 0.0, 0.0])
        sets.append((d, b))
    (d_b, b_b), (d_c, b_c) = sets
    share, ratio = d_c.mean() / b_c.mean(), b_b.mean() / b_c.mean()
    gradients = [(np.array([1.0, -share]), d_b, b_b), (np.array([-ratio, ratio * share]), d_c, b_c)]
    parts = [g @ np.cov(d, b) @ g / d.size for g, d, b in gradients]
    freedom = sum(parts) ** 2 / sum(part**2 / (d.size - 1) for part, (_, d, _) in zip(parts, gradients, strict=True))
    t = (d_b.mean() - ratio * d_c.mean()) / math.sqrt(sum(parts))
    assert weigh(benchmark, control).p_share == pytest.approx(stats.t.sf(t, freedom), rel=1e-6, abs=1e-12)


def test_the_scores_difference_is_put_together_from_fiellers_intervals() -> None:
    rng = np.random.default_rng(2)
    benchmark, control = draw(rng, 300, leaked=0.1), draw(rng, 200, cost=0.05)
    found = weigh(benchmark, control).excess_score
    first, second = contamination_score(benchmark, 0.95), contamination_score(control, 0.95)
    assert first.value is not None
    assert second.value is not None
    value = first.value - second.value
    assert found.value == pytest.approx(value)
    lower = (first.value - ends(first)[0]) ** 2 + (ends(second)[1] - second.value) ** 2
    assert found.low == pytest.approx(value - math.sqrt(lower))


def test_without_control_items_nothing_is_claimed() -> None:
    found = weigh(paired([1] * 50, [0] * 50, [3] * 50), paired([], [], []))
    assert (found.excess_inflation.value, found.excess_inflation.low, found.p_value) == (None, None, 1.0)
    assert (found.excess_score.value, found.excess_score.high) == (None, None)
    assert (found.n_benchmark, found.n_control) == (50, 0)
    nothing = weigh(paired([], [], []), paired([1] * 50, [0] * 50, [3] * 50))
    assert (nothing.excess_inflation.value, nothing.p_value) == (None, 1.0)


def test_five_control_items_leave_almost_everything_open() -> None:
    found = weigh(paired([1] * 200, [2] * 200, [3] * 200), paired([1] * 5, [3] * 5, [3] * 5))
    excess = found.excess_inflation
    assert excess.low is not None
    assert excess.high is not None
    assert excess.high - excess.low > 70
    assert found.p_value > 0.05


def test_control_items_that_are_never_right_cannot_carry_a_claim_about_shares() -> None:
    """What is wrong in any wording cannot get worse: in points such items make every cost look like memory."""
    rng = np.random.default_rng(3)
    benchmark = draw(rng, 500, known=0.98, cost=0.05)
    found = weigh(benchmark, draw(rng, 300, known=0.02, cost=0.05, noise=0.0))
    assert found.p_points < 0.001
    assert found.p_value == found.p_share > 0.05


@settings(max_examples=25)
@given(samples(min_items=1), samples(min_items=1))
def test_the_order_of_the_items_changes_nothing(benchmark: PairedAnswers, control: PairedAnswers) -> None:
    order = np.random.default_rng(1).permutation(benchmark.n)
    shuffled = PairedAnswers.of(
        [benchmark.item_ids[i] for i in order],
        benchmark.canonical[order],
        benchmark.right[order],
        benchmark.total[order],
    )
    assert weigh(shuffled, control) == weigh(benchmark, control)


def test_a_planted_cost_of_rewording_is_removed() -> None:
    """Rewording costs a clean model four points: uncontrolled it looks inflated, controlled it does not."""
    rng = np.random.default_rng(14)
    found = [weigh(draw(rng, 500, cost=0.053), draw(rng, 500, cost=0.053)) for _ in range(150)]
    assert np.mean([one.inflation_benchmark.value for one in found]) == pytest.approx(4.0, abs=0.3)
    assert np.mean([one.excess_inflation.value for one in found]) == pytest.approx(0.0, abs=0.4)
    assert np.mean([ends(one.inflation_benchmark)[0] > 0 for one in found]) > 0.9


@pytest.mark.parametrize("control_known", [0.75, 0.4])
def test_the_size_is_restored_where_a_rewording_costs_two_points(control_known: float) -> None:
    """Uncontrolled, the test of D alone calls most of these clean models inflated."""
    rng, replications = np.random.default_rng(15), 250
    rejected = uncontrolled = 0
    for _ in range(replications):
        benchmark = draw(rng, 500, cost=0.027)
        found = weigh(benchmark, draw(rng, 400, known=control_known, cost=0.027))
        rejected += found.p_value <= 0.05
        uncontrolled += stats.ttest_1samp(benchmark.differences, 0, alternative="greater").pvalue <= 0.05
    assert stats.binomtest(rejected, replications, 0.05, alternative="greater").pvalue > 1e-3
    assert uncontrolled > 0.6 * replications


def test_leaks_are_found_beyond_the_cost_of_rewording() -> None:
    rng = np.random.default_rng(16)
    found = [weigh(draw(rng, 500, leaked=0.1, cost=0.027), draw(rng, 400, cost=0.027)) for _ in range(50)]
    assert np.mean([one.p_value < 0.05 for one in found]) > 0.95
    assert np.mean([one.excess_inflation.value for one in found]) == pytest.approx(10.0, abs=0.8)


@pytest.mark.parametrize(
    ("benchmark_known", "control_known", "noise", "n_control"),
    [(0.75, 0.75, 0.01, 200), (1.0, 1.0, 0.002, 200), (0.75, 0.3, 0.01, 100), (0.6, 0.6, 0.3, 200)],
)
@pytest.mark.parametrize("leaked", [0.0, 0.05])
def test_intervals_cover_the_truth(
    benchmark_known: float, control_known: float, noise: float, n_control: int, leaked: float
) -> None:
    rng, cost, replications = np.random.default_rng(20261102), 0.03, 250
    known = benchmark_known - leaked

    def accuracy(share: float) -> float:
        return share * (1 - noise) + (1 - share) * noise

    truth = cost * accuracy(known) + leaked * (0.99 - noise) - cost * accuracy(control_known)
    share = (cost * accuracy(known) + leaked * (0.99 - noise)) / (accuracy(known) + leaked * (0.99 - noise)) - cost
    inside = inside_score = 0
    for _ in range(replications):
        found = weigh(
            draw(rng, 300, known=known, leaked=leaked, cost=cost, noise=noise),
            draw(rng, n_control, known=control_known, cost=cost, noise=noise),
        )
        excess, score = found.excess_inflation, found.excess_score
        assert excess.low is not None
        assert excess.high is not None
        inside += excess.low <= 100 * truth <= excess.high
        inside_score += score.low is None or score.high is None or score.low <= share <= score.high
    for number in (inside, inside_score):
        assert stats.binomtest(number, replications, 0.93, alternative="less").pvalue > 1e-3


def test_with_very_many_control_items_only_the_benchmark_limits_what_is_found() -> None:
    rng = np.random.default_rng(5)
    benchmark, control = PairSums.of(draw(rng, 400)), PairSums.of(draw(rng, 400))
    found = minimum_detectable_excess(benchmark, control.scaled(1e6), alpha=0.05)
    assert found == pytest.approx(minimum_detectable_inflation(benchmark, alpha=0.05), rel=1e-4)
    assert minimum_detectable_excess(benchmark, control, alpha=0.05) > found
    assert minimum_detectable_excess(benchmark, PairSums(0.0, 0.0, 0.0, 0.0, 0.0), alpha=0.05) == 1.0


def test_the_control_items_asked_for_are_just_enough() -> None:
    rng = np.random.default_rng(6)
    benchmark, control = PairSums.of(draw(rng, 500)), PairSums.of(draw(rng, 100, cost=0.03))
    needed = control_items_needed(benchmark, control, excess=0.05, alpha=0.05)
    assert needed is not None
    enough = minimum_detectable_excess(benchmark, control.scaled(needed / 100), alpha=0.05)
    too_few = minimum_detectable_excess(benchmark, control.scaled((needed - 1) / 100), alpha=0.05)
    assert enough <= 0.05 < too_few


def test_no_number_of_control_items_makes_up_for_a_small_benchmark() -> None:
    sums = PairSums.of(draw(np.random.default_rng(7), 30))
    assert control_items_needed(sums, sums, excess=0.03, alpha=0.05) is None


def test_a_plan_needs_an_excess_and_a_spread() -> None:
    sums = PairSums.of(consistent(np.random.default_rng(8), 50, variants=3))
    with pytest.raises(ValueError, match="excess 0"):
        control_items_needed(sums, sums, excess=0, alpha=0.05)
    with pytest.raises(ValueError, match="pilot"):
        control_items_needed(sums, PairSums(0.0, 0.0, 0.0, 0.0, 0.0), excess=0.05, alpha=0.05)


def test_the_promised_power_is_held() -> None:
    rng, replications = np.random.default_rng(9), 300
    spread = PairSums.of(draw(rng, 20_000))
    needed = control_items_needed(spread.scaled(400 / 20_000), spread, excess=0.05, alpha=0.05)
    assert needed is not None
    found = sum(weigh(draw(rng, 400, leaked=0.051), draw(rng, needed)).p_value < 0.05 for _ in range(replications))
    assert 0.65 <= found / replications <= 0.95


def test_uncontrolled_figures_are_those_of_the_perturbation_channel() -> None:
    rng = np.random.default_rng(10)
    benchmark, control = draw(rng, 100), draw(rng, 80)
    found = weigh(benchmark, control)
    assert found.inflation_benchmark == score_inflation(benchmark, 0.95)
    assert found.inflation_control == score_inflation(control, 0.95)


def on_passages(rng: np.random.Generator, passages: int, *, cost: float) -> PairedAnswers:
    """Answers that are their passage's in half of its ten items, and their own in the others."""
    place = np.arange(10 * passages) // 10
    own, common = draw(rng, place.size, cost=cost), draw(rng, passages, cost=cost)
    shared = rng.random(place.size) < 0.5
    return replace(
        paired(
            np.where(shared, common.canonical[place], own.canonical).tolist(),
            np.where(shared, common.right[place], own.right).tolist(),
            [3] * place.size,
        ),
        clusters=tuple(map(str, place)),
    )


def test_a_control_on_the_same_passages_does_not_convict_a_clean_model() -> None:
    """The control's passages are not known: it is taken to be clustered as the benchmark is."""
    rng, audits = np.random.default_rng(11), 200
    clustered, naive, inside = [], [], 0
    for _ in range(audits):
        benchmark, control = on_passages(rng, 50, cost=0.1), on_passages(rng, 50, cost=0.1)
        control = replace(control, clusters=None)
        found = weigh(benchmark, control)
        clustered.append(found.p_value)
        naive.append(weigh(replace(benchmark, clusters=None), control).p_value)
        low, high = ends(found.excess_inflation)
        inside += low <= 0 <= high
    assert stats.binomtest(sum(p < 0.05 for p in clustered), audits, 0.05, alternative="greater").pvalue > 1e-3
    assert sum(p < 0.05 for p in naive) > 0.08 * audits
    assert stats.binomtest(inside, audits, 0.95, alternative="less").pvalue > 1e-3


@settings(max_examples=25)
@given(samples(min_items=4, max_items=40), samples(min_items=1, max_items=40))
def test_clusters_only_ever_widen_the_excess(benchmark: PairedAnswers, control: PairedAnswers) -> None:
    pairs = replace(benchmark, clusters=tuple(str(place // 2) for place in range(benchmark.n)))
    found, alone = weigh(pairs, control), weigh(replace(pairs, clusters=benchmark.item_ids), control)
    assert alone == weigh(benchmark, control)
    assert found.excess_inflation.value == pytest.approx(alone.excess_inflation.value)
    assert found.minimum_detectable_points >= alone.minimum_detectable_points
    one = weigh(replace(benchmark, clusters=("all",) * benchmark.n), control)
    assert (one.excess_inflation.low, one.excess_score.low, one.p_value) == (None, None, 1.0)
