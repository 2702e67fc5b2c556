"""What the form of a benchmark's items tells of wording alone: a hint for the plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.benchmark_kind import ItemKind
from proctor.domain.item import Item
from proctor.domain.scope import MEASURED, REACHING_FURTHER
from proctor.formats.items import load_items
from proctor.studies.wording_reach import kind_of, wording_reach
from tests.support import shared_data


def item(question: str, target: str, *choices: str) -> Item:
    return Item(item_id="i", question=question, target=target, choices=choices)


FACT = item("Which city is the seat of the government of Kelmar?", "Orvane")
OPTIONS = item("Which city is the capital of Kelmar?", "Orvane", "Orvane", "Maskel")
COMPUTED = item("Ann has 3 apples and buys 4 more. How many are there?", "3 + 4 = <<3+4=7>>7\n#### 7")
ESSAY = item("Why did the harvest fail?", "Because the rain came late and the seed had rotted in the ground by then.")


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (FACT, ItemKind.SHORT_FACT),
        (item("In which year was Kelmar founded?", "1843"), ItemKind.SHORT_FACT),
        (OPTIONS, ItemKind.OPTIONS),
        (item("Which year was it?", "1843", "1843", "1850"), ItemKind.OPTIONS),
        (COMPUTED, ItemKind.COMPUTED),
        (item("What is twice seven?", "14"), ItemKind.COMPUTED),
        (ESSAY, ItemKind.OTHER),
    ],
)
def test_the_form_of_an_item_tells_its_kind(one: Item, kind: ItemKind) -> None:
    assert kind_of(one) is kind


@given(st.lists(st.sampled_from([FACT, OPTIONS, COMPUTED, ESSAY]), min_size=1, max_size=12))
def test_what_to_require_is_said_where_an_item_looks_like_a_fact_and_only_there(items: list[Item]) -> None:
    found = wording_reach(items)
    assert found.kinds is not None
    assert sum(found.kinds.values()) == len(items)
    assert (REACHING_FURTHER in found.hint) is (FACT in items)
    assert (MEASURED in found.hint) is (FACT in items)


def test_a_few_facts_among_other_items_are_counted_as_such() -> None:
    hint = wording_reach([FACT, *[COMPUTED] * 9]).hint
    assert "1 of the 10 items look like short facts" in hint
    assert "blind to that in these" in hint


def test_without_the_items_the_hint_is_about_every_benchmark() -> None:
    found = wording_reach(None)
    assert found.kinds is None
    assert MEASURED in found.hint
    assert REACHING_FURTHER in found.hint


def test_gsm8k_is_computed_as_its_form_tells() -> None:
    from proctor.domain.suite import DatasetSection

    path = shared_data() / "gsm8k" / "test.jsonl"
    dataset = DatasetSection(benchmark_name="gsm8k", path=str(path))
    kinds = wording_reach(load_items(dataset, path.parent, path.parent).items).kinds
    assert kinds is not None
    assert kinds[ItemKind.COMPUTED] / sum(kinds.values()) > 0.99
