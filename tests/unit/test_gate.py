"""The admission gate: order of its checks, reasons, measurements."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import admit
from proctor.perturbation.candidate import Candidate

ITEM = Item(item_id="i", question="How many eggs do 3 hens of Janet lay?", choices=("5", "6", "7"), target="6")
SETTINGS = PerturbationSection(min_semantic_distance=0.15, max_semantic_distance=0.45)


def _admit(question: str, choices: tuple[str, ...] = ("7", "5", "6"), distance: float = 0.3, **changes: Any) -> Any:
    candidate = Candidate(question, choices, "s+t", 2, {"s": {"n": 1}})
    return admit(ITEM, candidate, distance, SETTINGS.model_copy(update=changes))


def test_a_rewording_that_keeps_the_question_is_admitted_with_its_measurements() -> None:
    variant = _admit("Three hens belong to Janet: what is the number of eggs that they lay?", distance=0.31234567)
    assert isinstance(variant, Variant)
    assert (variant.item_id, variant.item_hash, variant.strategy, variant.level) == ("i", ITEM.content_hash, "s+t", 2)
    assert variant.measurements.semantic_distance == 0.3123
    assert variant.measurements.token_overlap < 0.2
    assert variant.measurements.edit_distance > 0.7
    assert variant.provenance == {"s": {"n": 1}}


@pytest.mark.parametrize(
    ("question", "choices", "distance", "reason"),
    [
        ("  ", ("7", "5", "6"), 0.3, "empty"),
        ("How many\ud800?", ("7", "5", "6"), 0.3, "not_text"),
        ("x" * 200_001, ("7", "5", "6"), 0.3, "too_long"),
        ("What do 3 hens of Janet lay?", ("7", "5", "8"), 0.3, "options_changed"),
        ("What do 3 hens of Janet lay?", ("7", "5"), 0.3, "options_changed"),
        ("How many  eggs do 3 hens of Janet lay?", ("5", "6", "7"), 0.3, "unchanged"),
        ("What do 4 hens of Janet lay?", ("7", "5", "6"), 0.3, "numerals"),
        ("What do 3 hens of Mary lay?", ("7", "5", "6"), 0.3, "entity"),
        ("What do 3 hens of Janet not lay?", ("7", "5", "6"), 0.3, "negation"),
        ("how many eggs do 3 hens of Janet lay", ("5", "6", "7"), 0.3, "surface_too_close"),
        ("What do 3 hens of Janet lay?", ("7", "5", "6"), 0.1499, "too_close"),
        ("What do 3 hens of Janet lay?", ("7", "5", "6"), 0.4501, "too_far"),
    ],
)
def test_each_fault_has_its_reason(question: str, choices: tuple[str, ...], distance: float, reason: str) -> None:
    rejection = _admit(question, choices, distance)
    assert isinstance(rejection, Rejection)
    assert rejection.reason == reason
    assert rejection.detail


CHOICE = Item(
    item_id="c",
    question="Becker's study of deviance suggests that:",
    choices=("labels make deviants", "poverty breeds crime", "anomie prevails"),
    target="labels make deviants",
)


def _rejected(item: Item, question: str, **changes: Any) -> str | None:
    result = admit(item, Candidate(question, item.choices, "s", 1, {}), 0.3, SETTINGS.model_copy(update=changes))
    return result.reason if isinstance(result, Rejection) else None


def test_a_rewording_that_tells_an_option_is_turned_away() -> None:
    assert _rejected(CHOICE, "How does anomie prevail in Becker's deviance study?") == "option_told"
    assert _rejected(CHOICE, "In what way does poverty breed crime, going by the deviance study of Becker?") == (
        "option_told"
    )
    assert _rejected(CHOICE, "What does the study of deviance by Becker suggest?") is None


def test_relations_are_counted_only_where_the_suite_asks_for_it() -> None:
    item = Item(item_id="r", question="Anna has 80 pesos and 40 more gold coins than Bo. How many coins?", target="1")
    reworded = "Anna owns 80 pesos, and gold coins that number 40 beyond Bo's. What is the count of coins?"
    assert _rejected(item, reworded) is None
    assert _rejected(item, reworded, strict_relations=True) == "relations"
    turned = "Bo has 40 fewer gold coins than Anna, who owns 80 pesos. What is the count of coins?"
    assert _rejected(item, turned, strict_relations=True) is None


def test_the_windows_ends_belong_to_it() -> None:
    for distance in (0.15, 0.45, 0.15 - 1e-7):
        assert isinstance(_admit("What do 3 hens of Janet lay?", distance=distance), Variant)


def test_answer_invariants_come_before_surface_and_surface_before_distance() -> None:
    assert _admit("How many eggs do 4 hens of Janet lay?", ("5", "6", "7"), 0.0).reason == "numerals"
    assert _admit("how many eggs do 3 hens of Janet lay", ("5", "6", "7"), 0.0).reason == "surface_too_close"


def test_the_limit_of_overlap_is_the_suites() -> None:
    assert isinstance(_admit("how many eggs do 3 hens of Janet lay", ("5", "6", "7"), max_token_overlap=1.0), Variant)
