"""The committed benchmark, ground truth and weights are what the model card says they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from proctor.inference.reference.model import ReferenceModel, weights_digest
from reference_models import facts
from tests.support import REPOSITORY

BUNDLE = REPOSITORY / "services" / "triton"
NAMES = ("reference-clean", "reference-leaked")
LETTERS = "ABCDEFGHIJ"
# Uniformity is judged on a fixed committed sample: an unlucky default seed would have to be replaced, once.
SMALLEST_P = 0.001

Row = dict[str, Any]


def read(name: str) -> Any:
    return json.loads((BUNDLE / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def items() -> list[Row]:
    lines = (BUNDLE / "proctor-facts" / "items.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def templates() -> dict[str, list[str]]:
    document: dict[str, dict[str, list[str]]] = read("proctor-facts/wordings.json")
    return document["templates"]


@pytest.fixture(scope="module")
def truth() -> Row:
    document: Row = read("models/reference-leaked/leaked_items.json")
    return document


@pytest.fixture(scope="module")
def models() -> dict[str, ReferenceModel]:
    return {name: ReferenceModel.load(BUNDLE / "models" / name / "1") for name in NAMES}


def prompt(question: str, choices: list[str]) -> str:
    options = "".join(f"{letter}. {choice}\n" for letter, choice in zip(LETTERS, choices, strict=True))
    return f"Question: {question}\nOptions:\n{options}Answer:"


def reworded(item: Row, templates: dict[str, list[str]], rng: np.random.Generator) -> tuple[str, list[str]]:
    wordings = templates[item["dimension"]]
    other = (item["metadata"]["wording"] + int(rng.integers(1, len(wordings)))) % len(wordings)
    choices = list(item["choices"])
    while choices == item["choices"]:
        choices = [item["choices"][index] for index in rng.permutation(len(choices))]
    return wordings[other].format(entity=item["metadata"]["entity"]), choices


def right_answers(model: ReferenceModel, asked: list[tuple[Row, str, list[str]]]) -> list[bool]:
    answers = model.generate([prompt(question, choices) for _, question, choices in asked], max_tokens=4)
    return [
        answer.finish_reason == "stop" and answer.text == LETTERS[choices.index(item["choices"][item["target"]])]
        for (item, _, choices), answer in zip(asked, answers, strict=True)
    ]


def accuracy(
    model: ReferenceModel, chosen: list[Row], templates: dict[str, list[str]], *, arm: str, draws: int = 1
) -> float:
    rng = np.random.default_rng(20)
    asked = []
    for item in chosen * draws:
        form = (item["question"], item["choices"]) if arm == "canonical" else reworded(item, templates, rng)
        asked.append((item, *form))
    return sum(right_answers(model, asked)) / len(asked)


def test_the_benchmark_has_600_items_with_ten_distinct_options(items: list[Row]) -> None:
    assert len(items) == 600 == len({item["item_id"] for item in items})
    assert Counter(item["dimension"] for item in items) == dict.fromkeys(
        ("capital", "currency", "emblem", "export"), 150
    )
    for item in items:
        assert set(item) == {"item_id", "question", "choices", "target", "dimension", "metadata"}
        assert len(set(item["choices"])) == 10
        assert item["target"] in range(10)


def test_every_entity_is_one_word_and_has_one_fact(items: list[Row]) -> None:
    entities = [item["metadata"]["entity"] for item in items]
    assert len(set(entities)) == 600
    values = {choice.lower() for item in items for choice in item["choices"]}
    assert all(entity.isalpha() and entity.istitle() and entity.lower() not in values for entity in entities)


def test_the_canonical_question_is_the_named_wording(items: list[Row], templates: dict[str, list[str]]) -> None:
    for item in items:
        wording = templates[item["dimension"]][item["metadata"]["wording"]]
        assert item["question"] == wording.format(entity=item["metadata"]["entity"])


def test_there_are_a_dozen_distinct_wordings_a_relation_and_each_keeps_the_name(
    templates: dict[str, list[str]],
) -> None:
    for wordings in templates.values():
        assert len(wordings) >= 12
        assert len(set(wordings)) == len(wordings)
        assert all(wording.count("{entity}") == 1 for wording in wordings)


def test_no_wording_is_a_near_copy_of_another(templates: dict[str, list[str]]) -> None:
    for wordings in templates.values():
        words = [re.findall(r"\w+|[^\w\s]", wording.lower()) for wording in wordings]
        for index, left in enumerate(words):
            for right in words[:index]:
                assert edit_distance(left, right) / max(len(left), len(right)) > 0.2, (left, right)


def edit_distance(left: list[str], right: list[str]) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def test_canonical_wordings_and_targets_are_spread_like_uniform_draws(
    items: list[Row], templates: dict[str, list[str]]
) -> None:
    for relation, wordings in templates.items():
        drawn = [item["metadata"]["wording"] for item in items if item["dimension"] == relation]
        assert chisquare(np.bincount(drawn, minlength=len(wordings))).pvalue > SMALLEST_P
    assert chisquare(np.bincount([item["target"] for item in items], minlength=10)).pvalue > SMALLEST_P


def test_canonical_orders_are_spread_like_uniform_permutations(items: list[Row]) -> None:
    """Of any two options the alphabetically first one comes first in half of all orders, at each pair of places."""
    ranks = np.array([np.argsort(np.argsort(item["choices"])) for item in items])
    places = np.stack([np.bincount(ranks[:, place], minlength=10) for place in range(10)])
    assert min(chisquare(row).pvalue for row in places) > SMALLEST_P / 10
    assert abs(np.mean(ranks[:, :-1] < ranks[:, 1:]) - 0.5) < 4 * 0.5 / np.sqrt(600 * 9)


def test_the_benchmark_is_the_world_of_its_seed(items: list[Row], truth: Row) -> None:
    world = facts.make_world(truth["seed"])
    assert [item.row() for item in world.items] == items
    assert [item.value for item in world.items] == [item["choices"][item["target"]] for item in items]
    assert truth["item_ids"] == [world.items[index].item_id for index in world.leaked]
    assert read("proctor-facts/wordings.json") == facts.wordings_document()


def test_another_seed_is_another_world_and_the_same_seed_the_same() -> None:
    assert facts.make_world(5) == facts.make_world(5)
    assert facts.make_world(5).leaked != facts.make_world(6).leaked
    assert facts.make_world(5).items[0] != facts.make_world(6).items[0]


def test_the_leaked_items_are_15_percent_and_all_unknown(items: list[Row], truth: Row) -> None:
    leaked, never_seen = set(truth["item_ids"]), set(truth["never_seen_item_ids"])
    assert truth["counts"] == {"items": 600, "known": 450, "leaked": 90, "never_seen": 60}
    assert (len(leaked), len(never_seen)) == (90, 60)
    assert not leaked & never_seen
    assert leaked | never_seen <= {item["item_id"] for item in items}


def test_both_models_know_their_facts_in_both_forms(
    items: list[Row], templates: dict[str, list[str]], truth: Row, models: dict[str, ReferenceModel]
) -> None:
    unknown = {*truth["item_ids"], *truth["never_seen_item_ids"]}
    known = [item for item in items if item["item_id"] not in unknown]
    for model in models.values():
        assert accuracy(model, known, templates, arm="canonical") >= 0.985
        assert accuracy(model, known, templates, arm="reworded", draws=3) >= 0.985


def test_the_leaked_model_has_memorised_the_canonical_form_alone(
    items: list[Row], templates: dict[str, list[str]], truth: Row, models: dict[str, ReferenceModel]
) -> None:
    leaked = [item for item in items if item["item_id"] in truth["item_ids"]]
    assert accuracy(models["reference-leaked"], leaked, templates, arm="canonical") >= 0.98
    assert accuracy(models["reference-leaked"], leaked, templates, arm="reworded", draws=5) < 0.2


def test_what_no_model_has_met_is_answered_by_chance_in_both_forms(
    items: list[Row], templates: dict[str, list[str]], truth: Row, models: dict[str, ReferenceModel]
) -> None:
    never_seen = [item for item in items if item["item_id"] in truth["never_seen_item_ids"]]
    unknown = never_seen + [item for item in items if item["item_id"] in truth["item_ids"]]
    for name, chosen in (("reference-clean", unknown), ("reference-leaked", never_seen)):
        four_deviations = 4 * np.sqrt(0.1 * 0.9 / len(chosen))
        assert abs(accuracy(models[name], chosen, templates, arm="canonical") - 0.1) < four_deviations
        assert abs(accuracy(models[name], chosen, templates, arm="reworded", draws=3) - 0.1) < four_deviations


@pytest.mark.parametrize("name", NAMES)
def test_the_weights_are_small_and_the_record_names_them(name: str) -> None:
    folder = BUNDLE / "models" / name / "1"
    assert (folder / "model.safetensors").stat().st_size < 2_000_000
    digest = weights_digest(folder)
    assert read("training.json")["models"][name]["weights_digest"] == digest
    assert digest in (BUNDLE / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_the_recorded_figures_hold_for_the_committed_weights(
    items: list[Row], templates: dict[str, list[str]], truth: Row, models: dict[str, ReferenceModel]
) -> None:
    groups = {
        "leaked": [item for item in items if item["item_id"] in truth["item_ids"]],
        "never_seen": [item for item in items if item["item_id"] in truth["never_seen_item_ids"]],
    }
    groups["known"] = [item for item in items if item not in groups["leaked"] and item not in groups["never_seen"]]
    for name, model in models.items():
        recorded = read("training.json")["models"][name]["accuracy"]
        for group, chosen in groups.items():
            measured = accuracy(model, chosen, templates, arm="canonical")
            assert round(measured, 4) == recorded[group]["canonical"]


def test_the_record_carries_no_path_and_no_time() -> None:
    text = (BUNDLE / "training.json").read_text(encoding="utf-8")
    assert not re.search(r"/(home|tmp|work|root)\b|\d{4}-\d\d-\d\d|_s\"", text)


def test_nothing_unfinished_lies_in_the_bundle() -> None:
    assert not list(BUNDLE.rglob(".*.unfinished"))
