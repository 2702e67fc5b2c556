"""Messages to the perturbation service: each field within its bounds, and streams that would fill its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.item import MAX_CHOICES, Rejection
from proctor.perturbation.serving import service
from proctor.perturbation.serving.convert import (
    MAX_ANSWER_CHARACTERS,
    MAX_BENCHMARK_CHARACTERS,
    MAX_ITEM_ID_CHARACTERS,
    MAX_REWORDINGS,
    asked_of,
    item_name,
    pair_of,
    section_of,
)
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.stream_calibration import CalibrationStream
from proctor.runtime.grpc.messages import MAX_FIELDS, Unreadable, reader
from tests.hostile.limited import run_limited

LONG = "x" * (MAX_ANSWER_CHARACTERS + 1)


def item(**changes: Any) -> pb.Item:
    return pb.Item(**{"item_id": "i", "question": "How many?", "target": "4", **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"item_id": "i" * 1_000_000}, f"item_id has 1,000,000 characters; at most {MAX_ITEM_ID_CHARACTERS}"),
        ({"question": LONG}, "the question has"),
        ({"target": LONG}, "target has"),
        ({"dimension": LONG}, "dimension has"),
        ({"choices": [""] * 400_000}, f"choices has 400,000 entries; at most {MAX_CHOICES}"),
        ({"choices": ["4", LONG]}, "choices has"),
        ({"rewordings": [pb.Wording()] * (MAX_REWORDINGS + 1)}, f"rewordings has {MAX_REWORDINGS + 1:,} entries"),
        ({"rewordings": [pb.Wording(question=LONG)]}, "rewordings.question has"),
        ({"rewordings": [pb.Wording(question="?", choices=["a"] * 27)]}, "rewordings.choices has 27 entries"),
        ({"rewordings": [pb.Wording(question="?", choices=[LONG])]}, "rewordings.choices has"),
    ],
)
def test_an_item_past_a_bound_is_refused_by_the_field_and_the_stream_goes_on(
    changes: dict[str, Any], said: str
) -> None:
    refused = asked_of(item(**changes), 0)
    assert isinstance(refused, Rejection)
    assert refused.detail.startswith(said)
    assert len(refused.item_id) <= MAX_ITEM_ID_CHARACTERS


def test_what_a_reply_repeats_of_an_item_s_name_is_short() -> None:
    assert item_name(item(item_id="\U0001f600" * 200_000)) == "\U0001f600" * MAX_ITEM_ID_CHARACTERS


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        (pb.Wording(question=LONG), "rewording.question has"),
        (pb.Wording(question="?", choices=[LONG]), "rewording.choices has"),
        (pb.Wording(question="?", choices=[""] * 400_000), "rewording.choices has 400,000 entries"),
    ],
)
def test_a_pair_past_a_bound_is_refused_by_the_field(wording: pb.Wording, said: str) -> None:
    refused = pair_of(pb.Pair(original=item(), rewording=wording))
    assert isinstance(refused, Rejection)
    assert refused.detail.startswith(said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (pb.StreamSettings(benchmark="b" * 1_000_000), "benchmark has 1,000,000 characters"),
        (pb.StreamSettings(benchmark="b" * (MAX_BENCHMARK_CHARACTERS + 1)), "benchmark has 129 characters"),
        (pb.StreamSettings(perturbation_config={"min_yield": float("nan")}), "min_yield"),
        (pb.StreamSettings(perturbation_config={"num_variants_per_item": 2**31 - 1}), "num_variants_per_item"),
        (pb.StreamSettings(perturbation_config={"perturbation_strategy": "a+" * 200_000}), "perturbation_strategy"),
    ],
)
def test_settings_past_a_bound_are_an_invalid_argument_with_the_field(settings: pb.StreamSettings, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        section_of(settings)


class Flat:
    """An encoder for which all texts are the same."""

    name, digest, fingerprint, precision = "flat", "sha256:0", "flat@0", "fp32"

    def encode(self, texts: Sequence[str]) -> Any:
        return np.ones((len(texts), 4), dtype=np.float32)


def labelled(question: str) -> pb.CalibrateRequest:
    pair = pb.Pair(original=item(question=question), rewording=pb.Wording(question="Another?"))
    return pb.CalibrateRequest(pair=pb.LabelledPair(pair=pair, label=pb.LabelledPair.LABEL_EQUIVALENT))


def test_a_calibration_keeps_so_many_bytes_and_no_more() -> None:
    limits = Limits(max_calibration_bytes=1 << 20)
    stream = CalibrationStream(pb.CalibrationSettings(benchmark="b"), Flat(), limits)
    messages = [labelled(f"{n} " + "x" * 100_000) for n in range(12)]
    for message in messages[:10]:
        stream.add([message])
    with pytest.raises(LimitError, match="at most 1 MiB of pairs"):
        stream.add(messages[10:])


def test_by_default_the_calibrations_at_once_stay_far_below_a_gibibyte() -> None:
    limits = Limits()
    assert limits.max_calibrations * limits.max_calibration_bytes <= 64 << 20
    assert limits.max_streams * (limits.max_in_flight_bytes + limits.max_message_bytes) <= 64 << 20


def test_messages_of_many_small_fields_cost_no_memory() -> None:
    for message in (
        b"\x12\x00" * (MAX_FIELDS + 1),
        # An item of empty options, one of empty rewordings, and one whose metadata is a map of nothing.
        _in_item(b"\x1a\x00" * MAX_FIELDS),
        _in_item(b"\x3a\x00" * MAX_FIELDS),
        _in_item(_delimited(0x32, b"\x0a\x00" * MAX_FIELDS)),
    ):
        assert reader(pb.PerturbRequest)(message) == Unreadable("the message has more than 10,000 fields")


def test_what_all_streams_read_ahead_stays_within_a_gibibyte_whatever_it_is_made_of() -> None:
    done = run_limited(
        "import resource\n"
        "from proctor.perturbation.serving.rpc import perturbation_pb2 as pb\n"
        "from proctor.runtime.grpc.messages import MAX_FIELDS, reader\n"
        "read, peak = reader(pb.PerturbRequest), lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10\n"
        "options = pb.PerturbRequest(item=pb.Item(choices=[''] * (MAX_FIELDS - 10))).SerializeToString()\n"
        "before = peak()\n"
        "messages = [read(options) for _ in range(50)]\n"
        "print((peak() - before) / (50 * len(options)))\n"
    )
    assert done.returncode == 0, done.stderr
    limits = Limits()
    on_the_wire = limits.max_streams * (limits.max_in_flight_bytes + limits.max_message_bytes)
    assert on_the_wire * float(done.stdout) < 600 << 20


class Silent:
    """A stream that is open and says nothing."""

    def __aiter__(self) -> Silent:
        return self

    async def __anext__(self) -> pb.PerturbRequest:
        await asyncio.Event().wait()
        raise AssertionError


def test_a_stream_that_says_no_settings_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "OPENING_S", 0.01)
    with pytest.raises(LimitError, match=r"settings did not come within 0\.01 s"):
        asyncio.run(service._opening(Silent()))


def _delimited(tag: int, content: bytes) -> bytes:
    length, digits = len(content), []
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([tag, *digits, length]) + content


def _in_item(content: bytes) -> bytes:
    return _delimited(0x12, content)
