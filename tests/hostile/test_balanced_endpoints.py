"""What replicas of an endpoint can do to a worker by their metrics, and whoever answers for their names by his."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.domain.endpoint import Balance, DnsDiscovery, EndpointSliceDiscovery, EndpointSpec, Replica
from proctor.domain.host import is_address
from proctor.inference.balancing.discovery.dns import DnsNames
from proctor.inference.balancing.discovery.found import Found
from proctor.inference.balancing.discovery.slice_table import SliceTable
from proctor.inference.balancing.member import Member
from proctor.inference.balancing.members import MAX_MEMBERS, Members
from proctor.inference.balancing.queue_watch import (
    MAX_METRICS_BYTES,
    MAX_QUEUED,
    PENDING,
    QueueWatch,
    pending_requests,
)
from tests.hostile.limited import run_limited
from tests.hostile.loop_watch import LONGEST_STEP_S, loop_watch
from tests.hostile.raw_http import raw_http, response
from tests.scripted_servers import ScriptedServer

GOOD = f'{PENDING}{{model="m",version="1"}} 3\n'.encode()


def spec(url: str = "grpc://a", **changes: Any) -> EndpointSpec:
    return EndpointSpec(backend="triton", url=url, served_name="m", model_version=None, **changes)


def member(metrics_url: str) -> Member:
    one = spec(balance=Balance.LEAST_LOADED)
    return Member(Replica(url=metrics_url, metrics_url=metrics_url), one, ScriptedServer(one), random.Random(0))


def looked_at(*members: Member, until: Callable[[], bool], within_s: float = 20.0) -> None:
    async def main() -> None:
        watching = asyncio.create_task(QueueWatch("m", lambda: members, every_s=0.01).run())
        try:
            async with asyncio.timeout(within_s):
                while not until():
                    assert not watching.done(), watching
                    await asyncio.sleep(0.01)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(main())


LOOKED_IN_ONE_GIB = """
import asyncio, random, sys
sys.path.insert(0, sys.argv[2])
from tests.hostile.test_balanced_endpoints import member, looked_at

