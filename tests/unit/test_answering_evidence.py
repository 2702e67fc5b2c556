"""Which rewordings solvers hold: the exact test against all rearrangements, its size, its power, and who is heard."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.domain.answering import fewest_samples, smallest_p
from proctor.evidence.answering.holding import Finding, Held, SolverPair, enough, findings, skill, usual_answer
from proctor.evidence.answering.power import found_share
from proctor.evidence.answering.sameness import Counts, TwoWordings, same_answers
from proctor.evidence.discrete_fdr import discoveries

answer_lists = st.lists(st.sampled_from(["18", "24", "7", None]), min_size=1, max_size=5)


def distance(item: list[str | None], rewording: list[str | None]) -> Fraction:
    first, second = Counter(item), Counter(rewording)
    return sum(
        (abs(Fraction(first[one], len(item)) - Fraction(second[one], len(rewording))) for one in {*item, *rewording}),
        Fraction(0),
    )


def rearrangements(item: list[str | None], rewording: list[str | None]) -> list[Fraction]:
    """The distance of every way to choose which of the answers were given to the item's own wording."""
    both = [*item, *rewording]
    return [
        distance([both[place] for place in chosen], [both[place] for place in range(len(both)) if place not in chosen])
        for chosen in combinations(range(len(both)), len(item))
    ]


@given(answer_lists, answer_lists)
def test_p_is_the_share_of_rearrangements_that_differ_at_least_as_much(
    item: list[str | None], rewording: list[str | None]
) -> None:
    found = same_answers([TwoWordings(Counter(item), Counter(rewording))])
    distances = rearrangements(item, rewording)
    observed = distance(item, rewording)
    assert found.value == pytest.approx(sum(one >= observed for one in distances) / len(distances))
    assert found.attainable == pytest.approx(
        [sum(one >= least for one in distances) / len(distances) for least in sorted(set(distances), reverse=True)]
    )


@given(st.lists(st.tuples(answer_lists, answer_lists), min_size=2, max_size=2))
def test_of_several_solvers_each_has_its_own_rearrangements(
    said: list[tuple[list[str | None], list[str | None]]],
) -> None:
    found = same_answers([TwoWordings(Counter(item), Counter(rewording)) for item, rewording in said])
    first, second = (rearrangements(*one) for one in said)
    observed = sum((distance(*one) for one in said), Fraction(0))
    assert found.value == pytest.approx(
        sum(a + b >= observed for a in first for b in second) / (len(first) * len(second))
    )


@given(st.integers(0, 8), st.integers(0, 8))
def test_with_two_answers_it_is_fisher_s_exact_test(item: int, rewording: int) -> None:
    answers = TwoWordings({"a": item, "b": 8 - item}, {"a": rewording, "b": 8 - rewording})
    table = [[item, 8 - item], [rewording, 8 - rewording]]
    assert same_answers([answers]).value == pytest.approx(stats.fisher_exact(table).pvalue)


@given(st.lists(st.tuples(answer_lists, answer_lists), min_size=1, max_size=3))
def test_neither_the_names_of_answers_nor_their_order_changes_a_p(
    said: list[tuple[list[str | None], list[str | None]]],
) -> None:
    renamed = {"18": "x", "24": None, "7": "18", None: "y"}
    before = same_answers([TwoWordings(Counter(item), Counter(rewording)) for item, rewording in said])
    after = same_answers(
        [
            TwoWordings(Counter([renamed[one] for one in rewording]), Counter([renamed[one] for one in reversed(item)]))
            for item, rewording in reversed(said)
        ]
    )
    assert after == before


@pytest.mark.parametrize("solvers", [1, 2, 3])
@pytest.mark.parametrize("samples", [2, 4, 5, 8])
def test_no_answers_give_a_smaller_p_than_the_smallest(samples: int, solvers: int) -> None:
    apart = same_answers([TwoWordings({"18": samples}, {"24": samples})] * solvers)
    assert apart.value == pytest.approx(smallest_p(samples, solvers))
    assert apart.attainable[0] == apart.value


def test_the_fewest_samples_are_those_of_the_smallest_p() -> None:
    assert [fewest_samples(0.05, solvers) for solvers in (1, 2, 5)] == [4, 3, 2]
    assert fewest_samples(0.01, 1) == 5
    assert fewest_samples(1e-300, 1) is None


def counted(numbers: np.ndarray[Any, Any]) -> Counts:
    return dict(zip("abc", map(int, numbers), strict=True))


def test_p_is_no_smaller_than_it_should_be_where_both_wordings_are_answered_alike() -> None:
    rng, chances, p_values = np.random.default_rng(3), [0.5, 0.3, 0.2], []
    for _ in range(4_000):
        item, rewording = (counted(rng.multinomial(6, chances)) for _ in range(2))
        p_values.append(same_answers([TwoWordings(item, rewording)]).value)
    for level in (0.01, 0.05, 0.2):
        rejected = sum(p <= level for p in p_values)
        assert stats.binomtest(rejected, len(p_values), level, alternative="greater").pvalue > 1e-3


def pair(item: Counts, rewording: Counts, *, right: str = "18") -> SolverPair:
    return SolverPair(TwoWordings(item, rewording), usual_answer(item) == right)


def test_a_solver_that_answers_one_thing_and_then_another_holds_the_rewording() -> None:
    (held,) = findings([[pair({"18": 5}, {"24": 5})]], 0.05)
    assert held.finding is Finding.DISAGREE
    assert held.p == pytest.approx(2 / 252)


