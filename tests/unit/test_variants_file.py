"""An export of variants says what the library says, in the same bytes, and a damaged one is refused with its line."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.formats.variant_lines import Entry
from proctor.formats.variants_file import is_variants_file, parse_variants, write_variants
from tests.unit.variant_samples import HashedEncoder, exported, header, lines_of, resealed

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


@st.composite
def _entries(draw: st.DrawFn) -> list[Entry]:
    entries = []
    for item_id in draw(st.lists(_TEXT, unique=True, max_size=4)):
        item = Item(item_id=item_id, question=draw(_TEXT), target=draw(_TEXT), metadata={draw(_TEXT): draw(_TEXT)})
        measured = Measurements(semantic_distance=draw(st.floats(0, 2)), token_overlap=0.25, edit_distance=1.0)
        variants = tuple(
            Variant(
                item_id=item_id,
                item_hash=item.content_hash,
                strategy="imported",
                question=question,
                measurements=measured,
                provenance={"imported": {"text": draw(_TEXT)}},
            )
            for question in draw(st.lists(_TEXT, unique=True, max_size=3))
        )
        rejections = tuple(
            Rejection(item_id=item_id, reason=reason, detail=draw(_TEXT))
            for reason in draw(st.lists(_TEXT, max_size=2))
        )
        distances = tuple(variant.measurements.semantic_distance for variant in variants)
        entries.append(Entry(0, item, bytes_digest(item_id.encode()), ("imported/1",), distances, variants, rejections))
    return entries


@given(_entries(), st.booleans())
def test_what_is_written_is_read_back_whatever_the_texts_hold(entries: list[Entry], with_rejections: bool) -> None:
    data = write_variants(header(HashedEncoder()), entries, with_rejections=with_rejections)
    read = parse_variants(data, "v.jsonl")
    kept = [entry if with_rejections else entry._replace(rejections=()) for entry in entries]
    kept = [entry for entry in kept if entry.variants or entry.rejections]
    assert [entry._replace(line=0) for entry in read.entries] == sorted(kept, key=lambda entry: entry.item.item_id)
    assert read.header.items == len(kept)
    assert read.header.rejections == (sum(len(entry.rejections) for entry in kept) if with_rejections else None)
    assert read.digest == bytes_digest(data)


@given(_entries(), st.randoms())
def test_the_order_of_the_items_changes_no_byte(entries: list[Entry], random: Any) -> None:
    shuffled = random.sample(entries, len(entries))
    head = header(HashedEncoder())
    assert write_variants(head, shuffled, with_rejections=True) == write_variants(head, entries, with_rejections=True)


def test_every_line_is_canonical_json_and_one_variant_takes_one_line() -> None:
    data = exported()
    lines = lines_of(data)
    assert data == b"".join(canonical_json(line) + b"\n" for line in lines)
    assert [(line["item"]["item_id"], line["place"]) for line in lines[1:]] == [("b-1", 0), ("b-1", 1), ("b-2", 0)]
    assert lines[0]["lines_digest"] == bytes_digest(data.split(b"\n", 1)[1])
    assert (lines[0]["items"], lines[0]["variants"], lines[0]["rejections"]) == (2, 3, None)


def test_rejections_are_written_where_they_are_asked_for() -> None:
    lines = lines_of(exported(with_rejections=True))
    assert lines[-1]["kind"] == "rejection"
    assert lines[-1]["rejection"]["reason"] == "numerals"
    assert lines[0]["rejections"] == 1


def _changed(path: tuple[str | int, ...], value: Any) -> bytes:
    lines: Any = copy.deepcopy(lines_of(exported()))
    place = lines
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return resealed(lines)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ((1, "kind"), "poem", r"v\.jsonl:2: .*'poem'"),
        ((1, "place"), 1, r"v\.jsonl:2: its place is 1, and 0 comes next"),
        ((2, "place"), 5, r"v\.jsonl:3: its place is 5, and 1 comes next"),
        ((1, "key"), "sha256:12", r"v\.jsonl:2: variant\.key: String should match"),
        ((2, "key"), "sha256:" + "a" * 64, r"v\.jsonl:3: its key is not that of the first line of 'b-1'"),
        ((2, "item", "target"), "8", r"v\.jsonl:3: its item is not that of the first line"),
        ((2, "data"), ["other"], r"v\.jsonl:3: its data is not that"),
        ((3, "variant", "item_id"), "b-9", r"v\.jsonl:4: belongs to 'b-9' and stands on a line of 'b-2'"),
        ((3, "variant", "item_hash"), "x", r"v\.jsonl:4: the variant's item_hash is not that"),
        ((3, "variant", "question"), 5, r"v\.jsonl:4: variant\.variant\.question: .*string.*not 5"),
        ((3, "variant", "measurements", "semantic_distance"), None, r"v\.jsonl:4: variant\.variant\.measurements"),
        ((3, "distances"), [2.5], r"v\.jsonl:4: variant\.distances\.0: .*less than or equal to 2, not 2\.5"),
        ((3, "item", "question"), "", r"v\.jsonl:4: variant\.item\.question"),
        ((3, "more"), 1, r"v\.jsonl:4: variant\.more: Extra inputs are not permitted$"),
        ((3, "item", "item_id"), "a-0", r"v\.jsonl:4: the item 'a-0' comes after 'b-1': lines are sorted"),
        ((0, "settings", "seed"), -1, r"v\.jsonl:1: settings\.seed"),
        ((0, "schema"), "proctor-variants/9", r"v\.jsonl:1: no export of variants: the schema is 'proctor-variants/9'"),
        ((0, "variants"), 2, r"v\.jsonl:1: the header says 2 variants, and there are 3"),
        ((0, "items"), 7, r"v\.jsonl:1: the header says 7 items, and there are 2"),
        ((0, "rejections"), 4, r"v\.jsonl:1: the header says 4 rejections, and there are 0"),
    ],
)
def test_a_forged_field_is_refused_with_its_line(path: tuple[str | int, ...], value: Any, fault: str) -> None:
    with pytest.raises(BadInputError, match=fault):
        parse_variants(_changed(path, value), "v.jsonl")


def test_a_rejection_before_a_variant_of_the_same_item_is_refused() -> None:
    lines = lines_of(exported())
    rejection = {"item_id": "b-1", "reason": "too_far", "detail": ""}
    early = {key: value for key, value in lines[1].items() if key != "variant"}
    early |= {"kind": "rejection", "place": 0, "rejection": rejection}
    with pytest.raises(BadInputError, match=r"v\.jsonl:2: variants come before rejections"):
        parse_variants(resealed([lines[0], early, *lines[1:]], rejections=1), "v.jsonl")


def test_a_variant_that_stands_twice_is_refused() -> None:
    lines = lines_of(exported())
    lines[2] = {**lines[1], "place": 1}
    with pytest.raises(BadInputError, match=r"v\.jsonl:3: the same variant stands there twice"):
        parse_variants(resealed(lines), "v.jsonl")


@pytest.mark.parametrize("cut", [1, -1])
def test_a_line_that_is_missing_is_noticed(cut: int) -> None:
    lines = exported().splitlines(keepends=True)
    del lines[cut]
    with pytest.raises(BadInputError, match=r"v\.jsonl:(1|2): (the header says|its place is)"):
        parse_variants(b"".join(lines), "v.jsonl")


def test_a_changed_letter_is_noticed_although_the_line_is_well_formed() -> None:
    data = exported().replace(b"What is her total?", b"What is her Total?")
    with pytest.raises(BadInputError, match=r"v\.jsonl:1: lines_digest is sha256:.* the file was changed after"):
        parse_variants(data, "v.jsonl")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", r"v\.jsonl:3: not JSON at column 1"),
        (b"[]", r"v\.jsonl:3: a JSON object is needed"),
        (b'{"a": NaN}', r"v\.jsonl:3: .*NaN is not a JSON number"),
        (b'{"a": 1, "a": 2}', r"v\.jsonl:3: the key 'a' stands twice"),
        (b"\xff\xfe", r"v\.jsonl:3: byte 1 \(0xff\) is not UTF-8"),
        (b"[" * 100_000, r"v\.jsonl:3: "),
        (b'{"a": "' + b"x" * 2_000_000 + b'"}', r"v\.jsonl:3: the line is longer than"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused_with_its_number(line: bytes, fault: str) -> None:
    lines = exported().splitlines()
    lines[2] = line
    with pytest.raises(BadInputError, match=fault):
        parse_variants(b"\n".join(lines), "v.jsonl")


@pytest.mark.parametrize(
    ("provenance", "fault"),
    [
        ('{"x": 1e999}', "canonical JSON cannot"),
        ('{"x": 36893488147419103232}', "canonical JSON cannot"),
        ('{"x": "\\ud800"}', "v.jsonl:2"),
        ('{"x": ' + "[" * 900 + "]" * 900 + "}", "v.jsonl:(1|2)"),
    ],
)
def test_what_cannot_be_written_again_is_refused(provenance: str, fault: str) -> None:
    lines = exported().decode().splitlines()
    line = json.loads(lines[1])
    line["variant"]["provenance"] = "HERE"
    lines[1] = json.dumps(line).replace('"HERE"', provenance)
    with pytest.raises(BadInputError, match=fault):
        parse_variants("\n".join(lines).encode(), "v.jsonl")


def test_ten_faults_are_enough() -> None:
    data = exported().splitlines()[0] + b"\n" + b"{}\n" * 50
    with pytest.raises(BadInputError, match=r"v\.jsonl has 10 faults \(reading stopped at 10\)"):
        parse_variants(data, "v.jsonl")


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"question": "a"}\n', b"{"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(BadInputError, match=r"v\.jsonl"):
        parse_variants(data, "v.jsonl")
    assert not is_variants_file(data)


def test_a_file_is_told_from_a_suite_by_its_first_line() -> None:
    assert is_variants_file(exported())
    assert is_variants_file(b'{"schema": "proctor-variants/9"}')
    assert not is_variants_file(b'{"audit_suite_id": "s"}\n{"schema": "proctor-variants/1"}')


def test_an_item_too_long_to_be_read_back_is_not_written() -> None:
    item = Item(item_id="long", question="x" * 1_100_000, target="t")
    rejection = Rejection(item_id="long", reason="too_long")
    entry = Entry(0, item, bytes_digest(b""), ("imported/1",), (), (), (rejection,))
    with pytest.raises(BadInputError, match="'long' takes a line of 1,1"):
        write_variants(header(HashedEncoder()), [entry], with_rejections=True)
    assert write_variants(header(HashedEncoder()), [entry], with_rejections=False).count(b"\n") == 1
