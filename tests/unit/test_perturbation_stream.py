"""The parts of the gRPC service that need no process: the bounded intake, isolation of bad messages, addresses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NoReturn

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.item import Rejection
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.serving.intake import in_batches
from proctor.perturbation.serving.isolation import Line, worked_on
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.rpc import perturbation_pb2_grpc
from proctor.perturbation.serving.server import running
from proctor.perturbation.serving.stream_engine import StreamEngine
from proctor.runtime.grpc.serving import Address

SMALL = Limits(max_in_flight=10, max_in_flight_bytes=1_000, batch_messages=4, batch_bytes=100)


class Source:
    """Numbers from 0, which knows how far it was read and whether it was left."""

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.count, self.error = count, error
        self.read = 0
        self.left = False

    async def __aiter__(self) -> AsyncIterator[int]:
        try:
            while self.read < self.count:
                self.read += 1
                yield self.read - 1
            if self.error is not None:
                raise self.error
        finally:
            self.left = True


async def _idle() -> None:
    """Let every task run until it waits."""
    for _ in range(1_000):
        await asyncio.sleep(0)


@given(sizes=st.lists(st.integers(1, 150), max_size=60))
def test_batches_keep_order_and_limits_and_lose_nothing(sizes: list[int]) -> None:
    async def collect() -> list[list[int]]:
        async with aclosing(in_batches(Source(len(sizes)), sizes.__getitem__, SMALL)) as batches:
            return [batch async for batch in batches]

    batches = asyncio.run(collect())
    assert [number for batch in batches for number in batch] == list(range(len(sizes)))
    assert all(1 <= len(batch) <= SMALL.batch_messages for batch in batches)
    assert all(len(batch) == 1 or sum(sizes[number] for number in batch) <= SMALL.batch_bytes for batch in batches)


@pytest.mark.parametrize(("size", "most"), [(1, 10 + 1), (400, 3 + 1)])
def test_reading_stops_while_the_work_does(size: int, most: int) -> None:
    source = Source(1_000)

    async def take_one() -> int:
        async with aclosing(in_batches(source, lambda _: size, SMALL)) as batches:
            batch = await anext(batches)
            await _idle()
            return source.read - len(batch)

    assert asyncio.run(take_one()) <= most


def test_a_message_is_handed_on_without_waiting_for_a_full_batch() -> None:
    async def first() -> list[int]:
        gate: asyncio.Queue[int] = asyncio.Queue()

        async def slow() -> AsyncIterator[int]:
            while True:
                yield await gate.get()

        async with aclosing(in_batches(slow(), lambda _: 1, SMALL)) as batches:
            await gate.put(7)
            return await anext(batches)

    assert asyncio.run(first()) == [7]


def test_leaving_the_batches_ends_the_reading() -> None:
    source = Source(1_000)

    async def leave() -> int:
        async with aclosing(in_batches(source, lambda _: 1, SMALL)) as batches:
            await anext(batches)
        read = source.read
        await _idle()
        return read

    read = asyncio.run(leave())
    assert source.read == read < source.count
    assert source.left


def test_an_error_of_the_source_is_the_reader_s() -> None:
    async def drain() -> None:
        async with aclosing(in_batches(Source(3, ValueError("broken")), lambda _: 1, SMALL)) as batches:
            async for _ in batches:
                pass

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(drain())


def _lines(contents: Sequence[int | Rejection]) -> list[Line[int]]:
    return [Line(place, f"i{place}", content) for place, content in enumerate(contents)]


@given(numbers=st.lists(st.integers(0, 9), max_size=40))
def test_only_the_messages_that_fail_are_refused(numbers: list[int]) -> None:
    def halve(batch: Sequence[int]) -> list[float]:
        assert batch
        if any(number % 3 == 1 for number in batch):
            raise RuntimeError("cannot")
        return [number / 2 for number in batch]

    for line, number in zip(worked_on(_lines(numbers), halve), numbers, strict=True):
        if number % 3 == 1:
            assert isinstance(line.content, Rejection)
            assert (line.content.reason, line.content.detail) == ("failed", "RuntimeError: cannot")
        else:
            assert line.content == number / 2


def test_what_was_refused_before_keeps_its_place_and_is_not_worked_on() -> None:
    refused = Rejection(item_id="", reason="empty")
    done = worked_on(_lines([1, refused, 2]), lambda batch: [number * 10 for number in batch])
    assert done == [Line(0, "i0", 10), Line(1, "i1", refused), Line(2, "i2", 20)]


def test_a_store_that_fails_is_no_fault_of_an_item() -> None:
    def fail(batch: Sequence[int]) -> list[int]:
        raise StoreError("no disk")

    with pytest.raises(StoreError):
        worked_on(_lines([1, 2]), fail)


@pytest.mark.parametrize(
    ("text", "loopback"),
    [("127.0.0.1:50051", True), ("127.9.9.9:1", True), ("localhost:0", True), ("[::1]:80", True), ("0.0.0.0:80", False),
     ("[::]:80", False), ("proctor.example:443", False)],
)  # fmt: skip
def test_an_address_knows_whether_others_can_reach_it(text: str, loopback: bool) -> None:
    address = Address.parse(text)
    assert str(address) == text
    assert address.loopback is loopback


@pytest.mark.parametrize("text", ["", "50051", ":50051", "a:", "a:x", "a:65536", "::1:50051", "[::1:5", "a:\u0665"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInputError, match=r"must be host:port, e\.g\. 127\.0\.0\.1:50051"):
        Address.parse(text)


class OneDirection:
    """An encoder to which every text means the same."""

    name = digest = fingerprint = "one"

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


class BrokenRows:
    """A record store that has gone away."""

    def library_get(self, keys: Sequence[str]) -> NoReturn:
        raise OperationalError("SELECT secret FROM variant_library", {"key": keys}, Exception("disk I/O error"))

    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> NoReturn:
        self.library_get(list(rows))

    library_origins = library_get


def test_a_record_store_that_fails_is_unavailable_and_its_statement_stays_inside(tmp_path: Path) -> None:
    config = pb.PerturbationConfig(perturbation_strategy="option_shuffle")
    stream = [
        pb.PerturbRequest(settings=pb.StreamSettings(perturbation_config=config)),
        pb.PerturbRequest(item=pb.Item(item_id="a", question="Q?", choices=["1", "2"], target="2")),
    ]

    async def ask() -> grpc.aio.AioRpcError:
        engine = StreamEngine(OneDirection, VariantLibrary(BrokenRows()), tmp_path)
        async with (
            running(engine, Address("127.0.0.1", 0), limits=Limits()) as address,
            grpc.aio.insecure_channel(str(address)) as channel,
        ):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                async for _ in perturbation_pb2_grpc.PerturbationStub(channel).Perturb(iter(stream), timeout=20):
                    pass
            return raised.value

    error = asyncio.run(ask())
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert error.details() == "the record store failed (OperationalError); see the server's log"
