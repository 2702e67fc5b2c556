"""Clustered figures: against the unclustered ones, the definition, statsmodels, and their coverage."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS

from proctor.domain.estimate import Estimate
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.clusters import (
    Clusters,
    ClusterSums,
    clustered_contamination_score,
    clustered_score_inflation,
    clustered_share,
    clustered_test,
    clusters_of,
    sums_of,
)
from proctor.evidence.intervals import PairSums, contamination_score, score_inflation, wilson
from proctor.evidence.perturbation.power import items_needed_to_approve, minimum_detectable_inflation
from proctor.evidence.perturbation.studentised import studentised_test
from tests.unit.samples import ends, paired, sample, samples

FloatArray = npt.NDArray[np.float64]


def inflation_by_cluster(answers: PairedAnswers, labels: Sequence[Hashable], level: float) -> Estimate:
    canonical = answers.canonical.astype(float)
    return clustered_score_inflation(answers.differences, canonical, Clusters.of(labels), level)


def contamination_score_by_cluster(answers: PairedAnswers, labels: Sequence[Hashable], level: float) -> Estimate:
    canonical = answers.canonical.astype(float)
    return clustered_contamination_score(answers.differences, canonical, Clusters.of(labels), level)


def robust_error(values: FloatArray, groups: FloatArray) -> float:
    """Standard error of a mean by statsmodels' cluster covariance."""
    fitted = OLS(values, np.ones(values.size)).fit(cov_type="cluster", cov_kwds={"groups": groups})
    error: float = fitted.bse[0]
    return error


@given(samples(min_items=2))
def test_items_that_are_clusters_of_their_own_give_the_unclustered_figures(answers: PairedAnswers) -> None:
    labels = [f"passage of {item}" for item in answers.item_ids]
    for found, wanted in (
        (inflation_by_cluster(answers, labels, 0.95), score_inflation(answers, 0.95)),
        (contamination_score_by_cluster(answers, labels, 0.95), contamination_score(answers, 0.95)),
        (
            clustered_share(answers.canonical.astype(float), Clusters.of(labels), 0.95),
            wilson(int(answers.canonical.sum()), answers.n, 0.95),
        ),
    ):
        assert found.method == wanted.method
        assert (found.value, found.low, found.high) == pytest.approx((wanted.value, wanted.low, wanted.high), abs=1e-9)
    tested = clustered_test(answers.differences, Clusters.of(labels))
    assert tested == pytest.approx(studentised_test(answers), rel=1e-9, abs=1e-300)


@given(samples(min_items=1))
def test_the_moments_of_single_items_are_those_of_the_pair_sums(answers: PairedAnswers) -> None:
    single = Clusters.single(answers.n)
    found = ClusterSums.of(answers.differences, answers.canonical.astype(float), single).with_pseudo_items()
    assert found == pytest.approx(PairSums.of(answers).with_pseudo_items(), abs=1e-12)


def test_the_error_is_that_of_statsmodels_with_four_clusters_more() -> None:
    rng = np.random.default_rng(3)
    answers = sample(rng, np.repeat(rng.random(12), 5), variants=3, leaked=0.1)
    canonical, differences = answers.canonical.astype(float), answers.differences
    groups = np.repeat(np.arange(12.0), 5)
    moments = ClusterSums.of(differences, canonical, Clusters.of(groups.tolist())).with_pseudo_items()
    pseudo_groups = np.append(groups, np.repeat(np.arange(12.0, 16.0), 5))
    with_d = np.append(differences, np.repeat([0.0, 1.0, -1.0, 0.0], 5))
    with_b = np.append(canonical, np.repeat([1.0, 1.0, 0.0, 0.0], 5))
    assert math.sqrt(moments.var_d / moments.n) == pytest.approx(robust_error(with_d, pseudo_groups))
    assert math.sqrt(moments.var_b / moments.n) == pytest.approx(robust_error(with_b, pseudo_groups))
    both = (robust_error(with_d + with_b, pseudo_groups) ** 2 - robust_error(with_d - with_b, pseudo_groups) ** 2) / 4
    assert moments.cov / moments.n == pytest.approx(both)


