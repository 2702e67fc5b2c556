"""The library's keys and rows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import __version__
from proctor.domain.canonical import json_digest
from proctor.domain.errors import NewerVersionError, StoreError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import GATE_VERSION
from proctor.perturbation.library import store as library_module
from proctor.perturbation.library.store import Origin, Outcome, VariantLibrary, library_key, recipe_key
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.option_shuffle import OptionShuffle
from tests.unit.variant_samples import SECTION, MemoryRows, chain

ITEM = Item(item_id="i", question="Which?", choices=("a", "b"), target="a", dimension="d", metadata={"entity": "Krav"})
ENCODER = "sha256:" + "e" * 64
REWORDINGS = {"i": ("Say which.",), "other": ("Say it.",)}

#: A row as Proctor wrote it before origins were kept and containment was measured.
OLD_ROW = {
    "variants": [
        {
            "item_id": "i", "item_hash": "sha256:1", "strategy": "wordings", "level": 1, "question": "Say which.",
            "choices": ["a", "b"], "provenance": {"wordings": {"wording": 3}},
            "measurements": {"semantic_distance": 0.2, "token_overlap": 0.5, "edit_distance": 0.4},
        }
    ],
    "rejections": [{"item_id": "i", "reason": "too_close", "detail": "near"}],
    "distances": [0.2, 0.01],
}  # fmt: skip


def _key(item: Item = ITEM, section: PerturbationSection = SECTION, encoder: str = ENCODER, **rewordings: Any) -> str:
    return library_key(item, chain({**REWORDINGS, **rewordings}), section, encoder)


def test_equal_inputs_have_equal_keys_whatever_the_item_is_called() -> None:
    assert _key() == _key(Item.model_validate(ITEM.plain()))
    shuffled = [
        library_key(ITEM.model_copy(update={"item_id": n}), Chain([OptionShuffle()]), SECTION, "e") for n in "ab"
    ]
    assert shuffled[0] == shuffled[1]


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Which one?"},
        {"choices": ("b", "a")},
        {"target": "b"},
        {"dimension": "e"},
        {"metadata": {"entity": "Dulo"}},
    ],
)
def test_another_item_has_another_key(change: dict[str, Any]) -> None:
    assert _key(ITEM.model_copy(update=change)) != _key()


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"num_variants_per_item": 3},
        {"min_semantic_distance": 0.1},
        {"max_semantic_distance": 1.8},
        {"max_token_overlap": 0.8},
    ],
)
def test_another_seed_or_gate_has_another_key(change: dict[str, Any]) -> None:
    assert _key(section=SECTION.model_copy(update=change)) != _key()


@pytest.mark.parametrize("change", [{"min_yield": 0.1}, {"rewordings_path": "elsewhere.jsonl"}])
def test_what_decides_no_variant_leaves_the_key_alone(change: dict[str, Any]) -> None:
    assert _key(section=SECTION.model_copy(update=change)) == _key()


def test_another_chain_encoder_or_gate_version_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {_key(), _key(encoder="sha256:" + "f" * 64), _key(i=("Tell which.",))}
    imported, shuffled = chain(REWORDINGS)._strategies[0], OptionShuffle()
    for strategies in ([shuffled], [imported, shuffled], [shuffled, imported]):
        keys.add(library_key(ITEM, Chain(strategies), SECTION, ENCODER))
    monkeypatch.setattr(library_module, "GATE_VERSION", "another")
    keys.add(_key())
    assert len(keys) == 7


def test_the_key_of_a_recipe_is_what_it_has_always_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_module, "GATE_VERSION", "3")
    item = Item(
        item_id="i",
        question='Which "ones" cost 5 \u20ac? 100% of them\n',
        choices=("a", "\u00e9"),
        target="a",
        dimension="d",
        metadata={"entity": "Krav", "n": [1, 2.5, None, True]},
    )
    section = PerturbationSection(
        perturbation_strategy="lexical+format",
        seed=7,
        num_variants_per_item=2,
        min_semantic_distance=0.02,
        max_semantic_distance=0.5,
        max_token_overlap=0.8,
        min_edit_distance=0.05,
    )
    data = ["lexical/1 0.6 sha256:ab", "100%s \u20ac"]
    key = "sha256:9a79b447d68858b89f53014fd67eb9cfb2910e98b91ec72e2be5578e16b0bf74"
    # Digests made before the recipe's part was written once for all items; libraries are full of them.
    assert recipe_key(item, "lexical+format", data, section, ENCODER) == key


@given(st.text(), st.lists(st.text()), st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)))
def test_the_key_is_the_digest_of_everything_that_decides(
    strategy: str, data: list[str], metadata: dict[str, Any]
) -> None:
    item = ITEM.model_copy(update={"metadata": metadata})
    everything = {
        "schema": "variants/1",
        "item": item.content_hash,
        "strategy": strategy,
        "data": data,
        "filled_from": [item.dimension, metadata],
        "seed": SECTION.seed,
        "gate": [
            GATE_VERSION,
            SECTION.min_semantic_distance,
            SECTION.max_semantic_distance,
            SECTION.max_token_overlap,
            SECTION.max_containment,
            SECTION.min_edit_distance,
        ],
        "encoder": "100%",
        "variants": SECTION.num_variants_per_item,
    }
    assert recipe_key(item, strategy, data, SECTION, "100%") == json_digest(everything)


def test_rewordings_of_other_items_leave_the_key_alone() -> None:
    assert _key(other=("Say something else.",)) == _key()


def test_a_key_can_be_found_from_the_recipe_alone() -> None:
    made = chain(REWORDINGS)
    assert recipe_key(ITEM, made.name, made.data_digests(ITEM), SECTION, ENCODER) == _key()


def test_a_row_of_an_earlier_version_is_read_and_has_no_origin() -> None:
    rows = MemoryRows()
    rows.rows["k"] = json.dumps(OLD_ROW)
    library = VariantLibrary(rows)
    outcome = library.find(["k", "absent"])["k"]
    assert outcome.variants[0].measurements.semantic_distance == 0.2
    assert outcome.rejections[0].reason == "too_close"
    assert library.origins(["k"]) == {}


@pytest.mark.parametrize("row", ["", "{}", "[1]", '{"variants": 1', json.dumps({**OLD_ROW, "variants": 1})])
def test_a_damaged_row_is_one_error_that_names_the_row_and_the_mend(row: str) -> None:
    rows = MemoryRows()
    rows.rows["k"] = row
    with pytest.raises(StoreError, match=r"row k is damaged \(\d+ faults\): delete that row of the table"):
        VariantLibrary(rows).find(["k"])


def test_a_row_with_what_only_a_later_version_knows_is_told_from_a_damaged_one() -> None:
    rows = MemoryRows()
    rows.rows["k"] = json.dumps({**OLD_ROW, "more": 1})
    with pytest.raises(NewerVersionError, match="row k needs a newer Proctor: it has more"):
        VariantLibrary(rows).find(["k"])


def test_a_row_says_what_made_it_and_the_first_writer_stays() -> None:
    library = VariantLibrary(MemoryRows())
    outcome = Outcome.model_validate(OLD_ROW)
    assert library.add({"k": outcome}) == 1
    assert library.add({"k": outcome, "l": outcome}, Origin.here(file="sha256:abc")) == 1
    built, imported = (library.origins(["k", "l"])[key] for key in "kl")
    assert (built.source, built.proctor, built.gate, built.file) == ("build", __version__, GATE_VERSION, "")
    assert (imported.source, imported.file, imported.created_at) == (
        "import",
        "sha256:abc",
        "2026-01-01T00:00:00+00:00",
    )
    assert library.add({}) == 0


def test_an_outcome_goes_by_the_name_that_is_asked_for() -> None:
    outcome = Outcome.model_validate(OLD_ROW)
    assert outcome.of_item("i") is outcome
    renamed = outcome.of_item("twin")
    assert {one.item_id for one in renamed.variants} | {one.item_id for one in renamed.rejections} == {"twin"}
    assert renamed.of_item("i") == outcome
