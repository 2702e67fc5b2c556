"""A file's variants are admitted as they are, or not at all: whatever it claims, this gate has the last word."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.formats.variants_file import parse_variants, write_variants
from proctor.perturbation.engine import reword
from proctor.perturbation.library.exchange import Imported, admit_file, entries_of
from proctor.perturbation.library.store import VariantLibrary, recipe_key
from tests.unit.variant_samples import (
    ITEMS,
    REWORDINGS,
    SECTION,
    HashedEncoder,
    MemoryRows,
    chain,
    exported,
    header,
    lines_of,
    resealed,
)

Lines = list[dict[str, Any]]


def _admit(
    data: bytes, rows: MemoryRows | None = None, encoder: HashedEncoder | None = None, **options: Any
) -> Imported:
    file = parse_variants(data, "v.jsonl")
    library = VariantLibrary(MemoryRows() if rows is None else rows)
    return admit_file(file, encoder=encoder or HashedEncoder(), library=library, **options)


def _rekeyed(lines: Lines) -> bytes:
    """The lines under the keys that their content has, as a forger would write them."""
    section = PerturbationSection.model_validate(lines[0]["settings"])
    for line in lines[1:]:
        item = Item.model_validate(line["item"])
        line["key"] = recipe_key(
            item, section.perturbation_strategy, line["data"], section, lines[0]["encoder_fingerprint"]
        )
    return resealed(lines)


@pytest.mark.parametrize("with_rejections", [False, True])
def test_an_imported_library_answers_like_the_one_it_came_from(with_rejections: bool) -> None:
    rows, encoder = MemoryRows(), HashedEncoder()
    done = _admit(exported(with_rejections=with_rejections), rows, encoder)
    assert (done.items, done.new, done.variants, done.rejected) == (3 if with_rejections else 2,) * 2 + (3, {})
    assert encoder.texts == []
    library = VariantLibrary(rows)
    known = ITEMS if with_rejections else ITEMS[:2]
    made = reword(known, SECTION, chain=chain(), encoder=encoder, library=library)
    assert all(one.from_library for one in made)
    assert encoder.texts == []
    entries = entries_of(ITEMS, header(encoder), chain(), encoder.fingerprint, library)
    again = write_variants(header(encoder), entries, with_rejections=with_rejections)
    assert again == exported(with_rejections=with_rejections)


def test_the_same_file_again_is_nothing_new() -> None:
    rows = MemoryRows()
    _admit(exported(with_rejections=True), rows)
    before = dict(rows.rows)
    assert _admit(exported(with_rejections=True), rows).new == 0
    assert _admit(exported(), rows).new == 0
    assert rows.rows == before


def test_a_differing_row_is_refused_by_name_and_nothing_is_written() -> None:
    rows, encoder = MemoryRows(), HashedEncoder()
    # The same recipe came to less here, as where the rest was added to the file by hand.
    file = parse_variants(exported(), "v.jsonl")
    first = file.entries[0]
    less = lines_of(exported())
    del less[2]
    less[0] |= {"variants": 2}
    _admit(resealed(less), rows, encoder)
    before = dict(rows.rows)
    with pytest.raises(BadInputError, match=rf"v\.jsonl:2: the library has other variants of '{first.item.item_id}'"):
        _admit(exported(), rows, encoder)
    assert rows.rows == before


def test_equal_problems_of_a_file_may_not_say_different_things() -> None:
    lines = lines_of(exported())
    twin = {**lines[1], "item": {**lines[1]["item"], "item_id": "b-1b"}}
    twin["variant"] = {**twin["variant"], "item_id": "b-1b"}
    with pytest.raises(BadInputError, match=r"v\.jsonl:4: the library has other variants of 'b-1b' under the same key"):
        _admit(resealed([*lines[:3], twin, lines[3]], items=3, variants=4))


def test_another_encoders_distances_are_refused_with_both_names() -> None:
    with pytest.raises(BadInputError, match=r"by the encoder 'hashed@.*here is other .* or give --remeasure"):
        _admit(exported(), encoder=HashedEncoder("other"))


def test_another_gates_verdicts_are_refused() -> None:
    lines = lines_of(exported())
    with pytest.raises(BadInputError, match=r"v\.jsonl:1: the variants were admitted by gate '0', and here is gate"):
        _admit(resealed(lines, gate="0"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("dimension", "x"), ("metadata", {"a": 1}), ("data", ["imported/1 sha256:other"])],
)
def test_a_key_that_is_not_of_what_stands_beside_it_is_refused(name: str, value: Any) -> None:
    lines = lines_of(exported())
    for line in lines[1:3]:
        (line if name == "data" else line["item"])[name] = value
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: 'b-1': its key is sha256:"):
        _admit(resealed(lines))


def test_settings_that_the_keys_are_not_of_are_refused() -> None:
    lines = lines_of(exported())
    lines[0]["settings"]["seed"] = 9
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: 'b-1': its key.*\n.*v\.jsonl:4: 'b-2': its key"):
        _admit(resealed(lines))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"question": "Mia buys 3 apples, then 9 more. What is her total?"}, "does not admit this variant: numerals"),
        ({"question": ITEMS[0].question}, "does not admit this variant: unchanged"),
        ({"question": " "}, "does not admit this variant: empty"),
        ({"choices": ["7", "8"]}, "does not admit this variant: options_changed"),
        ({"question": "Mia buys 3 apples and then 4 more. What is her total now?"}, "the measurements of this variant"),
        ({"strategy": "wordings"}, "a variant is by 'wordings' at level 1"),
        ({"level": 2}, "a variant is by 'imported' at level 2"),
        ({"provenance": {"entity_rename": {"renamed": {"4": "9"}}}}, "declares a renaming, which 'imported' does not"),
    ],
)
def test_a_variant_that_this_gate_would_not_admit_so_is_refused(change: dict[str, Any], fault: str) -> None:
    lines = lines_of(exported())
    lines[2]["variant"] |= change
    with pytest.raises(BadInputError, match=rf"v\.jsonl:(2|3): 'b-1': .*{fault}"):
        _admit(resealed(lines))


@pytest.mark.parametrize("measure", ["semantic_distance", "token_overlap", "edit_distance"])
def test_forged_measurements_are_refused(measure: str) -> None:
    lines = lines_of(exported())
    lines[1]["variant"]["measurements"][measure] = 1.95 if measure == "semantic_distance" else 0.0123
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: 'b-1': the (gate does not|measurements of)"):
        _admit(resealed(lines))


def test_more_variants_than_the_settings_ask_for_are_refused() -> None:
    lines = lines_of(exported())
    lines[0]["settings"]["num_variants_per_item"] = 1
    with pytest.raises(
        BadInputError, match=r"v\.jsonl:2: 'b-1': it has 2 variants, and the header's settings ask for 1"
    ):
        _admit(_rekeyed(lines))


def test_data_of_other_strategies_than_the_headers_is_refused() -> None:
    lines = lines_of(exported())
    for line in lines[1:]:
        line["data"] = [*line["data"], "typo/1"]
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: 'b-1': it has data of 2 strategies, .* names 'imported'"):
        _admit(_rekeyed(lines))


def _renaming(pairs: Any, question: str = "Ann buys 3 apples, then 4 more. What is her total?") -> bytes:
    lines = lines_of(exported())
    del lines[2]
    lines[0]["variants"] = 2
    lines[0]["settings"]["perturbation_strategy"] = "imported+entity_rename"
    for line in lines[1:]:
        line["data"] = [*line["data"], "entity_rename/1"]
        line["variant"] |= {"strategy": "imported+entity_rename", "level": 2}
    lines[1]["variant"] |= {"question": question, "provenance": {"entity_rename": pairs}}
    return _rekeyed(lines)


@pytest.mark.parametrize(
    ("pairs", "fault"),
    [
        ({"renamed": {"4": "9"}}, "'4' renamed to '9': that is no name"),
        ({"renamed": {"Four": "Nine"}}, "'Four' renamed to 'Nine': that is no name"),
        ({"renamed": {"not": "always"}}, "'not' renamed to 'always'"),
        ({"renamed": {"euro": "dollar"}}, "'euro' renamed to 'dollar'"),
        ({"renamed": {"Mia": "Ann", "Bob": "Ann"}}, "of two names to one"),
        ({"renamed": {"": "Ann"}}, "no map of names"),
        ({"renamed": {"Mia": 5}}, "no map of names"),
        ({"renamed": ["Mia"]}, "no map of names"),
        (5, "no map of names"),
    ],
)
def test_a_forged_renaming_cannot_hide_a_change(pairs: Any, fault: str) -> None:
    for remeasure in (False, True):
        with pytest.raises(BadInputError, match=rf"v\.jsonl:2: 'b-1': a variant declares .*{fault}"):
            _admit(_renaming(pairs), remeasure=remeasure)


def test_a_renaming_of_names_alone_is_honoured() -> None:
    done = _admit(_renaming({"renamed": {"Mia": "Ann"}}), remeasure=True)
    assert done.rejected == {}
    assert done.variants == 2


def test_remeasured_variants_stand_under_the_keys_of_this_encoder() -> None:
    rows, other = MemoryRows(), HashedEncoder("other")
    done = _admit(exported(), rows, other, remeasure=True)
    assert (done.items, done.new, done.variants) == (2, 2, 3)
    assert len(other.texts) == len(set(other.texts)) == 5
    texts = len(other.texts)
    made = reword(ITEMS[:2], SECTION, chain=chain(), encoder=other, library=VariantLibrary(rows))
    assert all(one.from_library for one in made)
    assert len(other.texts) == texts
    direct = reword(ITEMS[:2], SECTION, chain=chain(), encoder=other, library=VariantLibrary(MemoryRows()))
    assert [one.outcome for one in made] == [one.outcome for one in direct]


def test_what_is_not_admitted_when_measured_again_is_counted_and_left_for_the_build() -> None:
    lines = lines_of(exported())
    lines[3]["variant"]["question"] = "In 2 hours a train covers 80 miles. What is its speed?"
    rows = MemoryRows()
    done = _admit(resealed(lines), rows, remeasure=True)
    assert (done.items, done.variants, done.rejected) == (1, 2, {"numerals": 1})
    assert len(rows.rows) == 1


def test_the_samples_are_what_the_tests_take_them_for() -> None:
    file = parse_variants(exported(with_rejections=True), "v.jsonl")
    assert [len(entry.variants) for entry in file.entries] == [2, 1, 0]
    assert {entry.item.item_id: len(entry.variants) + len(entry.rejections) for entry in file.entries} == {
        item_id: len(texts) for item_id, texts in REWORDINGS.items()
    }
