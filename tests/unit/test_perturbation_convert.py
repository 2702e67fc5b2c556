"""The gRPC contract against the types behind it: stubs, settings, items, pairs, summaries."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

import generate_protos
from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.measure import ItemPair
from proctor.perturbation.engine import ItemResult
from proctor.perturbation.library.store import Outcome
from proctor.perturbation.serving.convert import Asked, asked_of, item_reply, pair_of, section_of
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.tally import Tally
from proctor.runtime.grpc.messages import Unreadable, reader

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
#: Numbers of a Struct are doubles.
PLAIN = st.recursive(
    st.none() | st.booleans() | TEXT | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
#: Fields that name files or models of a suite's own, for which a stream has other means, or none.
NOT_IN_A_STREAM = {"rewordings_path", "paraphrase_model", "paraphraser", "calibration_path", "answering_check"}


def _settings(**config: Any) -> pb.StreamSettings:
    return pb.StreamSettings(perturbation_config=pb.PerturbationConfig(**config))


def _item(**changes: Any) -> pb.Item:
    return pb.Item(**{"item_id": "a", "question": "How many are 2 and 2?", "target": "4", **changes})


@pytest.mark.parametrize("service", ["perturbation", "audit"])
def test_the_committed_stubs_are_what_the_script_makes_of_the_proto(service: str, tmp_path: Path) -> None:
    made = {path.name: path.read_bytes() for path in generate_protos.generate(service, tmp_path)}
    assert made.keys() == {f"{service}_pb2.py", f"{service}_pb2.pyi", f"{service}_pb2_grpc.py"}
    assert {name: (generate_protos.stubs_of(service) / name).read_bytes() for name in made} == made


def test_a_stream_has_every_setting_of_a_suite_but_files_and_models() -> None:
    fields = {field.name for field in pb.PerturbationConfig.DESCRIPTOR.fields}
    assert fields == set(PerturbationSection.model_fields) - NOT_IN_A_STREAM


@pytest.mark.parametrize(("message", "model"), [(pb.Measurements, Measurements), (pb.Rejection, Rejection)])
def test_a_message_has_every_field_of_its_type(message: Any, model: Any) -> None:
    assert {field.name for field in message.DESCRIPTOR.fields} == set(model.model_fields) - {"item_id"}


def test_settings_that_are_left_out_have_the_suite_s_defaults() -> None:
    assert section_of(pb.StreamSettings()) == PerturbationSection()


def test_settings_that_are_given_are_taken_even_where_they_are_zero() -> None:
    given = {"min_semantic_distance": 0.0, "seed": 0, "min_yield": 0.0, "perturbation_strategy": "typo+format"}
    assert section_of(_settings(**given)) == PerturbationSection(**given)


def test_a_stream_brings_its_own_rewordings_and_calibration() -> None:
    section = section_of(_settings(perturbation_strategy="imported+option_shuffle", gate="calibrated"))
    assert section.rewordings_path
    assert section.calibration_path


def test_every_fault_of_the_settings_is_said_with_field_value_and_mend() -> None:
    with pytest.raises(BadInputError) as fault:
        section_of(_settings(num_variants_per_item=0, max_semantic_distance=3.0))
    assert str(fault.value).splitlines() == [
        "the stream's settings: perturbation_config.num_variants_per_item: 0 is out of range: it must be from 1 to "
        "100; its default is 3",
        "the stream's settings: perturbation_config.max_semantic_distance: 3.0 is out of range: it must be from 0 to "
        "2; its default is 0.45",
    ]


def test_an_inverted_window_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"0\.5.*0\.4"):
        section_of(_settings(min_semantic_distance=0.5, max_semantic_distance=0.4))


def test_a_setting_of_a_later_version_is_not_left_out_of_account() -> None:
    later = pb.PerturbationConfig.FromString(b"\xf8\x01\x01")
    with pytest.raises(BadInputError, match=r"does not know \(numbers \[31\]\)"):
        section_of(pb.StreamSettings(perturbation_config=later))


@pytest.mark.parametrize(
    ("changes", "reason", "detail"),
    [
        ({"question": ""}, "empty", "the question is empty"),
        ({"question": " \n\u2003"}, "empty", "the question is empty"),
        ({"question": "x" * 200_001}, "too_long", "200001 characters"),
        ({"item_id": ""}, "bad_item", "item_id: String should have at least 1 character"),
        ({"item_id": "i" * 257}, "bad_item", "item_id has 257 characters; at most 256"),
        ({"choices": ["1", "2"]}, "bad_item", "must be exactly one of the 2 choices"),
        ({"choices": ["4", "4"]}, "bad_item", "must be exactly one of the 2 choices"),
        ({"choices": [str(n) for n in range(27)]}, "bad_item", "choices has 27 entries"),
        ({"item_id": "\u202eb", "choices": ["1"]}, "bad_item", "'\\u202eb'"),
    ],
)
def test_what_is_no_item_is_a_rejection_with_its_reason(changes: dict[str, Any], reason: str, detail: str) -> None:
    refused = asked_of(_item(**changes), 3)
    assert isinstance(refused, Rejection)
    assert refused.reason == reason
    assert detail in refused.detail
    assert "\u202e" not in refused.detail


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_metadata_that_canonical_json_cannot_hold_is_a_rejection(number: float) -> None:
    message = _item()
    message.metadata.fields["n"].number_value = number
    refused = asked_of(message, 0)
    assert isinstance(refused, Rejection)
    assert refused.reason == "bad_item"


@given(metadata=st.dictionaries(TEXT, PLAIN, max_size=4))
def test_metadata_means_the_same_on_both_sides(metadata: dict[str, Any]) -> None:
    message = _item()
    json_format.ParseDict(metadata, message.metadata)
    asked = asked_of(message, 0)
    assert isinstance(asked, Asked)
    assert canonical_json(asked.item.metadata) == canonical_json(metadata)


def test_items_go_by_their_place_so_that_a_name_may_be_used_twice() -> None:
    asked = [asked_of(_item(item_id="same"), place) for place in (0, 1)]
    assert [one.item.item_id for one in asked if isinstance(one, Asked)] == ["0", "1"]


def test_a_wording_without_options_has_those_of_the_item() -> None:
    choices = ["4", "5"]
    pair = pair_of(pb.Pair(original=_item(choices=choices), rewording=pb.Wording(question="What are 2 and 2?")))
    other = pair_of(pb.Pair(original=_item(choices=choices), rewording=pb.Wording(question="?", choices=["5", "4"])))
    assert isinstance(pair, ItemPair)
    assert isinstance(other, ItemPair)
    assert (pair.candidate.choices, other.candidate.choices) == (("4", "5"), ("5", "4"))


def test_half_a_surrogate_pair_makes_a_message_unreadable_and_raises_nothing() -> None:
    whole = pb.PerturbRequest(item=_item(question="XYZ")).SerializeToString()
    read = reader(pb.PerturbRequest)
    assert isinstance(read(whole.replace(b"XYZ", "\ud800".encode("utf-8", "surrogatepass"))), Unreadable)
    assert isinstance(read(b"\xff\xff"), Unreadable)
    assert isinstance(read(whole), pb.PerturbRequest)


def test_a_variant_travels_whole_under_its_caller_s_name() -> None:
    item = Item(item_id="0", question="Q 2?", target="2")
    variant = Variant(
        item_id="0",
        item_hash=item.content_hash,
        strategy="typo",
        level=2,
        question="Q  2?",
        choices=(),
        measurements=Measurements(semantic_distance=0.25, token_overlap=0.5, edit_distance=0.125),
        provenance={"typo": {"changed": 1, "where": ["a", None, 0.5]}},
    )
    reply = item_reply(7, "mine", ItemResult(Outcome(variants=(variant,), rejections=()), from_library=True))
    sent = json_format.MessageToDict(reply.variants[0], preserving_proto_field_name=True)
    assert (reply.index, reply.item_id, reply.from_library) == (7, "mine", True)
    assert sent.pop("variant_id") == variant.variant_id
    assert canonical_json(sent) == canonical_json(
        {
            "item_hash": item.content_hash,
            "strategy": "typo",
            "level": 2,
            "question": "Q  2?",
            "measurements": {"semantic_distance": 0.25, "token_overlap": 0.5, "edit_distance": 0.125},
            "provenance": variant.provenance,
        }
    )


def test_a_measurement_that_was_not_made_is_not_sent_as_zero() -> None:
    kept = Measurements(semantic_distance=0.1, token_overlap=0.2, edit_distance=0.3, containment=0.0)
    for measurements, sent in ((kept, True), (kept.model_copy(update={"containment": None}), False)):
        variant = Variant(item_id="0", item_hash="h", strategy="s", question="q", measurements=measurements)
        reply = item_reply(0, "a", ItemResult(Outcome(variants=(variant,), rejections=()), from_library=False))
        assert reply.variants[0].measurements.HasField("containment") is sent


def test_the_summary_counts_what_passed() -> None:
    tally = Tally()
    tally.add(pb.ItemReply(variants=[pb.Variant(), pb.Variant()], from_library=True))
    tally.add(pb.ItemReply(rejections=[pb.Rejection(reason="too_far"), pb.Rejection(reason="too_far")]))
    tally.add(pb.ItemReply(rejections=[pb.Rejection(reason="empty")]))
    summary = tally.summary(min_yield=0.5, encoder="e@d")
    assert (summary.items, summary.items_with_variants, summary.items_from_library, summary.variants) == (3, 1, 1, 2)
    assert dict(summary.rejections_by_reason) == {"too_far": 2, "empty": 1}
    assert not summary.yield_reached
    assert summary.conclusion == (
        "1 of 3 items got a variant (2 in all), below the min_yield of 0.5; rejected: 2 too_far, 1 empty."
    )


@pytest.mark.parametrize(("served", "refused", "reached"), [(1, 1, True), (1, 2, False), (0, 0, False), (0, 1, False)])
def test_a_yield_is_reached_as_in_a_build_and_never_by_nothing(served: int, refused: int, reached: bool) -> None:
    tally = Tally()
    for _ in range(served):
        tally.add(pb.ItemReply(variants=[pb.Variant()]))
    for _ in range(refused):
        tally.add(pb.ItemReply(rejections=[pb.Rejection(reason="empty")]))
    assert tally.summary(min_yield=0.5, encoder="").yield_reached is reached
