"""Requests to a gateway: each field within its bounds, odd protobuf, and callers who hold on to what others need."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError, ProctorError
from proctor.gateway import client as client_module
from proctor.gateway import service as service_module
from proctor.gateway.desk import MAX_AUDIT_CHARACTERS
from proctor.gateway.fields import LONGEST_LIST
from proctor.gateway.limits import MAX_FILE_NAME_BYTES, MAX_FILES, MAX_SUITE_BYTES, MIB, Limits
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.perturbation.serving.rpc import perturbation_pb2
from proctor.runtime.grpc.calls import MAX_REFLECTIONS, MAX_STATUS_BYTES, Places, status_text
from proctor.runtime.grpc.health import MAX_SERVICE_CHARACTERS
from proctor.runtime.grpc.health import MAX_WATCHES as MAX_HEALTH_WATCHES
from proctor.runtime.grpc.messages import MAX_FIELDS, SMALL_MESSAGE_BYTES, Unreadable, has_fields_within, reader
from proctor.runtime.grpc.tokens import metadata_of, new_token
from tests.hostile.limited import limit, run_limited
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, refused, serving, stub
from tests.support import wait_until

Code = grpc.StatusCode
METHODS = ("Get", "Watch", "Pause", "Resume", "Cancel", "List", "Submit")
NAMING = METHODS[:5]


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


@pytest.fixture
def address(bench: AuditBench) -> Iterator[str]:
    bench.submitted()
    with serving(bench.desk) as address:
        yield address


@pytest.fixture
def channel(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address, LARGE) as channel:
        yield channel


LARGE = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


def raw(channel: grpc.Channel, method: str, message: bytes, **options: Any) -> bytes:
    """Call a method with bytes."""
    call = channel.unary_stream(f"/proctor.v1.AuditService/{method}")
    return b"".join(call(message, timeout=30, **options))


@pytest.mark.parametrize("method", NAMING)
@pytest.mark.parametrize("length", [MAX_AUDIT_CHARACTERS + 1, 1_000_000])
def test_an_id_of_any_length_is_an_invalid_argument_with_the_field_s_name(
    channel: grpc.Channel, method: str, length: int
) -> None:
    kind = getattr(pb, f"{method}Request")
    for sign in ("a", "%", "\0"):
        with refused(Code.INVALID_ARGUMENT, f"audit has {length:,} characters"):
            raw(channel, method, kind(audit=sign * length).SerializeToString())


def test_an_id_that_no_store_could_look_up_is_of_no_audit(channel: grpc.Channel) -> None:
    for audit in ("a\0b", "%", "_", "\u202e", "'; DROP TABLE audits; --"):
        with refused(Code.NOT_FOUND, "there is no audit"):
            raw(channel, "Get", pb.GetRequest(audit=audit).SerializeToString())


def submission(**changes: Any) -> bytes:
    return pb.SubmitRequest(**changes).SerializeToString()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (submission(suite=" " * (MAX_SUITE_BYTES + 1)), "suite has"),
        (
            submission(suite="{}", files=[pb.SuiteFile(name=str(n)) for n in range(MAX_FILES + 1)]),
            "files has 4 entries",
        ),
        (submission(suite="{}", files=[pb.SuiteFile(name="x" * (MAX_FILE_NAME_BYTES + 1))]), "files.name has"),
        (submission(suite="{}", priority=77), "suite"),
        (b"\x12\x00" * (MAX_FIELDS + 1), "more than 10,000 fields"),
    ],
)
def test_a_submission_past_a_bound_is_an_invalid_argument_with_the_field_s_name(
    channel: grpc.Channel, message: bytes, said: str
) -> None:
    with refused(Code.INVALID_ARGUMENT, said):
        raw(channel, "Submit", message)


@pytest.mark.parametrize("limit", [0, -1, LONGEST_LIST + 1, 2**31 - 1])
def test_a_list_is_of_so_many_audits_at_most(channel: grpc.Channel, limit: int) -> None:
    with refused(Code.INVALID_ARGUMENT, f"limit is {limit}, but must be 1 to 1000"):
        raw(channel, "List", pb.ListRequest(limit=limit).SerializeToString())


@pytest.mark.parametrize("number", [4, 77, -1, 2**31 - 1])
def test_an_unknown_enum_value_is_an_invalid_argument_with_those_that_there_are(
    bench: AuditBench, channel: grpc.Channel, number: int
) -> None:
    file = pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())
    with refused(Code.INVALID_ARGUMENT, f"priority is {number}, but must be one of PRIORITY_HIGH"):
        raw(channel, "Submit", submission(suite=bench.suite_text(), files=[file], priority=number))


ODD = {
    "cut off": b"\x0a\xff",
    "half of a surrogate pair": b"\x0a\x03\xed\xa0\x80",
    "a group in a group": b"\x13" * 10_000,
    "a number without end": b"\xff" * 50,
    "field 0": b"\x00\x00",
    "bytes": bytes(range(256)),
}


@pytest.mark.parametrize(("method", "odd"), [(method, odd) for method in NAMING for odd in ODD])
def test_a_message_that_cannot_be_read_is_an_invalid_argument(channel: grpc.Channel, method: str, odd: str) -> None:
    with refused(Code.INVALID_ARGUMENT, "the message"):
        raw(channel, method, ODD[odd])


@pytest.mark.parametrize("method", METHODS[:-1])
def test_a_message_that_says_little_is_not_large(channel: grpc.Channel, method: str) -> None:
    with refused(Code.INVALID_ARGUMENT, "the message has"):
        raw(channel, method, b"\x7a" + b"\xff\xff\xff\x00" + bytes(SMALL_MESSAGE_BYTES))


def test_a_message_that_inflates_is_refused_by_what_it_comes_to(channel: grpc.Channel) -> None:
    with refused(Code.RESOURCE_EXHAUSTED, "larger than max"):
        raw(channel, "Submit", bytes(64 * MIB), compression=grpc.Compression.Gzip)


def test_a_status_fits_into_a_header_whatever_it_quotes(bench: AuditBench, channel: grpc.Channel) -> None:
    for sign in ("\U0001f600", "\u202e", "\n", "%", "é"):
        text = status_text(ValueError(sign * 10_000))
        assert 0 < len(text) < 10_000
        file = pb.SuiteFile(name=sign * 2_000)
        with refused(Code.INVALID_ARGUMENT, "was not sent along"):
            raw(channel, "Submit", submission(suite=bench.suite_text(), files=[file]))
    assert status_text(ValueError("short")) == "short"
    assert len(status_text(ValueError("x" * 10_000))) == MAX_STATUS_BYTES


def test_the_fields_of_a_message_are_counted_wherever_they_are() -> None:
    deep = struct_pb2.Struct()
    deep["list"] = [{"a": [1, 2]}, "b"]
    item = perturbation_pb2.Item(item_id="i", choices=["a"] * 7, metadata=deep)
    message = perturbation_pb2.PerturbRequest(item=item).SerializeToString()
    count = next(
        most for most in range(100) if has_fields_within(message, perturbation_pb2.PerturbRequest.DESCRIPTOR, most)
    )
    # 1 item, 9 fields of it, an entry of the map with its key and value, its list, two values of it, and so on down.
    assert count == 1 + 9 + 1 + 2 + 1 + 2 + 2 + 1 + 2 + 1 + 2 + 2


def test_counting_fields_takes_no_longer_than_their_number_and_ends_on_any_bytes() -> None:
    kind = perturbation_pb2.PerturbRequest
    for seed in range(300):
        data = os.urandom(seed)
        assert has_fields_within(data, kind.DESCRIPTOR, 10_000)
        assert isinstance(reader(kind)(data), (kind, Unreadable))
    assert reader(kind)(b"\x12\x00" * (MAX_FIELDS + 1)) == Unreadable("the message has more than 10,000 fields")


def test_a_caller_takes_no_more_watches_than_its_share(bench: AuditBench) -> None:
    audit, alice, bob = bench.submitted(), new_token(), new_token()
    limits = Limits(max_watches=3, max_watches_each=2)
    tokens = {name: {"token": token, "operator": True} for name, token in (("alice", alice), ("bob", bob))}
    with serving(bench.desk, limits=limits, tokens=tokens) as address, stub(address) as service, ExitStack() as open_:

        def watch(token: str) -> None:
            seen = service.Watch(pb.WatchRequest(audit=audit), metadata=metadata_of(token), timeout=30)
            open_.callback(seen.cancel)
            next(seen)

        watch(alice)
        watch(alice)
        with refused(Code.RESOURCE_EXHAUSTED, "2 audits are being watched by one caller"):
            watch(alice)
        watch(bob)
        with refused(Code.RESOURCE_EXHAUSTED, "--max-watches"):
            watch(bob)


def test_places_are_given_back_whatever_happens_in_them() -> None:
    places = Places("calls are open", 2, 1, "try again")
    for _ in range(3):
        with suppress(ValueError), places.of("a"):
            raise ValueError
    with (
        places.of("a"),
        places.of("b"),
        pytest.raises(LimitError, match="2 calls are open, and no more"),
        places.of("c"),
    ):
        pass
    assert places.taken == 0


def test_callers_without_a_token_cannot_take_the_places_of_those_who_have_one(bench: AuditBench) -> None:
    token = new_token()
    with serving(bench.desk, token=token) as address, grpc.insecure_channel(address) as channel:
        probes = health_pb2_grpc.HealthStub(channel)
        watches = [probes.Watch(health_pb2.HealthCheckRequest(), timeout=30) for _ in range(200)]
        began = Counter(_first(watch) for watch in watches)
        # What one connection may not even open is refused by the connection.
        assert began.pop(Code.OK) == MAX_HEALTH_WATCHES
        assert began.keys() <= {Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}
        # Neither those who have a token are kept out, nor the probes by which the gateway is found alive.
        service = audit_pb2_grpc.AuditServiceStub(channel)
        assert not service.List(pb.ListRequest(), metadata=metadata_of(token), timeout=20).audits
        assert (
            probes.Check(health_pb2.HealthCheckRequest(), timeout=20).status == health_pb2.HealthCheckResponse.SERVING
        )
        with refused(Code.INVALID_ARGUMENT, "service has more than 256 characters"):
            probes.Check(health_pb2.HealthCheckRequest(service="x" * (MAX_SERVICE_CHARACTERS + 1)), timeout=20)
        with refused(Code.NOT_FOUND, ""):
            probes.Check(health_pb2.HealthCheckRequest(service="nothing"), timeout=20)
        for watch in watches:
            watch.cancel()


def _first(seen: Any) -> grpc.StatusCode:
    """OK where a stream says something, else the status that it ends with."""
    try:
        next(seen)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return Code.OK


def test_contracts_are_told_to_few_at_once(bench: AuditBench) -> None:
    with serving(bench.desk) as address, grpc.insecure_channel(address) as channel:
        held = threading.Event()

        def asked() -> Iterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            held.wait(20)

        ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        calls = [ask(asked(), timeout=30) for _ in range(MAX_REFLECTIONS)]
        for call in calls:
            assert health.SERVICE_NAME in {one.name for one in next(call).list_services_response.service}
        with refused(Code.RESOURCE_EXHAUSTED, "try again later"):
            next(ask(asked(), timeout=30))
        held.set()
        for call in calls:
            assert list(call) == []


def test_a_submission_that_does_not_come_holds_back_nobody_who_has_another_token(bench: AuditBench) -> None:
    alice, bob = new_token(), new_token()
    files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
    with serving(bench.desk, tokens={"alice": alice, "bob": bob}) as address, grpc.insecure_channel(address) as channel:
        held = threading.Event()

        def nothing() -> Iterator[bytes]:
            held.wait(20)
            yield from ()

        # Opened, and never sent: as many as a caller may open, they take one turn of two.
        submit = channel.stream_unary("/proctor.v1.AuditService/Submit")
        most = Limits().max_other_calls_each
        calls = [submit.future(nothing(), metadata=metadata_of(alice), timeout=30) for _ in range(most)]
        service = audit_pb2_grpc.AuditServiceStub(channel)
        wait_until(lambda: _is_out_of_calls(service, alice), what="the caller's calls to be open")
        request = pb.SubmitRequest(suite=bench.suite_text(), files=files)
        assert service.Submit(request, metadata=metadata_of(bob), timeout=20).audit.submitter == "bob"
        held.set()
        for call in calls:
            with pytest.raises(grpc.RpcError) as error:
                call.result()
            assert error.value.code() is Code.INVALID_ARGUMENT


def test_a_message_that_does_not_come_is_given_up(bench: AuditBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "SMALL_MESSAGE_S", 0.05)
    monkeypatch.setattr(service_module, "UPLOAD_S", 0.05)
    held = threading.Event()

    def nothing() -> Iterator[bytes]:
        held.wait(20)
        yield from ()

    with serving(bench.desk) as address, grpc.insecure_channel(address) as channel:
        for method in METHODS:
            call = channel.stream_stream(f"/proctor.v1.AuditService/{method}")
            with refused(Code.RESOURCE_EXHAUSTED, "the message did not come within 0.05 s"):
                list(call(nothing(), timeout=20))
        held.set()


def test_a_client_takes_no_larger_answer_than_a_list_can_be(
    bench: AuditBench, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_REPLY_BYTES", 32)
    with (
        client_module.remote_desk(f"grpc://{address}", None) as desk,
        pytest.raises(ProctorError, match="larger than max"),
    ):
        desk.audits()


def test_a_client_reads_no_file_that_no_server_takes(
    bench: AuditBench, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_FILE_BYTES", 16)
    with (
        client_module.remote_desk(f"grpc://{address}", None) as desk,
        pytest.raises(BadInputError, match="no server takes"),
    ):
        desk.submit(bench.suite_file())


def _is_out_of_calls(service: Any, token: str) -> bool:
    try:
        service.List(pb.ListRequest(), metadata=metadata_of(token), timeout=20)
    except grpc.RpcError as error:
        return error.code() is Code.RESOURCE_EXHAUSTED and "by one caller" in error.details()
    return False


def test_a_gateway_of_one_gibibyte_outlives_the_largest_messages_from_everyone_at_once(bench: AuditBench) -> None:
    token, most = new_token(), Limits().max_message_bytes - 64
    environment = {
        "PROCTOR_GATEWAY_TOKEN": token,
        "PROCTOR_LEDGER_URL": bench.settings.ledger_url,
        "PROCTOR_BROKER_URL": bench.settings.broker_url,
    }
    content = bytes(most - 4_096)
    submitted = submission(suite=bench.suite_text(), files=[pb.SuiteFile(name="items.jsonl", content=content)])
    attacks = [
        ("/proctor.v1.AuditService/Submit", submitted),
        ("/proctor.v1.AuditService/Submit", b"\x12\x00" * (most // 2)),
        ("/proctor.v1.AuditService/Get", b"\x0a" + _varint(most - 8) + bytes(most - 8)),
        (f"/{health.SERVICE_NAME}/Check", b"\x0a" + _varint(most - 8) + bytes(most - 8)),
    ] * 2

    def attack(method: str, message: bytes) -> grpc.StatusCode:
        with grpc.insecure_channel(address, LARGE) as line:
            try:
                line.unary_unary(method)(message, metadata=metadata_of(token), timeout=60)
            except grpc.RpcError as error:
                code: grpc.StatusCode = error.code()
                return code
        return Code.OK

    with gateway_process(bench.home, **environment) as (process, address):
        limit(process.pid)
        with ThreadPoolExecutor(len(attacks)) as threads:
            codes = list(threads.map(lambda one: attack(*one), attacks))
        assert set(codes) == {Code.INVALID_ARGUMENT}
        assert process.poll() is None
        with stub(address) as service:
            files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
            request = pb.SubmitRequest(suite=bench.suite_text(), files=files)
            assert service.Submit(request, metadata=metadata_of(token), timeout=20).audit.submitter == "default"


def _varint(number: int) -> bytes:
    return bytes([number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14 & 0x7F | 0x80, number >> 21])


def test_a_message_of_empty_messages_costs_no_memory() -> None:
    done = run_limited(
        "from proctor.gateway.rpc import audit_pb2\n"
        "from proctor.runtime.grpc.messages import reader\n"
        "print(reader(audit_pb2.SubmitRequest)(b'\\x12\\x00' * (128 << 20)).why)\n"
    )
    assert (done.returncode, done.stdout) == (0, "the message has more than 10,000 fields\n"), done.stderr
