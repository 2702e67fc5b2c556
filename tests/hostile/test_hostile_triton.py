"""A Triton server that is none: what it says of its models, and streams that never end, never answer or never stop."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import socket
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tritonclient.grpc import service_pb2

from proctor.domain.answer_bounds import max_answer_bytes
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.triton.backend import TritonBackend
from proctor.inference.triton.facts import MAX_INPUTS, read_facts
from proctor.inference.triton.pieces import AnswerBounds, Pieces
from proctor.inference.triton.stub import (
    MAX_CONFIG_BYTES,
    MAX_ENVELOPE_BYTES,
    MAX_MESSAGE_BYTES,
    read_streamed,
)
from proctor.inference.triton.wire import Piece, read_piece
from proctor.inference.worker.backend import Probe, TrialFailure
from proctor.inference.worker.token_counts import UNSEEN_TOKENS
from tests.hostile.limited import run_limited
from tests.hostile.loop_watch import LONGEST_STEP_S, loop_watch
from tests.hostile.raw_grpc import Reply, raw_grpc
from tests.unit.test_triton_client import ALL_INPUTS, ask, piece, prompt_of, refusal, spec, text_tensor

METADATA = service_pb2.ServerMetadataResponse(name="triton", version="2").SerializeToString()
READY = service_pb2.ModelReadyResponse(ready=True).SerializeToString()


def plainly(*messages: bytes) -> Reply:
    return "identity", [(False, message) for message in messages]


def used(url: str, *, deadline_s: float = 5.0) -> tuple[Probe, list[Completion] | Exception]:
    """What a probe says of a server, and what becomes of a prompt."""

    async def run() -> tuple[Probe, list[Completion] | Exception]:
        backend = TritonBackend(spec(url))
        trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")
        try:
            found = await backend.probe()
            try:
                return found, await backend.complete([trial], Decoding(), deadline_s=deadline_s)
            except EndpointError as error:
                return found, error
        finally:
            await backend.close()

    return asyncio.run(run())


ASKED_IN_ONE_GIB = """
import asyncio, sys
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.triton.backend import TritonBackend