one = member(sys.argv[1])
one.queued = 9
looked_at(one, until=lambda: one.queued == 0)
print("no queue")
"""


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_metrics_that_inflate_or_never_end_are_let_go_in_one_gib(coding: str) -> None:
    def endless() -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\n\r\n" % coding.encode()
        bomb = gzip.compress(gzip.compress(bytes(64 << 20))) if coding == "gzip" else bytes(1 << 16)
        while True:
            yield bomb

    root = __file__.rpartition("/tests/")[0]
    with raw_http(lambda _: endless()) as url:
        ended = run_limited(LOOKED_IN_ONE_GIB, url, root)
    assert ended.stdout == "no queue\n", ended.stderr[-2000:]


ODD_METRICS = {
    "a line of labels": b'nv_inference_pending_request_count{model="m",' + b'a="",' * 200_000 + b"} 3",
    "lines of nothing": b"\n" * MAX_METRICS_BYTES,
    "the name alone": (PENDING.encode() + b"{") * (MAX_METRICS_BYTES // 36),
    "spaces": PENDING.encode() + b'{model="m"}' + b" " * (MAX_METRICS_BYTES // 2) + b"x",
    "commas": (PENDING.encode() + b"{" + b"," * 1000 + b"} 1\n") * 900,
    "very many versions": GOOD * (MAX_METRICS_BYTES // len(GOOD)),
    "no text": bytes(range(256)) * 4096,
}


@pytest.mark.parametrize("kind", ODD_METRICS)
def test_metrics_are_read_in_linear_time(kind: str) -> None:
    started_s = time.thread_time()
    pending_requests(ODD_METRICS[kind], "m")
    assert time.thread_time() - started_s < LONGEST_STEP_S


@pytest.mark.parametrize(
    ("value", "queued"),
    [
        (b"1e308", MAX_QUEUED),
        (b"9" * 32, MAX_QUEUED),
        (b"-5", 0),
        (b"9" * 5_000, None),
        (b"NaN", None),
        (b"+Inf", None),
        (b"1e999", None),
        (b"e.e", None),
    ],
)
def test_a_queue_is_a_count_within_reason_or_unknown(value: bytes, queued: int | None) -> None:
    assert pending_requests(PENDING.encode() + b'{model="m",version="1"} ' + value, "m") == queued


def test_a_name_with_quotes_is_found_and_one_inside_a_label_is_not() -> None:
    line = PENDING.encode() + b'{model="a\\"b",version="model=\\"m\\""} 4\n'
    assert pending_requests(line, 'a"b') == 4
    assert pending_requests(line, "m") is None


def test_a_server_that_drips_its_metrics_holds_up_nobody_s_queue() -> None:
    def drip() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b"\n"
            time.sleep(0.05)

    with raw_http(lambda _: drip()) as slow, raw_http(lambda _: [response(GOOD)]) as good, loop_watch() as watch:
        dripping, quick = member(slow), member(good)
        dripping.queued = 9
        looked_at(dripping, quick, until=lambda: dripping.queued == 0 and quick.queued == 3)
    assert watch.longest_s < LONGEST_STEP_S


def test_what_is_no_http_ends_no_watch() -> None:
    with raw_http(lambda _: [b"\x00\xff" * 500 + b"\r\n\r\n"]) as odd, raw_http(lambda _: [response(GOOD)]) as good:
        strange, quick = member(odd), member(good)
        strange.queued = 9
        looked_at(strange, quick, until=lambda: strange.queued == 0 and quick.queued == 3)


class Names:
    """A discovery that finds what it was given, once."""

    def __init__(self, found: Sequence[Found]) -> None:
        self._found = found

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        found(self._found)


def test_a_name_with_very_many_addresses_fills_no_memory(caplog: pytest.LogCaptureFixture) -> None:
    many = [Found(Replica(url=f"grpc://10.0.{n // 250}.{n % 250}:8001")) for n in range(10_000)]

    async def main() -> int:
        members = Members(
            spec(), lambda one: ScriptedServer(one), random.Random(0), changed=lambda: None, discovery=Names(many)
        )
        await members.found(5.0)
        in_use = len(members.in_use)
        await members.close()
        return in_use

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(main()) == MAX_MEMBERS
    assert f"has 10000 replicas; the first {MAX_MEMBERS} of them are asked" in caplog.text


def test_dns_answers_that_are_no_addresses_are_left_out_and_end_no_watch() -> None:
    odd = ["fe80::1%eth0", "evil.example", "10.0.0.1@evil", "", "10.0.0.1", "::1/../x"]

    async def look_up(_: str) -> Sequence[str]:
        return odd

    found: list[Sequence[Found]] = []

    async def main() -> None:
        names = DnsNames(DnsDiscovery(url="grpc://triton:8001"), look_up=look_up)
        watching = asyncio.create_task(names.watch(found.append, pytest.fail))
        while not found:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not watching.done()
        watching.cancel()

    asyncio.run(main())
    assert [one.replica.url for one in found[0]] == ["grpc://10.0.0.1:8001"]
    assert not any(is_address(one) for one in odd if one != "10.0.0.1")


def test_endpoint_slices_with_odd_addresses_give_only_the_others() -> None:
    table = SliceTable(EndpointSliceDiscovery(namespace="n", service="s", port="grpc"))
    table.put(
        SimpleNamespace(
            metadata=SimpleNamespace(name="one"),
            address_type="IPv4",
            ports=[SimpleNamespace(name="grpc", port=8001)],
            endpoints=[SimpleNamespace(conditions=None, addresses=["10.0.0.1", "evil.example/@", "10.0.0.1%x"])],
        )
    )
    assert [one.replica.url for one in table.found()] == ["grpc://10.0.0.1:8001"]
