"""Two sets of variants side by side."""

from __future__ import annotations

from proctor.domain.item import Measurements
from proctor.formats.variant_lines import Entry
from proctor.formats.variants_file import parse_variants
from proctor.perturbation.library.diff import diff_variants
from tests.unit.variant_samples import SECTION, HashedEncoder, exported, header

FILE = parse_variants(exported(with_rejections=True), "v.jsonl")
FIRST, SECOND, EMPTY = FILE.entries


def _measured(entry: Entry, distance: float) -> Entry:
    measured = entry.variants[0].measurements.plain() | {"semantic_distance": distance}
    changed = entry.variants[0].model_copy(update={"measurements": Measurements.model_validate(measured)})
    return entry._replace(variants=(changed, *entry.variants[1:]))


def test_the_same_set_twice_is_equal_whatever_the_order() -> None:
    found = diff_variants((FILE.header, FILE.entries), (FILE.header, FILE.entries[::-1]))
    assert found.equal
    assert (found.items_same, found.variants_same, found.settings) == (2, 3, ())
    assert found.conclusion == "Both hold the same 3 variants of the same 2 items."


def test_items_and_variants_in_one_set_alone_are_listed() -> None:
    fewer = FIRST._replace(variants=FIRST.variants[1:])
    found = diff_variants((FILE.header, [fewer, SECOND]), (FILE.header, [FIRST]))
    assert found.items_only_in_a == (SECOND.item.item_id,)
    assert found.items_only_in_b == ()
    assert found.variants_only_in_a == ()
    assert [one.variant_id for one in found.variants_only_in_b] == [FIRST.variants[0].variant_id]
    assert (found.variants_same, found.equal) == (1, False)


def test_an_item_without_a_variant_counts_as_not_there() -> None:
    assert diff_variants((FILE.header, FILE.entries), (FILE.header, [FIRST, SECOND])).equal
    assert EMPTY.rejections


def test_a_variant_measured_otherwise_shows_both_measurements() -> None:
    found = diff_variants((FILE.header, FILE.entries), (FILE.header, [_measured(FIRST, 0.1234), SECOND]))
    (changed,) = found.measurements_changed
    assert (changed.item_id, changed.b.semantic_distance) == (FIRST.item.item_id, 0.1234)
    assert changed.a == FIRST.variants[0].measurements
    assert found.variants_same == 2


def test_an_item_that_asks_something_else_is_not_compared() -> None:
    other = FIRST._replace(item=FIRST.item.model_copy(update={"target": "8"}))
    found = diff_variants((FILE.header, [FIRST]), (FILE.header, [other]))
    assert found.items_changed == (FIRST.item.item_id,)
    assert (found.items_same, found.variants_only_in_a, found.equal) == (0, (), False)


def test_settings_behind_the_variants_are_compared_and_do_not_make_them_unequal() -> None:
    other = header(HashedEncoder("other"), SECTION.model_copy(update={"seed": 3}))
    found = diff_variants((header(HashedEncoder()), [FIRST]), (other, [FIRST]))
    assert [(one.name, one.a, one.b) for one in found.settings if one.name == "seed"] == [("seed", 0, 3)]
    assert {one.name for one in found.settings} == {"encoder", "encoder_fingerprint", "seed"}
    assert found.equal
