"""The fresh channel: its definition, what a panel removes, what the perturbation channel cannot see, and coverage."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit, logit
from statsmodels.stats.proportion import confint_proportions_2indep

from proctor.domain.estimate import Estimate
from proctor.domain.evidence import FreshEvidence, Verdict
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.fresh import bootstrap as fresh_bootstrap
from proctor.evidence.fresh.bootstrap import FreshAnswers, measure_excess, t_quantile, t_upper_tail
from proctor.evidence.fresh.channel import fresh_evidence
from proctor.evidence.intervals import score_inflation
from proctor.evidence.perturbation.channel import perturbation_evidence
from tests.unit.samples import ends, paired

Floats = npt.NDArray[np.float64]


def weigh(answers: FreshAnswers, *, allowed: float = 5.0, block: float = 5.0, **settings: float) -> FreshEvidence:
    seed, replicates = int(settings.pop("seed", 0)), int(settings.pop("replicates", 400))
    return fresh_evidence(
        answers,
        allowed_points=allowed,
        block_points=block,
        alpha=0.05,
        level=0.95,
        seed=seed,
        replicates=replicates,
        **settings,
    )


def simulate(
    rng: np.random.Generator,
    *,
    n: int,
    m: int,
    panel: int,
    ability: float = 0.0,
    harder: float = 0.0,
    leaked: float = 0.0,
    scatter: float = 0.0,
) -> FreshAnswers:
    """Two-parameter item response model: fresh items are harder for everyone by `harder`; the first model may have
    seen some benchmark items; on the benchmark, abilities scatter."""
    abilities = np.concatenate([[ability], rng.normal(0.0, 1.0, panel)])

    def answered(items: int, shift: float, by: Floats) -> Floats:
        chances = expit(np.exp(rng.normal(0, 0.3, items)) * (by[:, None] - rng.normal(shift, 1.0, items)))
        right: Floats = (rng.random(chances.shape) < chances).astype(np.float64)
        return right

    benchmark = answered(n, 0.0, abilities + scatter * rng.normal(size=abilities.size))
    benchmark[0] = np.maximum(benchmark[0], rng.random(n) < leaked)
    fresh = answered(m, harder, abilities)
    return FreshAnswers.of(benchmark[0], fresh[0], benchmark[1:], fresh[1:])


def width(estimate: Estimate) -> float:
    low, high = ends(estimate)
    return high - low


def right(number: int, of: int) -> Floats:
    return (np.arange(of) < number).astype(np.float64)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
       st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))  # fmt: skip
def test_without_a_panel_it_is_the_interval_of_agresti_and_caffo(
    benchmark: tuple[int, int], fresh: tuple[int, int]
) -> None:
    found = weigh(FreshAnswers.of(right(*benchmark), right(*fresh)))
    low, high = confint_proportions_2indep(*benchmark, *fresh, method="agresti-caffo")
    value = benchmark[0] / benchmark[1] - fresh[0] / fresh[1]
    assert found.excess.value == pytest.approx(100 * value)
    assert found.excess.low == pytest.approx(100 * min(max(low, -1), value), abs=1e-9)
    assert found.excess.high == pytest.approx(100 * max(min(high, 1), value), abs=1e-9)
    error = (high - low) / 2 / stats.norm.ppf(0.975)
    assert found.p_value == pytest.approx(stats.norm.sf((high + low) / 2 / error), rel=1e-9)
    assert found.replicates == 0


def test_paired_without_a_panel_it_is_the_interval_of_score_inflation() -> None:
    rng = np.random.default_rng(1)
    benchmark, fresh = rng.random(150) < 0.7, rng.random(150) < 0.6
    found = weigh(FreshAnswers.of(benchmark, fresh, paired=True)).excess
    wanted = score_inflation(paired(benchmark.tolist(), fresh.tolist(), [1] * 150), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((wanted.value, wanted.low, wanted.high))


def test_the_error_is_that_of_a_bootstrap_done_by_hand() -> None:
    """Three reference models: items drawn for all models at once, a shift of logits fitted each time."""
    rng = np.random.default_rng(2)
    answers = simulate(rng, n=120, m=90, panel=3, harder=0.5)
    found = measure_excess(answers, chance=0.0, rng=rng, replicates=4_000)
    pad = np.vstack([[1.0, 0.0], *[[row.mean()] * 2 for row in answers.benchmark[1:]]])
    pad_fresh = np.vstack([[1.0, 0.0], *[[row.mean()] * 2 for row in answers.fresh[1:]]])
    benchmark, fresh = np.hstack([answers.benchmark, pad]), np.hstack([answers.fresh, pad_fresh])
    values = []
    for _ in range(4_000):
        y = benchmark[:, rng.integers(0, 122, 122)].mean(axis=1)
        x = fresh[:, rng.integers(0, 92, 92)].mean(axis=1)
        ys, xs = (y * 120 + 0.5) / 121, (x * 90 + 0.5) / 91
        weights = 1 / (1 / (120 * ys * (1 - ys)) + 1 / (90 * xs * (1 - xs)))
        shift = np.average(logit(ys[1:]) - logit(xs[1:]), weights=weights[1:])
        values.append(y[0] - (expit(logit(xs[0]) + shift) * 121 - 0.5) / 120)
    from_items = math.sqrt(found.error**2 - found.scatter**2 * (1 + 1 / 3))
    assert from_items == pytest.approx(np.std(values), rel=0.06)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    answers = simulate(np.random.default_rng(3), n=100, m=100, panel=6)
    assert weigh(answers, seed=5).model_dump_json() == weigh(answers, seed=5).model_dump_json()
    assert weigh(answers, seed=5).excess.low != weigh(answers, seed=6).excess.low


@pytest.mark.parametrize("linked", [False, True])
def test_drawing_in_batches_changes_nothing(monkeypatch: pytest.MonkeyPatch, linked: bool) -> None:
    answers = simulate(np.random.default_rng(4), n=100, m=100, panel=6)
    answers = FreshAnswers(answers.benchmark, answers.fresh, linked)
    once = weigh(answers)
    monkeypatch.setattr(fresh_bootstrap, "_BATCH_CELLS", 1_500)
    again = weigh(answers)
    assert (again.excess.low, again.excess.high) == pytest.approx((once.excess.low, once.excess.high), rel=1e-12)


def test_pairing_narrows_the_interval_where_an_item_and_its_twin_are_answered_alike() -> None:
    rng = np.random.default_rng(5)
    chances = expit(4 * rng.normal(size=300))
    benchmark, fresh = (rng.random(300) < chances for _ in range(2))
    alone, linked = (weigh(FreshAnswers.of(benchmark, fresh, paired=one)).excess for one in (False, True))
    assert (alone.value, linked.value) == pytest.approx((linked.value, alone.value))
    assert width(linked) < 0.75 * width(alone)


def test_with_a_panel_paired_items_are_drawn_together() -> None:
    """Fresh items that every model answers as it answered their twins: no draw of items can move the excess."""
    rng = np.random.default_rng(5)
    right_or_wrong = (rng.random((4, 200)) < np.array([[0.5], [0.4], [0.6], [0.7]])).astype(float)
    answers = [FreshAnswers(right_or_wrong, right_or_wrong, linked) for linked in (False, True)]
    alone, linked = (measure_excess(one, chance=0.0, rng=rng, replicates=500) for one in answers)
    assert (alone.value, linked.value) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert linked.error < 0.25 * alone.error


def test_fresh_items_that_are_harder_for_everyone_are_no_sign_of_memory() -> None:
    answers = simulate(np.random.default_rng(6), n=800, m=800, panel=12, harder=1.0)
    alone = weigh(FreshAnswers.of(answers.benchmark[0], answers.fresh[0]))
    assert alone.verdict is Verdict.CONTAMINATED
    assert any("trusts that they were drawn like" in reason for reason in alone.reasons)
    among_others = weigh(answers)
    assert among_others.verdict is not Verdict.CONTAMINATED
    assert among_others.p_value > 0.05
    assert among_others.expected_accuracy == pytest.approx(answers.benchmark[0].mean(), abs=0.06)


def test_a_model_trained_on_the_rewordings_is_clean_by_perturbation_and_contaminated_by_fresh_items() -> None:
    """A quarter of the items leaked in every wording: D is 0, and fresh items are answered worse."""
    rng = np.random.default_rng(7)
    answers = simulate(rng, n=600, m=600, panel=10, harder=0.5, leaked=0.5)
    chances = np.where(answers.benchmark[0] == 1, 0.97, 0.05)
    reworded = rng.binomial(3, chances)
    within = perturbation_evidence(
        paired((rng.random(600) < chances).tolist(), reworded.tolist(), [3] * 600),
        ScoringSection(),
        GovernanceSection(),
        None,
    )
    assert within.verdict is not Verdict.CONTAMINATED
    assert abs(within.score_inflation.value or 0.0) < 2
    found = weigh(answers)
    assert found.verdict is Verdict.CONTAMINATED
    assert found.p_value < 0.001


def test_a_clean_model_is_clean_where_items_and_models_suffice() -> None:
    found = weigh(simulate(np.random.default_rng(9), n=4_000, m=4_000, panel=20, harder=0.5))
    assert found.verdict is Verdict.CLEAN
    assert found.minimum_detectable_points < 5
    assert "the upper bound is within the limit of 5 points" in found.reasons[0]


def test_what_cannot_be_found_is_not_called_clean() -> None:
    found = weigh(simulate(np.random.default_rng(10), n=60, m=60, panel=8, harder=0.5))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.minimum_detectable_points > 5
    assert "no sign of a clean model" in " ".join(found.reasons)


@pytest.mark.parametrize(("n", "m"), [(0, 50), (50, 0), (0, 0)])
@pytest.mark.parametrize("panel", [0, 6])
def test_without_items_the_channel_is_invalid(n: int, m: int, panel: int) -> None:
    answers = FreshAnswers.of(np.ones(n), np.ones(m), np.ones((panel, n)), np.ones((panel, m)))
    found = weigh(answers)
    assert (found.verdict, found.excess.value, found.p_value) == (Verdict.INVALID, None, 1.0)
    assert f"({n} benchmark, {m} fresh)" in found.reasons[0]


def test_one_reference_model_settles_nothing() -> None:
    found = weigh(simulate(np.random.default_rng(11), n=900, m=900, panel=1, leaked=0.6))
    assert found.p_value < 0.001
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "ask at least one more" in found.reasons[0]


def test_a_model_outside_of_the_panel_is_said_to_be() -> None:
    found = weigh(simulate(np.random.default_rng(12), n=300, m=300, panel=6, ability=5.0))
    assert found.extrapolated
    assert any("is extrapolated" in reason for reason in found.reasons)


def test_reference_models_that_disagree_make_the_interval_wide() -> None:
    rng = np.random.default_rng(13)
    agreeing = weigh(simulate(rng, n=1_000, m=1_000, panel=15))
    disagreeing = weigh(simulate(rng, n=1_000, m=1_000, panel=15, scatter=0.8))
    assert disagreeing.scatter_points > 8 > agreeing.scatter_points
    assert any("beyond the noise of items" in reason for reason in disagreeing.reasons)
    assert width(disagreeing.excess) > 30


@pytest.mark.parametrize("panel", [0, 3, 6])
@pytest.mark.parametrize("share", [0, 200])
def test_a_model_that_answers_all_alike_still_has_an_interval(panel: int, share: int) -> None:
    answers = FreshAnswers.of(right(share, 200), right(share, 200), np.ones((panel, 200)), np.ones((panel, 200)))
    found = weigh(answers).excess
    low, high = ends(found)
    assert width(found) > 2.5
    assert found.value is not None
    assert low <= found.value <= high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [1, 0], [[1, 0]], []), "shape"),
        (([1, 0], [1, 0], [[1, 0]], None), "1 on the benchmark and 0 on fresh"),
        (([1, 0, 1], [1, 0], [[1, 0], [1, 0]], [[1, 0], [1, 0]]), r"\(2, 2\) do not fit answers of shape \(3,\)"),
        (([1, 0.5], [1, 0]), "right"),
        (([1, math.nan], [1, 0]), "right"),
    ],
)
def test_answers_that_do_not_fit_are_refused(arguments: tuple[list[float], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FreshAnswers.of(*arguments)


def test_samples_of_different_size_cannot_be_paired_and_a_guess_is_a_chance() -> None:
    with pytest.raises(ValueError, match="3 benchmark and 2 fresh items cannot be paired"):
        FreshAnswers.of([1, 0, 1], [1, 0], paired=True)
    with pytest.raises(ValueError, match="guess chance 1"):
        weigh(FreshAnswers.of([1.0], [1.0]), guess_chance=1.0)


@pytest.mark.parametrize(
    ("panel", "ability", "harder", "scatter", "leaked"),
    [
        (0, 1.0, 0.0, 0.0, 0.0),
        (0, 5.0, 0.0, 0.0, 0.0),
        (5, 0.0, 0.5, 0.2, 0.2),
        (6, 5.0, 0.5, 0.0, 0.0),
        (10, 1.5, 0.5, 0.0, 0.0),
        (20, 0.0, 1.0, 0.2, 0.0),
    ],
)
def test_the_size_and_the_coverage_hold(
    panel: int, ability: float, harder: float, scatter: float, leaked: float
) -> None:
    rng, replications = np.random.default_rng(20261103), 150
    sets = simulate(np.random.default_rng(0), n=200_000, m=1, panel=0, ability=ability).benchmark
    truth = leaked * (1 - sets.mean())
    inside = rejected = 0
    for _ in range(replications):
        answers = simulate(
            rng, n=200, m=200, panel=panel, ability=ability, harder=harder, scatter=scatter, leaked=leaked
        )
        found = measure_excess(answers, chance=0.0, rng=rng, replicates=150)
        half = t_quantile(found.freedom, 0.975) * found.error
        inside += found.centre - half <= truth <= found.centre + half
        rejected += t_upper_tail(found.freedom, found.centre / found.error) < 0.05
    assert stats.binomtest(inside, replications, 0.93, alternative="less").pvalue > 1e-3
    if not leaked:
        assert stats.binomtest(rejected, replications, 0.06, alternative="greater").pvalue > 1e-3