@pytest.mark.parametrize(
    ("why", "answers"),
    [
        ("the same answer", pair({"18": 5}, {"18": 5})),
        ("nearly the same answers", pair({"18": 5}, {"18": 4, "24": 1})),
        ("a harder wording", pair({"18": 5}, {"1": 1, "2": 1, "3": 1, "4": 1, "5": 1})),
        ("a wording that it cannot answer", pair({"18": 5}, {None: 5})),
    ],
)
def test_what_no_other_answer_is_given_to_is_not_held(why: str, answers: SolverPair) -> None:
    assert findings([[answers]], 0.05)[0].finding is Finding.AGREE, why


@pytest.mark.parametrize(
    ("why", "answers"),
    [
        ("it cannot answer at all", pair({None: 5}, {None: 5})),
        ("it answers only the rewording", pair({None: 5}, {"24": 5})),
        ("it guesses", pair({"1": 2, "2": 3}, {"3": 3, "4": 2})),
        ("it is wrong in either wording", pair({"1": 5}, {"2": 5})),
    ],
)
def test_a_solver_that_does_not_know_the_item_holds_nothing(why: str, answers: SolverPair) -> None:
    assert findings([[answers]], 0.05)[0].finding is Finding.NO_SOLVER_KNOWS, why


def test_solvers_that_agree_outweigh_as_many_that_do_not() -> None:
    same, other = pair({"18": 5}, {"18": 5}), pair({"18": 5}, {"24": 5})
    assert findings([[same, other]], 0.05)[0].finding is Finding.AGREE
    assert findings([[same, other, other]], 0.05)[0].finding is Finding.DISAGREE


def test_a_rewording_without_answers_is_not_checked_and_no_part_of_the_family() -> None:
    bad = [pair({"18": 5}, {"24": 5})]
    assert findings([[], bad, []], 0.05) == [
        Held(Finding.NOT_CHECKED, None),
        *findings([bad], 0.05),
        Held(Finding.NOT_CHECKED, None),
    ]


@given(
    st.lists(
        st.builds(pair, st.builds(Counter, answer_lists), st.builds(Counter, answer_lists)), min_size=1, max_size=6
    )
)
def test_nothing_is_held_of_which_the_usual_answers_are_not_two_different_ones(solvers: list[SolverPair]) -> None:
    for solver in solvers:
        (held,) = findings([[solver]], 0.5)
        if held.finding is Finding.DISAGREE:
            first, second = usual_answer(solver.answers.item), usual_answer(solver.answers.rewording)
            assert None not in (first, second)
            assert first != second


def test_where_all_rewordings_are_good_few_audits_have_a_discovery() -> None:
    """An item's own answers are shared by the tests of its rewordings, which the theory of the rate leaves out."""
    rng, with_a_discovery, audits = np.random.default_rng(8), 0, 200
    for number in range(audits):
        chances = [(0.3, 0.3, 0.4), (0.6, 0.2, 0.2), (0.9, 0.05, 0.05)][number % 3]
        tests = []
        for _ in range(40):
            item, *rewordings = (counted(rng.multinomial(5, chances)) for _ in range(4))
            tests += [same_answers([TwoWordings(item, rewording)]) for rewording in rewordings]
        with_a_discovery += any(discoveries(tests, 0.05))
    assert stats.binomtest(with_a_discovery, audits, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(
    ("samples", "solvers", "accuracy", "least"),
    [(4, 1, 0.97, 0.9), (5, 1, 0.9, 0.9), (8, 1, 0.7, 0.5), (3, 2, 0.9, 0.9), (5, 2, 0.7, 0.8)],
)
def test_a_solver_that_can_do_the_benchmark_finds_most_of_what_is_another_question(
    samples: int, solvers: int, accuracy: float, least: float
) -> None:
    """The figures of docs/perturbation.md."""
    found = found_share(
        samples=samples, solvers=solvers, items=500, variants=3, accuracy=accuracy, bad=0.02, alpha=0.05,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert found.bad >= least
    assert found.good <= 0.002


def test_a_solver_that_answers_at_random_finds_nothing() -> None:
    found = found_share(
        samples=8, solvers=1, items=200, variants=3, accuracy=0.05, bad=0.2, alpha=0.05, rng=np.random.default_rng(1)
    )
    assert (found.bad, found.good) == (0.0, 0.0)


def test_the_same_seed_gives_the_same_shares() -> None:
    first, second = (
        found_share(
            samples=5, solvers=2, items=50, variants=2, accuracy=0.8, bad=0.1, alpha=0.05, rng=np.random.default_rng(7)
        )
        for _ in range(2)
    )
    assert first == second


def test_a_usual_answer_is_that_of_more_than_half_and_can_be_read() -> None:
    assert usual_answer({"18": 3, "24": 2}) == "18"
    assert usual_answer({"18": 2, "24": 2}) is None
    assert usual_answer({None: 3, "24": 2}) is None
    assert usual_answer({}) is None


def test_more_than_half_of_the_samples_are_enough() -> None:
    assert enough({"18": 2, None: 1}, 5)
    assert not enough({"18": 2}, 5)
    assert not enough({"18": 2}, 4)


def test_skill_is_what_is_known_beyond_guessing() -> None:
    assert skill(75, 100, 0.5) == pytest.approx(0.5)
    assert skill(25, 100, 0.25) == pytest.approx(0.0)
    assert skill(10, 10, 0.0) == 1.0
    assert skill(0, 0, 0.25) is None
