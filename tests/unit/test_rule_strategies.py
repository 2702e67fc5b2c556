"""What holds of every strategy that rewords by rule: it keeps what it declares, and no text makes it raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.strategies.base import EVERYTHING
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.delete import Delete
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.registry import rule_strategies
from tests.unit.strategy_checks import HOSTILE, check_declared, gsm8k, stories

RULE_STRATEGIES = rule_strategies()
ALL = [*(build() for build in RULE_STRATEGIES.values()), Delete()]
NAMES = [strategy.name for strategy in ALL]
#: Under seed 1; a change of any of these is a change of version.
PINNED = {
    "distractor": (
        "Anna bought 3 cars for $20. Teresa has a sister who studies astronomy. Laura reads stories. How many books "
        "does Anna have?"
    ),
    "entity_rename": "Judy bought 3 cars for $20. Ann reads stories. How many books does Judy have?",
    "format": "ANNA BOUGHT 3 CARS FOR $20. LAURA READS STORIES. HOW MANY BOOKS DOES ANNA HAVE?",
    "lexical": "Anna purchased 3 automobiles for $20. Laura reads stories. How many books does Anna have?",
    "number_words": "Anna bought three cars for $20. Laura reads stories. How many books does Anna have?",
    "syntactic": "Anna bought 3 cars for $20. Laura reads stories. Determine how many books Anna has.",
    "typo": "Anna bought 3 cars for $20. Laura reads storeis. How many books does Anna have?",
    "delete": "Laura reads stories. How many books does Anna have?",
}
every_strategy = pytest.mark.parametrize("strategy", ALL, ids=NAMES)


@every_strategy
@given(item=stories(), seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_what_a_strategy_declares_is_kept_in_made_up_stories(strategy: Any, item: Item, seed: int) -> None:
    check_declared(strategy, item, seed=seed)


@every_strategy
@given(question=st.text(min_size=1, max_size=60))
@settings(max_examples=60)
@example(question="\ufdfa 3 \u00bd \u0130I\u0307 Tom\u2019s")
def test_any_text_gives_candidates_or_a_reason(strategy: Any, question: str) -> None:
    check_declared(strategy, Item(item_id="i", question=question, target="t"))


@every_strategy
@pytest.mark.parametrize("question", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_gives_candidates_or_a_reason(strategy: Any, question: str) -> None:
    check_declared(strategy, Item(item_id="i", question=question, target="t"), limit=2)


@every_strategy
def test_text_that_is_too_long_or_no_text_is_not_touched(strategy: Any) -> None:
    gigantic = Item(item_id="i", question="Tom bought 3 apples at the store. " * 7000, target="t")
    halved = Item.model_construct(item_id="i", question="Tom bought 3 apples \ud800.", choices=(), target="t")
    for item, reason in ((gigantic, "too_long"), (halved, "not_text")):
        assert strategy.rewrites(item, seed=0, limit=4) == []
        assert strategy.nothing_for(item)[0] == reason


@every_strategy
def test_what_a_strategy_declares_is_kept_in_gsm8k(strategy: Any) -> None:
    made = sum(check_declared(strategy, item, limit=2) for item, _ in gsm8k()[::6])
    assert made > 100


@every_strategy
def test_more_alternatives_begin_with_the_fewer(strategy: Any) -> None:
    question = (
        "Anna bought 3 cars and twelve books at the store for $20. Laura reads stories. The cars are red. The shelf "
        "is old. How many books does Anna have if she sells 5?"
    )
    item = Item(item_id="i", question=question, target="t")
    few, many = (Chain([strategy]).candidates(item, seed=3, limit=limit) for limit in (2, 9))
    assert many[:2] == few
    assert many != Chain([strategy]).candidates(item, seed=4, limit=9)


@given(item=stories(), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_strategies_chain_in_any_order(item: Item, seed: int) -> None:
    for name in ("entity_rename+lexical+typo", "syntactic+number_words+format", "format+distractor+option_shuffle"):
        chain = make_chain(name, {**RULE_STRATEGIES, "option_shuffle": OptionShuffle})
        assert chain.level == 3
        for one in chain.candidates(item, seed=seed, limit=3):
            assert set(one.provenance) <= set(name.split("+"))
            assert sorted(one.choices) == sorted(item.choices)


def test_a_chain_preserves_what_all_of_its_strategies_do() -> None:
    assert make_chain("lexical+syntactic", RULE_STRATEGIES).preserves == EVERYTHING
    assert Chain([RULE_STRATEGIES["lexical"](), Delete()]).preserves == {"options", "target"}


def test_a_suite_names_each_strategy_by_its_name() -> None:
    assert {name: build().name for name, build in RULE_STRATEGIES.items()} == {name: name for name in RULE_STRATEGIES}


def test_draws_are_uniform_and_go_on_past_their_first_block() -> None:
    draws = Draws("test", 1)
    drawn = [draws.below(10) for _ in range(5000)]
    assert all(420 < drawn.count(value) < 580 for value in range(10))
    again = Draws("test", 1)
    assert drawn == [again.below(10) for _ in range(5000)]
    assert drawn[:9] != [Draws("test", 2).below(10) for _ in range(9)]


def test_the_same_seed_gives_the_same_bytes_everywhere() -> None:
    question = "Anna bought 3 cars for $20. Laura reads stories. How many books does Anna have?"
    item = Item(item_id="i", question=question, target="t")
    made = {one.name: Chain([one]).candidates(item, seed=1, limit=1)[0].question for one in ALL}
    assert made == PINNED
