"""Wordings asked several times: the figures of single answers at one replicate, and the wording as the unit above."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from proctor.domain.evidence import Replicates, Verdict
from proctor.domain.trial import Outcome
from proctor.evidence.answers import Exclusion, PairedAnswers
from proctor.evidence.clusters import Clusters, clustered_score_inflation, clustered_test
from proctor.evidence.intervals import PairSums, contamination_score, score_inflation
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.measured import Measured, measured, measured_replicates
from proctor.evidence.perturbation.power import minimum_detectable_inflation
from proctor.evidence.perturbation.ranking import ranked_items
from proctor.evidence.perturbation.replicates import (
    canonical_lottery,
    ranked_replicates,
    replicate_figures,
    variance_components,
)
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.perturbation.wording_exchange import wording_exchangeability
from proctor.evidence.replicated_answers import ReplicatedAnswers, WordingAnswer, collect_replicates
from tests.unit.samples import consistent, paired, replicated, samples
from tests.unit.test_decision_policy import suite


def layout(right: list[list[int]], asked: list[list[int]]) -> ReplicatedAnswers:
    return ReplicatedAnswers(
        tuple(f"item-{i}" for i in range(len(right))),
        np.array(right, dtype=np.int64).reshape(len(right), len(right[0]) if right else 2),
        np.array(asked, dtype=np.int64).reshape(len(asked), len(asked[0]) if asked else 2),
    )


def weigh(answers: ReplicatedAnswers) -> Measured:
    return measured_replicates(answers, level=0.95, alpha=0.05)


@st.composite
def replicates(draw: st.DrawFn, max_items: int = 6) -> ReplicatedAnswers:
    rows = draw(
        st.lists(
            st.tuples(*[st.integers(0, 4).flatmap(lambda a: st.tuples(st.integers(0, a), st.just(a)))] * 3).filter(
                lambda row: row[0][1] > 0 and row[1][1] + row[2][1] > 0
            ),
            min_size=1,
            max_size=max_items,
        )
    )
    return layout([[right for right, _ in row] for row in rows], [[asked for _, asked in row] for row in rows])


def by_enumeration(answers: ReplicatedAnswers) -> float:
    """The definition: every way in which the canonical wording could be any of the item's wordings, counted."""
    shares = [
        [Fraction(int(r), int(a)) for r, a in zip(right, asked, strict=True) if a]
        for right, asked in zip(answers.right, answers.asked, strict=True)
    ]
    observed = sum(item[0] for item in shares)
    ways = list(itertools.product(*shares))
    return sum(sum(way) >= observed for way in ways) / len(ways)


@given(replicates())
def test_the_p_value_is_the_counted_one(answers: ReplicatedAnswers) -> None:
    assert wording_exchangeability(answers.right, answers.asked).p_value == pytest.approx(by_enumeration(answers))


@given(samples(min_items=1))
def test_one_replicate_gives_the_figures_of_single_answers(answers: PairedAnswers) -> None:
    found = weigh(replicated(answers))
    alone = measured(answers, level=0.95, alpha=0.05)
    for ours, theirs in (
        (found.inflation, score_inflation(answers, 0.95)),
        (found.score, contamination_score(answers, 0.95)),
        (found.inflation, alone.inflation),
        (found.score, alone.score),
    ):
        assert ours.method == theirs.method
        assert (ours.value, ours.low, ours.high) == pytest.approx((theirs.value, theirs.low, theirs.high), abs=1e-9)
    assert found.exact.p_value == pytest.approx(exchangeability_test(answers).p_value, rel=1e-9)
    assert found.studentised == pytest.approx(studentised_test(answers), rel=1e-7, abs=1e-300)
    detectable = minimum_detectable_inflation(PairSums.of(answers), alpha=0.05)
    assert found.detectable == pytest.approx(100 * detectable)


def test_one_replicate_ranks_items_as_single_answers_do() -> None:
    answers = consistent(np.random.default_rng(2), 400, variants=3, leaked=0.1, noise=0.1)
    ranked, single = ranked_replicates(replicated(answers)), ranked_items(answers, flagged_at_least=0.0)
    assert [item.item_id for item in ranked] == [item.item_id for item in single]
    assert [item.rank for item in ranked] == [item.rank for item in single]
    assert [item.suspicion for item in ranked] == pytest.approx([item.suspicion for item in single])


