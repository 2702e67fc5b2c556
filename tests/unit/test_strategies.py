"""Strategies: what they keep, what they vary, and that a seed decides it all."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.formats.rewordings import match_rewordings, parse_rewordings
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.compose import Chain, make_chain
from proctor.perturbation.strategies.imported import Imported
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from proctor.perturbation.strategies.registry import rule_strategies
from proctor.perturbation.strategies.wordings import Wordings, WordingsData, load_wordings

RULE_STRATEGIES = rule_strategies()


def _item(question: str = "What is the capital of Krav?", options: int = 4, **changes: Any) -> Item:
    choices = tuple(f"option {n}" for n in range(options))
    values = {"item_id": "i", "question": question, "choices": choices, "target": choices[0] if choices else "t"}
    return Item(**{**values, "dimension": "capital", "metadata": {"entity": "Krav"}, **changes})


@st.composite
def _multiple_choice(draw: st.DrawFn) -> Item:
    distractors = draw(st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=9))
    target = draw(st.text(min_size=1, max_size=3).filter(lambda text: text not in distractors))
    choices = draw(st.permutations([target, *distractors]))
    return Item(item_id="i", question="q", choices=tuple(choices), target=target)


@given(_multiple_choice(), st.integers(0, 2**32), st.integers(1, 20))
def test_shuffling_keeps_the_options_and_the_target_and_never_repeats_an_order(
    item: Item, seed: int, limit: int
) -> None:
    orders = OptionShuffle().orders(item, seed=seed, limit=limit)
    distinct = math.factorial(len(item.choices))
    for option in set(item.choices):
        distinct //= math.factorial(item.choices.count(option))
    assert len(orders) == min(limit, distinct - 1)
    assert len({item.choices, *orders}) == len(orders) + 1
    for order in orders:
        assert Counter(order) == Counter(item.choices)
        assert order.count(item.target) == 1


@given(_multiple_choice(), st.integers(0, 2**32))
def test_the_same_seed_gives_the_same_orders_and_more_of_them_begin_alike(item: Item, seed: int) -> None:
    shuffle = OptionShuffle()
    assert shuffle.orders(item, seed=seed, limit=3) == shuffle.orders(item, seed=seed, limit=9)[:3]


@pytest.mark.parametrize("size", [3, 6])
def test_orders_are_uniform_over_all_orders_but_the_canonical(size: int) -> None:
    item = _item(options=size)
    draws = 6000 if size == 3 else 30_000
    counts = Counter(OptionShuffle().orders(item, seed=seed, limit=1)[0] for seed in range(draws))
    others = [order for order in permutations(item.choices) if order != item.choices]
    # The seeds are fixed, so this either holds for ever or never did.
    assert chisquare([counts[order] for order in others]).pvalue > 0.001


def test_a_random_canonical_order_is_exchangeable_with_its_variants() -> None:
    options = ("a", "b", "c")
    counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
    for seed in range(600):
        for canonical in permutations(options):
            item = Item(item_id="i", question=f"q{seed}", choices=canonical, target="a")
            counts[(canonical, *OptionShuffle().orders(item, seed=seed, limit=2))] += 1
    # All ordered triples equally often: swapping the canonical order with a variant's changes no probability.
    assert len(counts) == 6 * 5 * 4
    assert chisquare(list(counts.values())).pvalue > 0.001


TEMPLATES = WordingsData(
    "1.0.0",
    "sha256:x",
    {
        "capital": (
            "What is the capital of {entity}?",
            "Name {entity}'s capital.",
            "{entity} {unknown}?",
            "Where is {entity}'s seat?",
        )
    },
)


def test_wordings_are_the_others_that_the_metadata_fills() -> None:
    chain = Chain([Wordings(TEMPLATES)])
    asked = {one.question for one in chain.candidates(_item(), seed=0, limit=16)}
    assert asked == {"Name Krav's capital.", "Where is Krav's seat?"}


def test_braces_in_metadata_are_put_in_as_they_are() -> None:
    item = _item(metadata={"entity": "{unknown} {entity}", "unknown": "boom"})
    asked = {one.question for one in Chain([Wordings(TEMPLATES)]).candidates(item, seed=0, limit=16)}
    assert "Name {unknown} {entity}'s capital." in asked


def test_the_seed_decides_which_wordings_come_first() -> None:
    chain = Chain([Wordings(TEMPLATES)])
    firsts = Counter(chain.candidates(_item(), seed=seed, limit=1)[0].question for seed in range(400))
    assert all(150 < count < 250 for count in firsts.values())
    assert len(firsts) == 2


def test_an_item_that_the_wordings_do_not_cover_says_so() -> None:
    item = _item(dimension="river")
    assert Chain([Wordings(TEMPLATES)]).candidates(item, seed=0, limit=4) == []
    assert Wordings(TEMPLATES).nothing_for(item)[0] == "no_wordings"


def test_a_chain_changes_question_and_options_in_every_candidate() -> None:
    item = _item(options=2)
    candidates = Chain([Wordings(TEMPLATES), OptionShuffle()]).candidates(item, seed=0, limit=16)
    assert len(candidates) == 2
    assert all(one.choices == item.choices[::-1] and one.question != item.question for one in candidates)
    assert {(one.strategy, one.level) for one in candidates} == {("wordings+option_shuffle", 2)}


RULES: dict[str, type[Strategy]] = {**RULE_STRATEGIES, "option_shuffle": OptionShuffle}


def test_a_rule_without_a_place_is_left_out_where_another_rule_has_one() -> None:
    item = Item(item_id="i", question="Anna has 3 coins. How many is that?", target="3")
    assert Chain([RULE_STRATEGIES["lexical"]()]).candidates(item, seed=0, limit=4) == []
    made = make_chain("lexical+number_words", RULES).candidates(item, seed=0, limit=4)
    assert [one.question for one in made] == ["Anna has three coins. How many is that?"]
    assert (made[0].strategy, made[0].level, set(made[0].provenance)) == ("lexical+number_words", 1, {"number_words"})


def test_a_chain_in_which_no_rule_has_a_place_says_what_the_first_lacks() -> None:
    item = Item(item_id="i", question="Why?", target="t")
    chain = make_chain("lexical+number_words", RULES)
    assert chain.candidates(item, seed=0, limit=4) == []
    assert chain.nothing_for(item, seed=0)[0] == "no_synonym"


def test_options_and_ready_wordings_are_never_left_out_of_a_chain() -> None:
    item = Item(item_id="i", question="Anna has 3 coins. How many is that?", target="3")
    chain = make_chain("number_words+option_shuffle", RULES)
    assert chain.candidates(item, seed=0, limit=4) == []
    assert chain.nothing_for(item, seed=0)[0] == "no_options"
    covered = Chain([Wordings(TEMPLATES), OptionShuffle()])
    assert covered.candidates(_item(options=0), seed=0, limit=4) == []
    assert covered.candidates(_item(dimension="river"), seed=0, limit=4) == []
    assert covered.nothing_for(_item(options=0), seed=0)[0] == "no_options"


def test_a_rule_that_is_alone_in_its_chain_must_have_a_place() -> None:
    chain = make_chain("lexical+option_shuffle", RULES)
    item = _item("What is 3 and 4?")
    assert chain.candidates(item, seed=0, limit=4) == []
    assert chain.nothing_for(item, seed=0)[0] == "no_synonym"


def test_only_chains_with_rules_have_other_library_keys_than_before_rules_could_be_left_out() -> None:
    item = _item()
    alone = RULE_STRATEGIES["typo"]().data_digest(item)
    assert make_chain("typo", RULES).data_digests(item) == [alone]
    chained = make_chain("typo+option_shuffle", RULES).data_digests(item)
    assert chained == [f"{alone} where it fits", "option_shuffle/1"]
    wordings = Wordings(TEMPLATES)
    digests = Chain([wordings, OptionShuffle()]).data_digests(item)
    assert digests == [wordings.data_digest(item), "option_shuffle/1"]


def test_imported_rewordings_come_in_file_order_and_may_bring_an_order_of_options() -> None:
    rows = [{"item_id": "i", "question": "b"}, {"item_id": "i", "question": "a", "choices": ["option 1", "option 0"]}]
    item = _item(options=2)
    data = "\n".join(map(json.dumps, rows)).encode()
    chain = Chain([Imported(match_rewordings(parse_rewordings(data, "r"), [item], "b"))])
    one, two = chain.candidates(item, seed=0, limit=9)
    assert (one.question, one.choices) == ("b", item.choices)
    assert (two.question, two.choices) == ("a", item.choices[::-1])
    assert two.provenance == {"imported": {"line": 2}}


def test_a_strategy_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(BadInputError, match=r"'magic' does not exist; there are: option_shuffle"):
        make_chain("magic", {"option_shuffle": OptionShuffle})


def test_a_strategy_named_twice_is_refused() -> None:
    with pytest.raises(BadInputError, match="names 'option_shuffle' twice"):
        make_chain("option_shuffle+option_shuffle", {"option_shuffle": OptionShuffle})


@pytest.mark.parametrize("content", ["[]", "{}", '{"version": 1, "templates": {"a": [5]}}', "x"])
def test_a_damaged_wordings_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "wordings.json").write_text(content)
    with pytest.raises(BadInputError, match=r"wordings\.json is not of the form"):
        load_wordings(tmp_path, "bench")


@pytest.mark.parametrize("benchmark", ["absent", "../bench"])
def test_a_benchmark_without_wordings_of_its_own_is_told_what_to_use(tmp_path: Path, benchmark: str) -> None:
    with pytest.raises(BadInputError, match="use 'option_shuffle', or 'imported'"):
        load_wordings(tmp_path, benchmark)