async def main():
    one = TritonBackend(EndpointSpec(backend="triton", url=sys.argv[1], served_name="m", model_version=None))
    print((await one.probe()).detail)
    trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")
    for completion in await one.complete([trial], Decoding(), deadline_s=20.0):
        print(completion.error)
    await one.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_message_that_would_have_to_be_unpacked_is_refused_in_one_gib(
    encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(bytes(48 << 20))
    with raw_grpc(lambda _: (encoding, [(True, bomb)])) as url:
        ended = run_limited(ASKED_IN_ONE_GIB, url)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count("disabled") + ended.stdout.count("not supported") == 2, ended.stdout


@pytest.mark.parametrize("data", [b"\xff" * 40, b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\x80" * 20, b"\x07"])
def test_what_is_no_message_is_said_to_be_none_and_is_no_defect_of_the_worker(data: bytes) -> None:
    with raw_grpc(lambda _: plainly(data)) as url:
        found, got = used(url)
    assert found.detail == "the server sent what is no message of Triton's protocol"
    assert isinstance(got, list)
    assert got[0].error == found.detail
    with pytest.raises(TrialFailure, match="no message of Triton's protocol"):
        read_streamed(data)


def test_a_configuration_past_the_bound_is_not_parsed() -> None:
    config = service_pb2.ModelConfigResponse()
    config.config.parameters["json"].string_value = "{" * (MAX_CONFIG_BYTES + 1)
    answers = itertools.cycle((METADATA, READY, config.SerializeToString()))
    with raw_grpc(lambda _: plainly(next(answers))) as url:
        found, _ = used(url)
    assert not found.ok
    assert f"the limit is {MAX_CONFIG_BYTES:,}" in found.detail


def test_a_model_of_very_many_inputs_is_refused_quickly() -> None:
    config = service_pb2.ModelConfigResponse()
    for _ in range(60_000):
        config.config.input.add()
    assert len(config.SerializeToString()) < MAX_CONFIG_BYTES
    started_s = time.process_time()
    with pytest.raises(EndpointError, match=f"has 60,000 inputs; .* {MAX_INPUTS}"):
        read_facts(config.config, "m", "grpc://host:8001")
    assert time.process_time() - started_s < LONGEST_STEP_S


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("unknown types", {"data_type": 99}),
        ("no names", {"name": ""}),
        ("control characters", {"name": "text\x1b[2J_input"}),
        ("long names", {"name": "x" * 100_000}),
    ],
)
def test_a_senseless_configuration_is_an_error_in_words(name: str, changes: dict[str, Any]) -> None:
    config = service_pb2.ModelConfigResponse()
    config.config.input.add(**changes)
    with pytest.raises(EndpointError, match="takes the inputs") as raised:
        read_facts(config.config, "m", "grpc://host:8001")
    assert len(str(raised.value)) < 600
    assert str(raised.value).isprintable()


def submessages(count: int) -> bytes:
    """A streamed response of so many empty tensors: two bytes each on the wire, a hundred in memory."""
    inner = b"\x2a\x00" * count
    return b"\x12" + _varint(len(inner)) + inner


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.mark.parametrize(
    "data",
    [
        submessages(1_900_000),
        b"\x0a" + _varint(3 << 20) + bytes(3 << 20),
        b"\x12" + _varint(1 << 20) + b"\x32\x00" * (1 << 19),
        b"\x12\x00" * 1_900_000,
    ],
    ids=["empty tensors", "a long error", "empty contents", "many responses in one"],
)
def test_a_message_that_is_small_on_the_wire_and_large_in_memory_is_refused_before_it_is_parsed(data: bytes) -> None:
    assert len(data) < MAX_MESSAGE_BYTES
    tracemalloc.start()
    started_s = time.process_time()
    try:
        with pytest.raises(TrialFailure, match=f"more than {MAX_ENVELOPE_BYTES:,} bytes or"):
            read_streamed(data)
        assert time.process_time() - started_s < LONGEST_STEP_S
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_largest_answer_passes_the_bounds_of_a_message() -> None:
    text = "x" * max_answer_bytes(131_072)
    read = read_streamed(piece("1", text, finish_reason=text_tensor(b"stop")).SerializeToString())
    assert read_piece(read.infer_response).text == text.encode()


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "complaint"),
    [
        ("FP32", [1], text_tensor(b"4"), "text_output is of type FP32, not BYTES"),
        ("BYTES", [2**62, -1], text_tensor(b"4"), None),
        ("BYTES", [0], b"", "without an answer"),
        ("BYTES", [1], b"\xff\xff\xff\xff4", "half of a string tensor"),
        ("BYTES", [1], b"\x01", "half of a string tensor"),
    ],
)
def test_a_tensor_of_another_type_or_shape_is_not_read_as_a_text(
    datatype: str, shape: list[int], raw: bytes, complaint: str | None
) -> None:
    response = service_pb2.ModelInferResponse()
    response.outputs.add(name="text_output", datatype=datatype, shape=shape)
    response.raw_output_contents.append(raw)
    pieces = Pieces(AnswerBounds(8))
    if complaint is None:
        pieces.add(read_piece(response))
        assert pieces.answer().text == "4"
    else:
        with pytest.raises(TrialFailure, match=complaint):
            _answer(pieces, response)


def _answer(pieces: Pieces, response: Any) -> None:
    pieces.add(read_piece(response))
    pieces.answer()


