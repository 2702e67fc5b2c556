"""The ranking of items, and the flags that the whole sample backs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.ranking import ranked_items, suspicion
from tests.unit.samples import paired, samples


def planted(rng: np.random.Generator, *, reworded: float) -> tuple[PairedAnswers, set[str]]:
    """600 items: 75 % known with 1.5 % noise, 15 % leaked, 10 % guessed at 1 in 10; three variants."""
    kind = rng.permutation(np.repeat([0, 1, 2], [450, 90, 60]))
    canonical = rng.random(600) < np.choose(kind, [0.985, 0.99, 0.1])
    answers = paired(canonical.tolist(), rng.binomial(3, np.choose(kind, [0.985, reworded, 0.1])).tolist(), [3] * 600)
    return answers, {item for item, k in zip(answers.item_ids, kind.tolist(), strict=True) if k == 1}


@pytest.mark.parametrize(("reworded", "at_least"), [(0.1, 0.91), (0.15, 0.90), (0.2, 0.87)])
def test_the_most_suspected_items_are_the_leaked_ones(reworded: float, at_least: float) -> None:
    rng = np.random.default_rng(17)
    precisions = []
    for _ in range(40):
        answers, leaked = planted(rng, reworded=reworded)
        top = ranked_items(answers, flagged_at_least=0.0)[: len(leaked)]
        precisions.append(sum(item.item_id in leaked for item in top) / len(leaked))
    assert np.mean(precisions) >= at_least


def test_suspicion_adds_up_to_about_the_number_of_leaked_items() -> None:
    rng = np.random.default_rng(4)
    sums = [suspicion(planted(rng, reworded=0.15)[0]).sum() for _ in range(20)]
    assert np.mean(sums) == pytest.approx(90, rel=0.08)


def test_a_clean_models_lucky_guesses_are_little_suspected() -> None:
    rng = np.random.default_rng(8)
    kind = rng.random(600) < 0.75
    chances = np.where(kind, 0.985, 0.1)
    answers = paired((rng.random(600) < chances).tolist(), rng.binomial(3, chances).tolist(), [3] * 600)
    assert suspicion(answers).max() < 0.5


def test_the_difference_ranks_where_all_else_is_equal_and_ids_settle_the_rest() -> None:
    answers = paired([1, 1, 1, 1, 0], [3, 0, 2, 0, 0], [3, 3, 3, 3, 3])
    found = [item.item_id for item in ranked_items(answers, flagged_at_least=0.0)]
    assert found == ["item-00001", "item-00003", "item-00002", "item-00000", "item-00004"]


def test_flags_are_the_first_of_the_ranking_and_only_suspected_ones() -> None:
    answers, _ = planted(np.random.default_rng(2), reworded=0.15)
    found = ranked_items(answers, flagged_at_least=0.1234)
    assert [item.flagged for item in found] == [True] * 74 + [False] * 526
    assert not any(item.flagged for item in ranked_items(answers, flagged_at_least=0.0))
    assert not any(item.flagged for item in ranked_items(answers, flagged_at_least=-0.2))
    unsuspected = paired([1] * 10, [3] * 10, [3] * 10)
    assert not any(item.flagged for item in ranked_items(unsuspected, flagged_at_least=0.9))


@given(samples())
def test_ranks_count_the_suspected_items_alone_and_a_flag_needs_one(answers: PairedAnswers) -> None:
    found = ranked_items(answers, flagged_at_least=0.4)
    suspected = [item for item in found if item.suspicion > 0]
    assert [item.rank for item in found] == [*range(1, len(suspected) + 1), *[None] * (len(found) - len(suspected))]
    assert all(item.rank is not None for item in found if item.flagged)
    broken = {i for i, d in zip(answers.item_ids, answers.differences.tolist(), strict=True) if d > 0}
    assert {item.item_id for item in suspected} <= broken


def test_zero_suspicion_is_that_of_items_answered_no_better_in_their_canonical_wording() -> None:
    """Right in the canonical wording and not in all others, against every other pattern: only the first has a rank."""
    answers = paired([1, 1, 1, 0, 0], [2, 0, 3, 0, 3], [3] * 5)
    ranks = {item.item_id: item.rank for item in ranked_items(answers, flagged_at_least=0.0)}
    assert [ranks[f"item-0000{i}"] is not None for i in range(5)] == [True, True, False, False, False]


@given(samples())
def test_suspicion_is_a_chance_and_only_of_items_that_rewording_broke(answers: PairedAnswers) -> None:
    scores = suspicion(answers)
    assert scores.shape == (answers.n,)
    assert np.all((scores >= 0) & (scores <= 1))
    assert np.all(scores[~answers.canonical | (answers.right == answers.total)] == 0)
    ranked = [item.suspicion for item in ranked_items(answers, flagged_at_least=0.0)]
    assert ranked == sorted(ranked, reverse=True)


@given(samples(min_items=1))
def test_the_order_in_which_items_are_given_changes_nothing(answers: PairedAnswers) -> None:
    order = np.random.default_rng(3).permutation(answers.n)
    shuffled = PairedAnswers(
        tuple(answers.item_ids[i] for i in order), answers.canonical[order], answers.right[order], answers.total[order]
    )
    assert ranked_items(shuffled, flagged_at_least=0.3) == ranked_items(answers, flagged_at_least=0.3)


def test_a_hundred_variants_do_not_underflow() -> None:
    answers = paired([1, 1, 0, 1], [0, 100, 0, 1000], [100, 100, 100, 1001])
    assert np.isfinite(suspicion(answers)).all()
    assert suspicion(answers)[0] > 0.5