def test_the_test_is_the_t_test_with_the_error_of_statsmodels_with_four_clusters_more() -> None:
    rng = np.random.default_rng(4)
    differences, groups = rng.uniform(-0.8, 1.0, 60), np.repeat(np.arange(15.0), 4)
    padded = np.append(differences, np.repeat([0.0, 1.0, -1.0, 0.0], 4))
    error = robust_error(padded, np.append(groups, np.repeat(np.arange(15.0, 19.0), 4)))
    wanted = stats.t.sf(padded.mean() / error, 14)
    assert clustered_test(differences, Clusters.of(groups.tolist())) == pytest.approx(wanted)


@given(samples(min_items=4), st.integers(2, 4), st.floats(0.5, 0.99))
def test_the_p_value_turns_where_the_lower_bound_of_d_does(answers: PairedAnswers, size: int, level: float) -> None:
    clusters = Clusters.of((np.arange(answers.n) // size).tolist())
    assume(clusters.sizes.size > 1)
    sums = ClusterSums.of(answers.differences, answers.canonical.astype(float), clusters)
    moments = sums.moments(level)
    low = moments.mean_d - stats.norm.ppf(0.5 + level / 2) * math.sqrt(moments.var_d / moments.n)
    assume(abs(low) > 1e-9)
    assert (clustered_test(answers.differences, clusters) < (1 - level) / 2) == (low > 0)


def test_the_interval_is_its_definition_over_clusters_of_any_size() -> None:
    labels = list("aaabbccddefgh")
    answers = paired([1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1], [1, 2, 0, 3, 0, 2, 1, 3, 3, 0, 3, 2, 3], [3] * 13)
    alike = 13**2 / (9 + 4 + 4 + 4 + 1 + 1 + 1 + 1)
    size = 13 / alike
    sizes = [float(labels.count(label)) for label in "abcdefgh"] + [size] * 4
    sums = [
        sum(d for d, one in zip(answers.differences.tolist(), labels, strict=True) if one == label)
        for label in "abcdefgh"
    ] + [0.0, size, -size, 0.0]
    n = sum(sizes)
    mean = sum(sums) / n
    variance = 12 / 11 * sum((total - m * mean) ** 2 for total, m in zip(sums, sizes, strict=True)) / n**2
    half = stats.t.ppf(0.975, alike - 1) * math.sqrt(variance)
    found = inflation_by_cluster(answers, labels, 0.95)
    assert found.low == pytest.approx(100 * (mean - half))
    assert found.high == pytest.approx(100 * (mean + half))
    assert "8 clusters, as 6.8 of equal size" in found.method


def test_fiellers_bounds_over_clusters_are_the_ratios_at_which_the_test_turns() -> None:
    rng = np.random.default_rng(6)
    answers = sample(rng, np.repeat(rng.beta(3, 1, 40), 4), variants=3, leaked=0.2)
    groups = np.repeat(np.arange(40.0), 4)
    found = contamination_score_by_cluster(answers, groups.tolist(), 0.9)
    base = np.append(answers.canonical.astype(float), np.repeat([1.0, 1.0, 0.0, 0.0], 4))
    difference = np.append(answers.differences, np.repeat([0.0, 1.0, -1.0, 0.0], 4))
    groups = np.append(groups, np.repeat(np.arange(40.0, 44.0), 4))
    for bound in (found.low, found.high):
        assert bound is not None
        rest = difference - bound * base
        assert abs(rest.mean()) / robust_error(rest, groups) == pytest.approx(stats.t.ppf(0.95, 39), rel=1e-6)


@given(samples(min_items=2), st.integers(2, 4))
def test_copies_of_an_item_in_its_cluster_tell_nothing_new(answers: PairedAnswers, copies: int) -> None:
    """Each item copied is a cluster of equal items: all that is said is what a cluster for each item says."""
    canonical = answers.canonical.astype(float)
    once = ClusterSums.of(answers.differences, canonical, Clusters.single(answers.n))
    clusters = Clusters.of(np.repeat(np.arange(answers.n), copies).tolist())
    differences = np.repeat(answers.differences, copies)
    copied = ClusterSums.of(differences, np.repeat(canonical, copies), clusters)
    moments, wanted = copied.with_pseudo_items(), once.with_pseudo_items()
    assert (moments.mean_d, moments.mean_b) == pytest.approx((wanted.mean_d, wanted.mean_b), abs=1e-12)
    assert moments.var_d / moments.n == pytest.approx(wanted.var_d / wanted.n)
    assert copied.effective == pytest.approx(once.effective)
    p_value = stats.t.sf(wanted.mean_d / math.sqrt(wanted.var_d / wanted.n), answers.n - 1)
    assert clustered_test(differences, clusters) == pytest.approx(p_value, rel=1e-6)


@given(samples(min_items=2))
def test_labels_that_all_differ_leave_the_sample_as_it_was(answers: PairedAnswers) -> None:
    labelled = replace(answers, clusters=tuple(f"passage of {item}" for item in answers.item_ids))
    assert clusters_of(labelled) is None
    assert sums_of(labelled) == sums_of(answers) == PairSums.of(answers)


def test_one_cluster_shows_no_spread_and_bounds_nothing() -> None:
    answers = paired([1, 0, 1], [0, 0, 3], [3] * 3)
    for found in (
        inflation_by_cluster(answers, ["x"] * 3, 0.95),
        contamination_score_by_cluster(answers, ["x"] * 3, 0.95),
        clustered_share(answers.canonical.astype(float), Clusters.of(["x"] * 3), 0.95),
    ):
        assert found.value is not None
        assert (found.low, found.high) == (None, None)
        assert "one cluster" in found.method
    assert clustered_test(answers.differences, Clusters.of(["x"] * 3)) == 1.0


def test_no_items_have_no_estimate() -> None:
    nothing = paired([], [], [])
    for found in (
        inflation_by_cluster(nothing, [], 0.95),
        contamination_score_by_cluster(nothing, [], 0.95),
        clustered_share(np.zeros(0), Clusters.of([]), 0.95),
    ):
        assert (found.value, found.low, found.high) == (None, None, None)
    assert clustered_test(np.zeros(0), Clusters.of([])) == 1.0


def test_without_spread_between_items_of_their_own_the_sign_decides() -> None:
    clusters = Clusters.single(3)
    assert clustered_test(np.ones(3), clusters) == 0.0
    assert clustered_test(-np.ones(3), clusters) == 1.0


def test_two_clusters_of_very_unequal_size_say_next_to_nothing() -> None:
    answers = paired([1] * 100, [2] * 100, [3] * 100)
    found = inflation_by_cluster(answers, ["big"] * 99 + ["small"], 0.95)
    assert (found.low, found.high) == (-100.0, 100.0)
    assert contamination_score_by_cluster(answers, ["big"] * 99 + ["small"], 0.95).low is None


def test_every_item_needs_a_label() -> None:
    with pytest.raises(ValueError, match="2 cluster labels for 3 items"):
        replace(paired([1, 0, 1], [0, 0, 3], [3] * 3), clusters=("x", "y"))


def test_perfect_answers_are_as_sure_as_there_are_clusters() -> None:
    """Two of four pseudo-clusters of ten are wrong: of 240 items 220 are right."""
    found = clustered_share(np.ones(200), Clusters.of(np.repeat(np.arange(20), 10).tolist()), 0.95)
    error = robust_error(np.repeat([1.0, 0.0], [220, 20]), np.repeat(np.arange(24.0), 10))
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(220 / 240 - stats.t.ppf(0.975, 19) * error)


@pytest.mark.parametrize(("clusters", "size"), [(20, 10), (70, 3)])
@pytest.mark.parametrize("leaked", [0.02, 0.1])
def test_intervals_cover_the_truth_where_clusters_leak_as_a_whole(clusters: int, size: int, leaked: float) -> None:
    """Near-deterministic answers, known or leaked by the cluster: single pseudo-items cover 73 % of the time here."""
    rng = np.random.default_rng(20261101)
    groups = Clusters.of(np.repeat(np.arange(clusters), size).tolist())
    known, noise, replications = 0.75, 0.01, 800
    base = known * 0.99 + leaked * 0.99 + (1 - known - leaked) * 0.01
    truth = base - (known * 0.99 + (1 - known) * 0.01)
    inside_d = inside_accuracy = 0
    for _ in range(replications):
        kind = rng.random(clusters)[groups.codes]
        reworded = np.where(kind < known, 1 - noise, noise)
        chances = np.where((kind >= known) & (kind < known + leaked), 0.99, reworded)
        canonical = (rng.random(groups.n) < chances).astype(float)
        differences = canonical - rng.binomial(3, reworded) / 3
        found = clustered_score_inflation(differences, canonical, groups, 0.95)
        accuracy = clustered_share(canonical, groups, 0.95)
        (low, high), (low_accuracy, high_accuracy) = ends(found), ends(accuracy)
        inside_d += low <= 100 * truth <= high
        inside_accuracy += low_accuracy <= base <= high_accuracy
    for inside in (inside_d, inside_accuracy):
        assert stats.binomtest(inside, replications, 0.93, alternative="less").pvalue > 1e-3


def test_what_is_said_to_be_detectable_is_found_four_times_in_five() -> None:
    """Clusters that leak as a whole, into answers that hardly ever vary: the formula errs to the safe side."""
    rng, replications = np.random.default_rng(5), 1_500
    clusters, right = Clusters.of(np.repeat(np.arange(200), 3).tolist()), 0.02

    def drawn(leaked: float) -> tuple[FloatArray, FloatArray]:
        own = rng.random((2, 200)) < right
        canonical = np.where(rng.random(200) < leaked, 1.0, own[0])[clusters.codes]
        return canonical - own[1][clusters.codes], canonical

    detectable = np.mean(
        [minimum_detectable_inflation(ClusterSums.of(*drawn(0.0), clusters), alpha=0.05) for _ in range(50)]
    )
    assert detectable < 0.08
    leaked = float(detectable) / (1 - right)
    found = sum(clustered_test(drawn(leaked)[0], clusters) < 0.05 for _ in range(replications))
    assert 0.78 < found / replications < 0.92


def test_more_clusters_of_the_same_kind_would_settle_it() -> None:
    answers = replace(paired([1] * 60, [3] * 60, [3] * 60), clusters=tuple(str(place // 3) for place in range(60)))
    sums = sums_of(answers)
    needed = items_needed_to_approve(sums, max_inflation=0.05, max_contamination_score=0.1, level=0.95)
    assert needed is not None
    alone = items_needed_to_approve(PairSums.of(answers), max_inflation=0.05, max_contamination_score=0.1, level=0.95)
    assert alone is not None
    assert 2.5 < needed / alone < 3.5
    enough = paired([1] * (needed + 3), [3] * (needed + 3), [3] * (needed + 3))
    found = inflation_by_cluster(enough, [place // 3 for place in range(needed + 3)], 0.95)
    assert found.high is not None
    assert found.high <= 5.0


def test_items_that_rise_and_fall_together_do_not_raise_the_tests_size() -> None:
    """The unclustered test rejects a clean model three times as often as it should here."""
    rng, replications = np.random.default_rng(8), 1_000
    groups = Clusters.of(np.repeat(np.arange(40), 8).tolist())
    rejected = naive = 0
    for _ in range(replications):
        differences = rng.normal(0, 1, 40)[groups.codes] + rng.normal(0, 0.5, groups.n)
        rejected += clustered_test(differences, groups) <= 0.05
        naive += stats.ttest_1samp(differences, 0, alternative="greater").pvalue <= 0.05
    assert stats.binomtest(rejected, replications, 0.05, alternative="greater").pvalue > 1e-3
    assert naive > 3 * rejected
