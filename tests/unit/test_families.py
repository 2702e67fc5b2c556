from __future__ import annotations

import math

import numpy as np
import pytest

from proctor.evidence.planning.families import FAMILIES, KNOWN, Dependence, Family


@pytest.fixture(params=FAMILIES.values(), ids=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    one: Family = request.param
    return one


def _within(seen: float, expected: float, draws: int) -> bool:
    """Five standard errors of a share: a false alarm once in a million."""
    return abs(seen - expected) < 5 * math.sqrt(0.25 / draws)


def test_a_clean_model_is_as_accurate_in_either_wording(family: Family) -> None:
    drawn = family.draw(np.random.default_rng(1), audits=100, items=1000, variants=4)
    assert _within(drawn.canonical.mean(), family.accuracy, 100_000)
    assert _within(drawn.right.mean() / 4, family.accuracy, 100_000)
    assert not drawn.leaked.any()


def test_inflation_is_what_leaks_and_harder_wordings_add_up_to(family: Family) -> None:
    drawn = family.draw(np.random.default_rng(2), audits=100, items=1000, variants=3, leaked_share=0.1, cost=0.02)
    assert _within(drawn.leaked.mean(), 0.1, 100_000)
    seen = drawn.canonical.mean() - drawn.right.mean() / 3
    assert _within(seen, family.inflation(0.1, cost=0.02), 100_000)


def test_rewordings_that_flip_together_are_all_right_or_all_wrong() -> None:
    drawn = FAMILIES["together"].draw(np.random.default_rng(3), audits=10, items=200, variants=5)
    assert set(np.unique(drawn.right)) == {0, 5}


def test_shared_luck_lies_between_independence_and_flipping_together() -> None:
    def spread(dependence: Dependence) -> float:
        family = Family("x", "x", beta=(1.0, 1.0), dependence=dependence)
        return float(family.draw(np.random.default_rng(4), audits=50, items=1000, variants=4).right.var())

    independent, shared, together = (spread(dependence) for dependence in Dependence)
    assert independent < shared < together


def test_equal_seeds_give_equal_answers(family: Family) -> None:
    first, second = (family.draw(np.random.default_rng(5), audits=3, items=50, variants=3) for _ in range(2))
    assert (first.canonical == second.canonical).all()
    assert (first.right == second.right).all()


def test_no_more_items_leak_than_are_unknown() -> None:
    with pytest.raises(ValueError, match="not between 0 and"):
        FAMILIES["guessers"].draw(np.random.default_rng(6), audits=1, items=1, variants=1, leaked_share=1.01 - KNOWN)


def test_a_rewording_costs_no_more_than_there_is() -> None:
    with pytest.raises(ValueError, match="cannot cost"):
        FAMILIES["beta_1_1"].draw(np.random.default_rng(7), audits=1, items=1, variants=1, cost=0.6)
