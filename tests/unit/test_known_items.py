"""Items that model after model knows in one wording: the exact test, held to its definition and to simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from proctor.evidence.known_items import MIN_MODELS, ModelAnswers, item_table
from proctor.evidence.multiplicity import benjamini_hochberg


def answers(canonical: list[list[int]], right: list[list[int]], total: list[list[int]]) -> ModelAnswers:
    return ModelAnswers(*(np.array(column, dtype=np.int64) for column in (canonical, right, total)))


def by_definition(canonical: list[int], right: list[int], total: list[int]) -> float:
    """p of one item by going through every way in which the right answers may lie among the wordings."""
    chances = []
    for c, k, v in zip(canonical, right, total, strict=True):
        lain = list(itertools.combinations(range(v + 1), c + k))
        chances.append(sum(0 in one for one in lain) / len(lain))
    tail = 0.0
    for hits in itertools.product((0, 1), repeat=len(chances)):
        if sum(hits) >= sum(canonical):
            tail += math.prod(p if hit else 1 - p for hit, p in zip(hits, chances, strict=True))
    return tail


def test_p_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    total = rng.integers(1, 5, size=(6, 40))
    right = rng.binomial(total, 0.5)
    canonical = rng.integers(0, 2, size=(6, 40))
    table = item_table(ModelAnswers(canonical, right, total))
    for item in range(40):
        columns = (canonical[:, item].tolist(), right[:, item].tolist(), total[:, item].tolist())
        assert table.p[item] == pytest.approx(by_definition(*columns))


def test_five_models_that_know_the_published_wording_alone_have_a_quarter_to_the_fifth() -> None:
    table = item_table(answers([[1]] * 5, [[0]] * 5, [[3]] * 5))
    assert table.p[0] == pytest.approx(0.25**5)
    assert (table.models[0], table.canonical[0], table.right[0], table.total[0]) == (5, 5, 0, 15)
    assert table.score[0] == 1.0
    assert table.known.tolist() == [True]


def test_nothing_is_claimed_of_an_item_that_few_models_were_asked() -> None:
    asked = [[3]] * (MIN_MODELS - 1) + [[0]] * 3
    table = item_table(answers([[1]] * 7, [[0]] * 7, asked))
    assert table.models[0] == MIN_MODELS - 1
    assert np.isnan(table.p[0])
    assert table.known.tolist() == [False]


def test_items_that_every_model_can_do_or_cannot_are_no_part_of_the_family() -> None:
    # Every wording right, or none: no outcome but one was possible.
    table = item_table(answers([[1, 0, 1]] * 6, [[3, 0, 0]] * 6, [[3, 3, 3]] * 6))
    assert table.family == 1
    assert table.known.tolist() == [False, False, True]
    assert table.q[2] == pytest.approx(0.25**6)


def test_of_a_benchmark_that_nobody_knows_by_heart_it_is_rare_that_any_item_is_called_known() -> None:
    rng, called, rounds = np.random.default_rng(2), 0, 400
    for _ in range(rounds):
        hard, able = rng.random(60), rng.random((8, 1))
        chance = np.clip(able * 0.6 + hard * 0.6 - 0.1, 0.02, 0.98)
        drawn = ModelAnswers(rng.binomial(1, chance), rng.binomial(3, chance), np.full(chance.shape, 3))
        called += bool(item_table(drawn).known.any())
    assert stats.binomtest(called, rounds, 0.05, alternative="greater").pvalue > 0.001


def test_items_that_were_planted_in_most_models_are_found() -> None:
    rng = np.random.default_rng(3)
    chance = np.full((12, 200), 0.5)
    published = chance.copy()
    published[:, :20] = 0.99
    reworded = chance.copy()
    reworded[:, :20] = 0.25
    table = item_table(ModelAnswers(rng.binomial(1, published), rng.binomial(3, reworded), np.full((12, 200), 3)))
    assert table.known[:20].sum() >= 16
    assert table.known[20:].sum() <= 2


def test_a_benchmark_without_models_is_an_empty_table() -> None:
    none = np.zeros((0, 0), dtype=np.int64)
    table = item_table(ModelAnswers(none, none, none))
    assert (table.p.size, table.family) == (0, 0)


def test_corrected_values_are_those_of_benjamini_and_hochberg() -> None:
    p = np.random.default_rng(4).random(50) ** 3
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))
    assert benjamini_hochberg(np.array([])).size == 0