def test_the_saddlepoint_of_one_replicate_is_that_of_single_answers() -> None:
    answers = consistent(np.random.default_rng(3), 2_000, variants=3, leaked=0.02, noise=0.1)
    both = replicated(answers)
    found = wording_exchangeability(both.right, both.asked, exact_limit=0)
    assert "saddlepoint" in found.method
    assert found.p_value == pytest.approx(exchangeability_test(answers, exact_limit=0).p_value, rel=1e-6)


@settings(max_examples=20)
@given(replicates(), st.integers(2, 5))
def test_the_same_shares_from_more_replicates_say_the_same(answers: ReplicatedAnswers, times: int) -> None:
    """Replicates sharpen a wording's share; they are no further wordings."""
    more = ReplicatedAnswers(answers.item_ids, answers.right * times, answers.asked * times)
    once, again = weigh(answers), weigh(more)
    assert again.inflation == once.inflation
    assert again.score == once.score
    assert again.p_value == pytest.approx(once.p_value, rel=1e-9)
    ranked, before = ranked_replicates(more), ranked_replicates(answers)
    assert [item.suspicion for item in ranked] == pytest.approx([item.suspicion for item in before], abs=1e-9)


@settings(max_examples=20)
@given(replicates(max_items=12))
def test_the_order_of_the_items_changes_nothing(answers: ReplicatedAnswers) -> None:
    order = np.random.default_rng(3).permutation(answers.n)
    shuffled = ReplicatedAnswers(tuple(answers.item_ids[i] for i in order), answers.right[order], answers.asked[order])
    assert weigh(shuffled).p_value == pytest.approx(weigh(answers).p_value, rel=1e-9)
    assert [one.item_id for one in ranked_replicates(shuffled)] == [one.item_id for one in ranked_replicates(answers)]


def test_inflation_is_the_canonical_share_minus_the_mean_share_of_the_rewordings() -> None:
    answers = layout([[4, 1, 0], [2, 3, 0]], [[5, 5, 2], [4, 3, 0]])
    assert answers.differences == pytest.approx([4 / 5 - (1 / 5 + 0) / 2, 2 / 4 - 3 / 3])
    assert weigh(answers).inflation.value == pytest.approx(50 * (0.7 - 0.5))
    assert weigh(answers).n_variants == 2


@pytest.mark.parametrize("asked", [(5, 5, 5, 5), (5, 4, 3, 5), (16, 13, 11, 9)])
@pytest.mark.parametrize("shift", [0.0, 0.04])
def test_the_saddlepoint_approximates_the_exact_tail(asked: tuple[int, ...], shift: float) -> None:
    """The third row's common denominator is too fine for a lattice, so its exact tail is a simulated one."""
    rng = np.random.default_rng(6)
    counts = np.tile(asked, (60, 1))
    chances = np.repeat(rng.beta(2, 2, 60)[:, None], 4, axis=1)
    chances[:, 0] = np.minimum(chances[:, 0] + shift, 1)
    right = rng.binomial(counts, chances)
    approximate = wording_exchangeability(right, counts, exact_limit=0).p_value
    if math.lcm(*asked) > 10_000:
        shares = right / counts
        drawn = shares[np.arange(60), rng.integers(0, 4, (100_000, 60))].sum(axis=1)
        wanted, relative = float((drawn >= shares[:, 0].sum() - 1e-9).mean()), 0.1
    else:
        exact = wording_exchangeability(right, counts)
        assert "exact convolution" in exact.method
        wanted, relative = exact.p_value, 0.02
    assert approximate == pytest.approx(wanted, rel=relative)


def test_the_best_and_the_worst_place_of_every_item_are_exact_in_either_way() -> None:
    best = layout([[3, 0, 0], [2, 1, 2]], [[3, 3, 3], [3, 3, 3]])
    assert wording_exchangeability(best.right, best.asked).p_value == pytest.approx(2 / 9)
    assert wording_exchangeability(best.right, best.asked, exact_limit=0).p_value == pytest.approx(2 / 9)
    worst = layout([[0, 1, 3]] * 4, [[3, 3, 3]] * 4)
    assert wording_exchangeability(worst.right, worst.asked).p_value == 1.0
    assert wording_exchangeability(worst.right, worst.asked, exact_limit=0).p_value == 1.0


def test_without_an_informative_item_nothing_is_shown() -> None:
    found = weigh(layout([[5, 5], [0, 0], [2, 2]], [[5, 5], [5, 5], [4, 4]]))
    assert (found.exact.p_value, found.p_value) == (1.0, 1.0)
    nothing = weigh(layout([], []))
    assert (nothing.n, nothing.p_value, nothing.inflation.value) == (0, 1.0, None)
    assert ranked_replicates(layout([], [])) == ()