def test_a_stream_of_empty_pieces_that_never_ends_is_ended_by_their_number() -> None:
    async def endless(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            while True:
                yield piece(request.id, "", final=False)

    started_s = time.monotonic()
    [got], _ = ask(endless, "a", deadline_s=60.0, decoding=Decoding(max_tokens=100))
    assert got.error == "the answer comes in more than 164 pieces, of 100 tokens"
    assert not got.retryable
    assert time.monotonic() - started_s < 30.0


def test_pieces_keep_no_more_than_the_text() -> None:
    pieces = Pieces(AnswerBounds(131_072))
    tracemalloc.start()
    try:
        for _ in range(100_000):
            pieces.add(Piece(b"x", "unknown", 1, 1, False))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (len(pieces.answer().text), pieces.answer().output_tokens) == (100_000, 100_000)


def test_one_trial_s_endless_answer_costs_the_others_nothing() -> None:
    async def one_is_long(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            text = "x" * (max_answer_bytes(8) + 1) if prompt_of(request) == "long" else "B"
            yield piece(request.id, text)

    got, _ = ask(one_is_long, "a", "long", "b", decoding=Decoding(max_tokens=8))
    assert [one.text for one in got] == ["B", "", "B"]
    assert "8 tokens have at most" in str(got[1].error)


@pytest.mark.parametrize("request_id", ["", "77", "of nobody"])
def test_responses_that_nobody_asked_for_end_the_stream_and_not_the_worker(request_id: str) -> None:
    async def wild(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for _ in requests:
            while True:
                yield piece(request_id, "x" * 10_000)

    with loop_watch() as watch:
        [got], _ = ask(wild, "a", deadline_s=60.0)
    assert "more that it was not asked for" in str(got.error)
    assert got.latency_ms < 30_000
    assert watch.longest_s < LONGEST_STEP_S


def test_responses_after_the_final_one_change_nothing_and_have_a_bound() -> None:
    async def goes_on(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        first = await anext(requests)
        yield piece(first.id, "right")
        for _ in range(50):
            yield piece(first.id, "wrong")
        second = await anext(requests)
        yield piece(second.id, "right too")

    got, _ = ask(goes_on, "a", "b")
    assert [one.text for one in got] == ["right", "right too"]


def test_an_error_without_an_id_ends_the_stream_for_all_with_its_words_cut() -> None:
    async def fails(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for _ in requests:
            yield refusal("", "no\x1b[2J" * 5_000)

    [got], _ = ask(fails, "a", deadline_s=20.0)
    assert str(got.error).startswith("no [2J")
    assert len(str(got.error)) <= 1000


def test_a_stream_that_never_answers_ends_at_the_deadline() -> None:
    async def silent(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for _ in requests:
            await asyncio.Event().wait()
            yield

    [got], _ = ask(silent, "a", deadline_s=0.3)
    assert "before the deadline" in str(got.error)
    assert got.retryable


@pytest.mark.parametrize("count", [b"\xff\xff\xff\x7f", (UNSEEN_TOKENS + 513).to_bytes(4, "little")])
def test_counts_that_no_such_request_can_have_are_left_out(count: bytes) -> None:
    async def boasts(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece(request.id, "B", num_input_tokens=count, num_output_tokens=count)

    [got], _ = ask(boasts, "a", inputs=ALL_INPUTS)
    assert (got.text, got.output_tokens) == ("B", None)
    assert got.input_tokens in (None, UNSEEN_TOKENS + 513)
    assert (got.input_tokens or 0) <= UNSEEN_TOKENS + 4


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes connections and says nothing at all."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"grpc://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_says_nothing_costs_a_shard_its_deadline_and_no_more() -> None:
    async def run(url: str) -> list[Completion]:
        backend = TritonBackend(spec(url))
        try:
            return await backend.complete(
                [Trial(arm=Arm.CANONICAL, item_id="1", prompt="?")], Decoding(), deadline_s=0.5
            )
        finally:
            await backend.close()

    with silent_server() as url:
        started_s = time.monotonic()
        [got] = asyncio.run(run(url))
    assert got.retryable
    assert time.monotonic() - started_s < 10.0
