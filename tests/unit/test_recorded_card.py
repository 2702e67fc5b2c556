"""Cards of logs beside each other: known and different, known and equal, and unknown, which is neither."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.canonical import bytes_digest
from proctor.domain.card import ContentDigests, ProtocolCard, protocol_card
from proctor.domain.recorded_card import (
    FIELDS,
    MAX_CHARACTERS,
    NOTHING_RECORDED,
    card_of_proctor,
    compare_cards,
    recorded_card,
)
from proctor.domain.suite_problems import parse_suite
from proctor.domain.suite_schema import example_suite

VALUES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 2) | st.text(max_size=5)
PROTOCOLS = st.dictionaries(st.sampled_from([*FIELDS, "decoding_policy.top_k", "prompt_template.solvers"]), VALUES)


def of_suite(**changes: Any) -> ProtocolCard:
    document = json.loads(json.dumps(example_suite()))
    for path, value in changes.items():
        section, _, name = path.partition("__")
        document.setdefault(section, {})[name] = value
    return protocol_card(parse_suite(json.dumps(document)), ContentDigests(), evaluator_version="proctor 1")


@given(PROTOCOLS, PROTOCOLS)
def test_a_field_differs_only_where_both_sides_record_it_and_is_unknown_where_one_does_not(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    first, second = recorded_card(a), recorded_card(b)
    found, turned = compare_cards(first, second), compare_cards(second, first)
    assert {(one.field, one.a, one.b) for one in found.differs} == {(one.field, one.b, one.a) for one in turned.differs}
    differing, unknown = {one.field for one in found.differs}, {one.field for one in found.unknown}
    assert differing <= a.keys() & b.keys()
    assert not unknown & a.keys() & b.keys()
    assert differing | unknown | set(found.equal) == {*FIELDS, *a, *b}
    assert compare_cards(first, first).differs == ()


@given(PROTOCOLS, PROTOCOLS)
def test_cards_with_one_digest_differ_in_nothing_and_leave_the_same_unknown(
    a: dict[str, Any], b: dict[str, Any]
) -> None:
    found = compare_cards(recorded_card(a), recorded_card(b))
    if found.a.protocol_digest == found.b.protocol_digest:
        assert found.differs == ()
        assert {one.unknown_in for one in found.unknown} <= {"both"}


def test_a_digest_leaves_the_subject_out_and_the_fingerprint_does_not() -> None:
    one, other = (recorded_card({"metric.name": "em"}, {"model": name}) for name in "ab")
    assert one.protocol_digest == other.protocol_digest != NOTHING_RECORDED.protocol_digest
    assert one.fingerprint != other.fingerprint
    assert "metric.name" not in one.unknown
    assert NOTHING_RECORDED.unknown == FIELDS


def test_numbers_are_equal_as_numbers_and_true_is_no_number() -> None:
    name = "decoding_policy.temperature"
    assert compare_cards(recorded_card({name: 0}), recorded_card({name: 0.0})).differs == ()
    assert len(compare_cards(recorded_card({name: 1}), recorded_card({name: True})).differs) == 1


@pytest.mark.parametrize(
    "value", ["unknown", float("nan"), float("inf"), [float("nan")], object(), b"x", [[[[[[[[1]]]]]]]]]
)
def test_what_a_card_cannot_hold_is_unknown(value: Any) -> None:
    card = recorded_card({"metric.name": value})
    assert card.protocol == {}
    assert card.protocol_digest == NOTHING_RECORDED.protocol_digest


def test_long_and_broken_texts_and_large_numbers_can_be_digested() -> None:
    long = "x" * (MAX_CHARACTERS + 1)
    card = recorded_card({"prompt_template.template": long, "metric.name": "\ud800", "decoding_policy.seed": 2**70})
    assert card.protocol["prompt_template.template"] == bytes_digest(long.encode())
    assert card.protocol["metric.name"] == "\\ud800"
    assert card.fingerprint.startswith("sha256:")


def test_two_cards_of_proctor_differ_by_the_fields_of_their_suites() -> None:
    one = card_of_proctor(of_suite())
    other = card_of_proctor(of_suite(decoding_config__max_tokens=77, model_config__model_id="another/model"))
    found = compare_cards(one, other)
    assert [(one.field, one.b) for one in found.differs] == [("decoding_policy.max_tokens", 77)]
    assert found.unknown == ()
    assert one.protocol_digest == of_suite().protocol_digest
    assert (one.protocol["evaluator.name"], one.protocol["evaluator.version"]) == ("proctor", "1")


def test_a_section_that_one_card_of_proctor_lacks_is_a_difference_and_an_unrecorded_setting_is_unknown() -> None:
    whole = of_suite()
    other = whole.model_copy(
        update={
            "contamination_policy": {**whole.contamination_policy, "profile": "strict"},
            "decoding_policy": {**whole.decoding_policy, "seed": "unknown"},
        }
    )
    found = compare_cards(card_of_proctor(whole), card_of_proctor(other))
    assert [(one.field, one.a, one.b) for one in found.differs] == [("contamination_policy.profile", None, "strict")]
    assert [(one.field, one.unknown_in) for one in found.unknown] == [("decoding_policy.seed", "b")]


def test_a_log_of_another_tool_is_not_held_to_the_fields_of_proctors_card_alone() -> None:
    found = compare_cards(card_of_proctor(of_suite()), recorded_card({"evaluator.name": "lm-evaluation-harness"}))
    assert [one.field for one in found.differs] == ["evaluator.name"]
    assert {one.field for one in found.unknown} == {*FIELDS} - {"evaluator.name"}