def test_answers_are_counted_by_wording_and_error_rows_by_none() -> None:
    right, wrong = Outcome.CORRECT, Outcome.INCORRECT
    rows = [
        WordingAnswer("b", None, right), WordingAnswer("b", "v2", right), WordingAnswer("b", "v1", wrong),
        WordingAnswer("b", "v1", None), WordingAnswer("b", "v1", right), WordingAnswer("b", None, Outcome.INVALID),
        WordingAnswer("a", None, right), WordingAnswer("a", "v9", right),
        WordingAnswer("c", "v1", right), WordingAnswer("c", None, None), WordingAnswer("d", None, right),
    ]  # fmt: skip
    found = collect_replicates(rows, ["e"])
    assert found.item_ids == ("a", "b")
    assert found.right.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert found.asked.tolist() == [[1, 1, 0], [2, 2, 1]]
    assert found.excluded == (
        Exclusion("c", "no answer to the canonical wording"),
        Exclusion("d", "no answer to a rewording"),
        Exclusion("e", "no answer to the canonical wording"),
    )


def test_nothing_to_collect_is_an_empty_sample() -> None:
    assert collect_replicates([]).n == 0


@pytest.mark.parametrize(
    ("right", "asked", "message"),
    [
        ([[2, 0]], [[1, 1]], "right <= asked"),
        ([[0, 0]], [[0, 1]], "canonical wording"),
        ([[0, 0]], [[1, 0]], "a rewording"),
        ([[1, 1]], [[1, 1, 1]], "shape"),
    ],
)
def test_impossible_counts_are_refused(right: list[list[int]], asked: list[list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        layout(right, asked)
    with pytest.raises(ValueError, match="repeat"):
        ReplicatedAnswers(("a", "a"), np.ones((2, 2), dtype=np.int64), np.ones((2, 2), dtype=np.int64))


def test_replicates_rank_the_leaked_items_first_and_flag_none() -> None:
    rng = np.random.default_rng(11)
    leaked = np.arange(300) < 40
    chances = np.repeat(np.where(rng.random(300) < 0.7, 0.95, 0.15)[:, None], 4, axis=1)
    chances[leaked] = [0.97, 0.15, 0.15, 0.15]
    asked = np.full((300, 4), 5)
    answers = ReplicatedAnswers(tuple(f"i{k:03d}" for k in range(300)), rng.binomial(asked, chances), asked)
    top = {item.item_id for item in ranked_replicates(answers)[:40]}
    assert len(top & {f"i{k:03d}" for k in range(40)}) >= 38
    assert not any(item.flagged for item in ranked_replicates(answers))


def _by_wording(rng: np.random.Generator, n: int) -> ReplicatedAnswers:
    """A clean model to which wordings differ: each wording of an item has a chance of its own, asked eight times."""
    chances = rng.beta(0.5, 0.5, size=(n, 4))
    asked = np.full((n, 4), 8)
    return ReplicatedAnswers(tuple(str(i) for i in range(n)), rng.binomial(asked, chances), asked)


def test_wordings_that_differ_do_not_raise_the_size_as_pooling_the_replicates_would() -> None:
    rng, replications = np.random.default_rng(4), 400
    rejected = pooled = inside = 0
    for _ in range(replications):
        answers = _by_wording(rng, 200)
        single = Clusters.single(answers.n)
        exact = wording_exchangeability(answers.right, answers.asked)
        rejected += max(exact.p_value, clustered_test(answers.differences, single)) <= 0.05
        found = clustered_score_inflation(answers.differences, answers.canonical_share, single, 0.95)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 0.0 <= found.high
        # As if each replicate were a wording: a two-sample test of all answers.
        right, asked = answers.right, answers.asked
        share = right.sum() / asked.sum()
        error = math.sqrt(share * (1 - share) * (1 / asked[:, 0].sum() + 1 / asked[:, 1:].sum()))
        z = (right[:, 0].sum() / asked[:, 0].sum() - right[:, 1:].sum() / asked[:, 1:].sum()) / error
        pooled += stats.norm.sf(z) <= 0.05
    assert stats.binomtest(rejected, replications, 0.05, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(inside, replications, 0.93, alternative="less").pvalue > 1e-3
    assert pooled > 3 * rejected


def test_a_large_audit_is_answered_without_enumerating_it() -> None:
    answers = _by_wording(np.random.default_rng(5), 20_000)
    assert "saddlepoint" in wording_exchangeability(answers.right, answers.asked).method


def test_single_answers_with_differing_numbers_of_variants_become_replicates_of_one() -> None:
    both = replicated(paired([1, 0], [1, 2], [1, 3]))
    assert both.right.tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]
    assert both.asked.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def _nested(rng: np.random.Generator, n: int, replicates: int) -> ReplicatedAnswers:
    """Chances that differ between items by 0.25² and between an item's wordings by 0.1²."""
    items = 0.5 + 0.25 * rng.choice([-1, 1], size=(n, 1))
    chances = items + 0.1 * rng.choice([-1, 1], size=(n, 4))
    asked = np.full((n, 4), replicates)
    return ReplicatedAnswers(tuple(f"{i:05d}" for i in range(n)), rng.binomial(asked, chances), asked)


@pytest.mark.parametrize("replicates", [2, 5])
def test_the_components_of_the_variance_are_those_that_were_put_in(replicates: int) -> None:
    found = variance_components(_nested(np.random.default_rng(8), 4_000, replicates))
    assert found.items == pytest.approx(0.0625, abs=0.004)
    assert found.wordings == pytest.approx(0.01, abs=0.003)
    assert found.answers == pytest.approx(0.5 * (1 - 0.5) - 0.0625 - 0.01, abs=0.004)


def test_the_standard_error_that_one_answer_each_would_have_is_near_what_it_has() -> None:
    rng = np.random.default_rng(9)
    chances = np.clip(rng.beta(1, 1, size=(4_000, 1)) + np.zeros((1, 4)), 0, 1)
    ids = tuple(f"{i:05d}" for i in range(4_000))

    def figures(replicates: int) -> Replicates:
        asked = np.full((4_000, 4), replicates)
        answers = ReplicatedAnswers(ids, rng.binomial(asked, chances), asked)
        return replicate_figures(answers, (), level=0.95)

    several, more = figures(4), figures(16)
    once = measured_replicates(
        ReplicatedAnswers(ids, rng.binomial(1, chances), np.ones((4_000, 4), dtype=np.int64)), level=0.95, alpha=0.05
    )
    assert once.inflation.high is not None
    assert once.inflation.low is not None
    real = (once.inflation.high - once.inflation.low) / 2 / 1.96
    assert several.standard_error_once_points == pytest.approx(real, rel=0.05)
    assert several.standard_error_points is not None
    assert more.standard_error_points == pytest.approx(several.standard_error_points / 2, rel=0.05)


def test_the_lottery_is_between_the_first_answer_and_a_majority_of_the_others() -> None:
    def rows(item: str, *right: bool | None) -> list[WordingAnswer]:
        outcomes = {True: Outcome.CORRECT, False: Outcome.INCORRECT, None: None}
        return [WordingAnswer(item, None, outcomes[one], number) for number, one in enumerate(right)]

    asked = [
        *rows("rescued", False, True, True, True), *rows("lost", True, False, False, False),
        *rows("won", True, True, True, False), *rows("tied", False, True, False, None),
        WordingAnswer("rescued", "v", Outcome.INCORRECT, 0),
    ]  # fmt: skip
    found = canonical_lottery(reversed(asked), level=0.95)
    assert found is not None
    assert (found.n, found.k, found.rescued, found.lost) == (3, 3, 1, 1), "an item without all answers takes no part"
    assert canonical_lottery(rows("a", True, False), level=0.95) is None
    assert canonical_lottery([], level=0.95) is None


def test_many_clean_audits_with_replicates_are_hardly_ever_contaminated_and_leaked_ones_are() -> None:
    of = suite()
    rng = np.random.default_rng(10)
    found = {0.0: 0, 0.3: 0}
    for leaked in found:
        for _ in range(30):
            chances = np.repeat(rng.beta(1, 1, 400)[:, None], 4, axis=1)
            chances[rng.random(400) < leaked, 0] = 0.98
            asked = np.full((400, 4), 5)
            right = rng.binomial(asked, chances)
            repeated = ReplicatedAnswers(tuple(f"{i:04d}" for i in range(400)), right, asked)
            first = paired((right[:, 0] > 2).tolist(), (right[:, 1:] > 2).sum(axis=1).tolist(), [3] * 400)
            weighed = perturbation_evidence(first, of.scoring, of.governance, None, repeated=repeated)
            found[leaked] += weighed.verdict is Verdict.CONTAMINATED
    assert found[0.0] == 0
    assert found[0.3] == 30
