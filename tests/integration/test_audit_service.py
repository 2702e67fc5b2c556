"""The audit service: the real server and real stores, a client over a socket."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.messages import Priority, StartAudit, TakeOn
from proctor.domain.trial import ANSWER_STAGE
from proctor.gateway.limits import Limits
from proctor.gateway.reading import Counts
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.server import running
from proctor.gateway.service import SERVICE
from proctor.router.audit import view
from proctor.runtime.grpc.serving import Address
from proctor.runtime.records.audit_state import AuditState
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, refused, serving, stub
from tests.support import wait_until

Code = grpc.StatusCode
TOKEN = "open-sesame-0123456789abcdef"


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


@pytest.fixture
def service(bench: AuditBench) -> Iterator[audit_pb2_grpc.AuditServiceStub]:
    with serving(bench.desk) as address, stub(address) as service:
        yield service


def request(bench: AuditBench, **changes: Any) -> pb.SubmitRequest:
    files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
    fields: dict[str, Any] = {"suite": bench.suite_text(), "files": files, **changes}
    return pb.SubmitRequest(**fields)


def test_a_submitted_suite_is_on_record_and_begun_before_the_call_returns(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    reply = service.Submit(request(bench, priority=pb.PRIORITY_HIGH))
    assert bench.sent == [StartAudit(audit_id=reply.audit.audit_id)]
    assert view(bench.records, reply.audit.audit_id).inputs.priority is Priority.HIGH
    assert (reply.audit.state, reply.audit.model_id) == (pb.AUDIT_STATE_CREATED, "m")
    assert not reply.HasField("stopped_at")


def test_a_suite_has_the_same_subject_through_the_service_as_on_the_server_itself(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    audit = bench.submitted()
    reply = service.Submit(request(bench))
    assert (reply.audit.audit_id, reply.stopped_at) == (audit, pb.AUDIT_STATE_CREATED)


def test_no_file_of_the_server_is_read_under_a_name_in_a_suite(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    dataset = {"benchmark_name": "sums", "path": str(bench.home / "items.jsonl"), "sample_size": 8}
    suite = bench.suite_text(dataset_config=dataset)
    with refused(Code.INVALID_ARGUMENT, "was not sent along"):
        service.Submit(request(bench, suite=suite, files=[]))


@pytest.mark.parametrize(
    "name", ["../../etc/items.jsonl", "/etc/items.jsonl", "a/..", ".", "\u202egnp.jsonl", "x" * 900]
)
def test_a_file_s_name_says_nothing_of_where_it_is_written(
    name: str, bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    before = sorted(path.name for path in bench.home.iterdir())
    dataset = {"benchmark_name": "sums", "path": name, "sample_size": 8}
    content = (bench.home / "items.jsonl").read_bytes()
    suite = bench.suite_text(dataset_config=dataset)
    call = request(bench, suite=suite, files=[pb.SuiteFile(name=name, content=content)])
    if name.endswith(".jsonl"):
        assert service.Submit(call).audit.audit_id
    else:
        # Without a suffix nobody knows what the file is, which is the caller's to mend.
        with refused(Code.INVALID_ARGUMENT, ""):
            service.Submit(call)
    assert set(before) <= {path.name for path in bench.home.iterdir()} <= {*before, "artifacts"}


def test_a_fault_in_a_file_is_told_under_the_caller_s_name(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    files = [pb.SuiteFile(name="items.jsonl", content=b"{}\n")]
    with refused(Code.INVALID_ARGUMENT, "\n  items.jsonl:1: "):
        service.Submit(request(bench, files=files))
    assert bench.records.audits() == []


def test_what_cannot_be_used_is_an_invalid_argument_and_leaves_nothing(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    twice = [pb.SuiteFile(name="items.jsonl", content=b"")] * 2
    faults: list[tuple[dict[str, Any], str]] = [
        ({"suite": "{"}, "suite"),
        ({"suite": ""}, "suite"),
        ({"files": twice}, "sent twice"),
        ({"files": [*request(bench).files, pb.SuiteFile(name="more.csv")]}, "names no file more.csv"),
        ({"priority": 77}, "PRIORITY_HIGH"),
    ]
    for changes, match in faults:
        with refused(Code.INVALID_ARGUMENT, match):
            service.Submit(request(bench, **changes))
    assert (bench.records.audits(), bench.sent) == ([], [])


def test_a_message_past_the_limit_is_refused(bench: AuditBench) -> None:
    with (
        serving(bench.desk, limits=Limits(max_message_bytes=4_096)) as address,
        stub(address) as service,
        refused(Code.RESOURCE_EXHAUSTED, "larger than max"),
    ):
        service.Submit(request(bench, suite=" " * 5_000))


def test_an_audit_is_told_with_what_it_asked_and_what_was_given_up(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    audit = bench.answering()
    bench.answer(audit, "s0", "s1")
    bench.give_up(audit, "s2", "the endpoint refuses the prompt")
    told = service.Get(pb.GetRequest(audit=audit))
    assert (told.state, told.stage) == (pb.AUDIT_STATE_ANSWERING, ANSWER_STAGE)
    assert (told.trials.planned, told.trials.done, told.trials.under_way, told.trials.dead) == (128, 64, 0, 32)
    assert [(one.cause, one.shards) for one in told.failures] == [("the endpoint refuses the prompt", 1)]
    assert (told.spent.trials, told.spent.input_tokens, told.spent.output_tokens) == (64, 200, 20)


def test_an_audit_is_named_by_a_beginning_that_no_other_shares(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    first, second = bench.submitted("first"), bench.submitted("second")
    assert service.Get(pb.GetRequest(audit=first[:6])).audit_id == first
    # The newest first; which is that is told by seconds, and by the ids within one.
    listed = [audit.audit_id for audit in service.List(pb.ListRequest()).audits]
    assert set(listed) == {first, second}
    with refused(Code.NOT_FOUND, f"on record are {', '.join(listed)}"):
        service.Get(pb.GetRequest(audit="no-such-audit"))
    with refused(Code.NOT_FOUND, "named by its id"):
        service.Get(pb.GetRequest())
    with refused(Code.NOT_FOUND, "there is no audit"):
        service.Get(pb.GetRequest(audit="%"))


def test_audits_are_listed_up_to_a_limit(bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub) -> None:
    there = {bench.submitted("first"), bench.submitted("second")}
    assert {audit.audit_id for audit in service.List(pb.ListRequest()).audits} == there
    assert len(service.List(pb.ListRequest(limit=1)).audits) == 1
    with refused(Code.INVALID_ARGUMENT, "limit is 0"):
        service.List(pb.ListRequest(limit=0))


def test_a_watch_follows_an_audit_to_its_decision_and_ends(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    audit = bench.answering()
    seen = service.Watch(pb.WatchRequest(audit=audit, interval_s=0.1), timeout=30)
    assert next(seen).trials.done == 0
    bench.answer(audit, "s0")
    assert next(told for told in seen if told.trials.done).trials.done == 32
    bench.decide(audit, DecisionOutcome.BLOCK)
    *_, last = seen
    assert (last.state, last.decision.outcome) == (pb.AUDIT_STATE_DECIDED, pb.OUTCOME_BLOCK)
    assert [reason.text for reason in last.decision.reasons] == ["15 % of the items are leaked"]
    assert last.decision.registry_version == "7"


def test_a_watch_of_an_audit_that_stands_still_says_so_once(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    audit = bench.submitted()
    seen = service.Watch(pb.WatchRequest(audit=audit, interval_s=0.1), timeout=30)
    told = [next(seen).state]
    threading.Timer(1.0, bench.set, (audit, AuditState.FAILED, "gone")).start()
    told += [audit.state for audit in seen]
    assert told == [pb.AUDIT_STATE_CREATED, pb.AUDIT_STATE_FAILED]


def test_watches_leave_room_for_other_calls(bench: AuditBench) -> None:
    audit = bench.submitted()
    with serving(bench.desk, limits=Limits(max_watches=1)) as address, stub(address) as service:
        first = service.Watch(pb.WatchRequest(audit=audit), timeout=30)
        next(first)
        with refused(Code.RESOURCE_EXHAUSTED, "--max-watches"):
            next(service.Watch(pb.WatchRequest(audit=audit), timeout=30))
        assert service.Get(pb.GetRequest(audit=audit)).audit_id == audit


def test_a_caller_who_leaves_a_watch_gives_back_the_place(bench: AuditBench) -> None:
    audit = bench.submitted()
    with serving(bench.desk, limits=Limits(max_watches=1)) as address, stub(address) as service:

        def there_is_room() -> bool:
            with suppress(grpc.RpcError):
                return bool(next(service.Watch(pb.WatchRequest(audit=audit), timeout=30)).audit_id)
            return False

        first = service.Watch(pb.WatchRequest(audit=audit, interval_s=0.1), timeout=30)
        next(first)
        assert not there_is_room()
        first.cancel()
        wait_until(there_is_room, what="room for another watch")


def test_submissions_at_the_same_time_begin_one_audit_of_a_suite(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    calls = [service.Submit.future(request(bench)) for _ in range(8)]
    (audit,) = {call.result(timeout=30).audit.audit_id for call in calls}
    assert [record.audit_id for record in bench.records.audits()] == [audit]


@pytest.mark.parametrize("interval_s", [0.0, 61.0, float("nan")])
def test_a_watch_at_an_interval_that_cannot_be_is_refused(
    interval_s: float, bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    with refused(Code.INVALID_ARGUMENT, "interval_s"):
        next(service.Watch(pb.WatchRequest(audit=bench.submitted(), interval_s=interval_s)))


def test_an_audit_is_paused_and_goes_on(bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub) -> None:
    audit = bench.answering()
    bench.sent.clear()
    assert service.Pause(pb.PauseRequest(audit=audit)).paused
    assert not service.Resume(pb.ResumeRequest(audit=audit)).paused
    assert bench.sent == [TakeOn(audit_id=audit)] * 2


def test_a_cancelled_audit_has_ended_and_can_be_steered_no_more(
    bench: AuditBench, service: audit_pb2_grpc.AuditServiceStub
) -> None:
    audit = bench.answering()
    assert service.Cancel(pb.CancelRequest(audit=audit)).state == pb.AUDIT_STATE_CANCELLED
    for call, kind in [
        (service.Pause, pb.PauseRequest),
        (service.Resume, pb.ResumeRequest),
        (service.Cancel, pb.CancelRequest),
    ]:
        with refused(Code.FAILED_PRECONDITION, "ended already"):
            call(kind(audit=audit))
    assert service.Submit(request(bench)).audit.audit_id != audit


def test_a_broker_that_is_away_does_not_keep_an_audit_from_being_cancelled(bench: AuditBench) -> None:
    audit = bench.answering()

    def away(message: object) -> None:
        raise ConnectionRefusedError("nobody listens")

    desk = type(bench.desk)(**{**vars(bench.desk), "send": away})
    with serving(desk) as address, stub(address) as service:
        with refused(Code.UNAVAILABLE, "the broker does not answer"):
            service.Submit(request(bench))
        assert service.Cancel(pb.CancelRequest(audit=audit)).state == pb.AUDIT_STATE_CANCELLED


def test_a_ledger_that_is_away_is_unavailable_for_what_runs_and_not_for_what_has_ended(bench: AuditBench) -> None:
    runs, ended = bench.submitted("runs"), bench.submitted("ended")
    bench.set(ended, AuditState.FAILED, "gone")
    away = type(bench.ledger)("redis://127.0.0.1:1/0")
    desk = type(bench.desk)(**{**vars(bench.desk), "counts": Counts(away, bench.pools)})
    with serving(desk) as address, stub(address) as service:
        with refused(Code.UNAVAILABLE, "ledger"):
            service.Get(pb.GetRequest(audit=runs))
        assert service.Get(pb.GetRequest(audit=ended)).detail == "gone"
        assert len(service.List(pb.ListRequest()).audits) == 2
    away.close()


def test_callers_without_the_token_learn_nothing_but_the_server_s_health(bench: AuditBench) -> None:
    with serving(bench.desk, token=TOKEN) as address, grpc.insecure_channel(address) as channel:
        service = audit_pb2_grpc.AuditServiceStub(channel)
        for metadata in [(), (("authorization", "Bearer wrong"),), (("authorization", TOKEN),)]:
            with refused(Code.UNAUTHENTICATED, "PROCTOR_GATEWAY_TOKEN"):
                service.List(pb.ListRequest(), metadata=metadata)
            with refused(Code.UNAUTHENTICATED, "PROCTOR_GATEWAY_TOKEN"):
                next(service.Watch(pb.WatchRequest(), metadata=metadata))
            with refused(Code.UNAUTHENTICATED, "PROCTOR_GATEWAY_TOKEN"):
                service.Submit(request(bench), metadata=metadata)
        assert not service.List(pb.ListRequest(), metadata=[("authorization", f"Bearer {TOKEN}")]).audits
        check = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert check.status == health_pb2.HealthCheckResponse.SERVING


async def _listen(bench: AuditBench, host: str) -> None:
    async with running(bench.desk, Address(host, 0), limits=Limits()):
        pass


def test_a_server_that_other_machines_reach_must_have_a_token(bench: AuditBench) -> None:
    with pytest.raises(BadInputError, match=r"0\.0\.0\.0:0 can be reached from other machines.*PROCTOR_GATEWAY_TOKEN"):
        asyncio.run(_listen(bench, "0.0.0.0"))


def test_the_contract_is_told_by_reflection(bench: AuditBench) -> None:
    with serving(bench.desk) as address, grpc.insecure_channel(address) as channel:
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        (reply,) = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked)
        assert SERVICE in {one.name for one in reply.list_services_response.service}


def test_sigterm_ends_the_server_and_tells_who_watches_that_the_audit_goes_on(bench: AuditBench) -> None:
    audit = bench.submitted()
    environment = {"PROCTOR_LEDGER_URL": bench.settings.ledger_url, "PROCTOR_BROKER_URL": bench.settings.broker_url}
    environment["PROCTOR_GATEWAY_TOKEN"] = TOKEN
    with gateway_process(bench.home, **environment) as (process, address), stub(address, TOKEN) as service:
        seen = service.Watch(pb.WatchRequest(audit=audit), timeout=30)
        assert next(seen).audit_id == audit
        process.send_signal(signal.SIGTERM)
        with refused(Code.UNAVAILABLE, "the audit goes on"):
            list(seen)
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [(["--host", "0.0.0.0"], "PROCTOR_GATEWAY_TOKEN"), (["--tls-cert", "cert.pem"], "--tls-key")],
)
def test_a_gateway_that_cannot_be_is_refused_in_one_line(options: list[str], match: str, bench: AuditBench) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised, gateway_process(bench.home, *options):
        pass
    assert raised.value.returncode == 2
    assert match in raised.value.stderr
    assert raised.value.stderr.count("\n") == 1
