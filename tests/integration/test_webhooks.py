"""Webhooks through the gateway's HTTP, over real stores: what is taken in, what is refused, and what is begun."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from sqlalchemy.exc import OperationalError

from proctor.domain.ceilings import parse_ceilings
from proctor.domain.errors import StackError, StoreError
from proctor.domain.hub import HubAccess
from proctor.domain.messages import Message, StartAudit
from proctor.domain.registered_version import RegisteredVersion, RegistryKind
from proctor.domain.triggers import Triggers
from proctor.formats.triggers import load_triggers
from proctor.gateway.triggers.starter import Starter
from proctor.registry.version_source import VersionSource
from proctor.registry.webhooks.receiver import MAX_BODY_BYTES, Receiver
from proctor.runtime.records.requests import RequestState
from proctor.runtime.redis.replays import KEPT_S, Replays
from tests.hostile.hub_stand_in import StandInHub, stand_in_hub
from tests.hostile.hub_stand_in import send as answered
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import SECRETS, client, serving_both
from tests.registry_webhooks import (
    DIGEST,
    HUB_SECRET,
    SECOND,
    alias_set,
    created,
    pushed,
    signed,
    tag_set,
    trigger_file,
)
from tests.support import wait_until


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        found.suite_file()
        yield found


@pytest.fixture
def triggers(bench: AuditBench) -> Triggers:
    return loaded(bench)


def loaded(bench: AuditBench, **rule: Any) -> Triggers:
    return load_triggers(trigger_file(bench.home, **rule), bench.settings.bundle)


@pytest.fixture
def http(bench: AuditBench, triggers: Triggers) -> Iterator[httpx.Client]:
    with serving_both(bench.desk, triggers=triggers) as (_, url), client(url) as found:
        yield found


@pytest.fixture
def receiver(bench: AuditBench, triggers: Triggers) -> Iterator[Receiver]:
    replays = Replays(bench.settings.ledger_url)
    yield Receiver(triggers, SECRETS.by_registry, replays, bench.records.requests)
    replays.close()


def send(http: httpx.Client, event: dict[str, Any] | bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return http.post("/v1/webhooks/mlflow", content=body, headers=signed(body) if headers is None else headers)


def states(bench: AuditBench) -> list[RequestState]:
    return [one.state for one in bench.records.requests.listed()]


def test_a_new_version_becomes_an_audit_of_its_weights(bench: AuditBench, http: httpx.Client) -> None:
    answer = send(http, created())
    assert answer.status_code == 202, answer.text
    (key,) = answer.json()["requests"]
    wait_until(lambda: states(bench) == [RequestState.STARTED])
    request = bench.records.requests.find([key])[key]
    assert request.audit_id is not None
    status = bench.desk.status(request.audit_id)
    assert (status.model_id, status.submitter) == ("acme/m", "triggers")
    assert json.loads(bench.records.audit(request.audit_id).suite)["model_config"]["model_version"] == DIGEST
    assert [one.audit_id for one in bench.sent if isinstance(one, StartAudit)] == [request.audit_id]


def test_a_retry_is_answered_as_one_and_starts_nothing(bench: AuditBench, http: httpx.Client) -> None:
    body = json.dumps(created()).encode()
    headers = signed(body, SECOND)
    answers = [send(http, body, headers) for _ in range(3)]
    assert [one.status_code for one in answers] == [202, 200, 200]
    assert answers[1].json()["status"] == "duplicate"
    assert len(bench.records.requests.listed()) == 1


def test_a_delivery_id_that_comes_with_another_body_is_refused(http: httpx.Client) -> None:
    one, other = (json.dumps(created(version=version)).encode() for version in "12")
    assert send(http, one, signed(one, delivery="d")).status_code == 202
    assert send(http, other, signed(other, delivery="d")).status_code == 409


def test_the_same_event_of_two_webhooks_is_one_audit(bench: AuditBench, http: httpx.Client) -> None:
    assert [send(http, created()).status_code for _ in range(2)] == [202, 202]
    wait_until(lambda: states(bench) == [RequestState.STARTED])
    assert len(bench.records.audits()) == 1


def test_nothing_of_a_forged_delivery_is_read_or_kept(bench: AuditBench, http: httpx.Client) -> None:
    body = json.dumps(created()).encode()
    right = signed(body)
    forged = [
        {},
        {**right, "X-MLflow-Signature": "v1,AAAA"},
        signed(body, "another secret that nobody set"),
        signed(body, at_s=0),
        signed(body, at_s=4_000_000_000),
        {**right, "X-MLflow-Delivery-Id": "other"},
        {name: value for name, value in right.items() if name != "X-MLflow-Signature"},
    ]
    assert [send(http, body, headers).status_code for headers in forged] == [401] * len(forged)
    # A body that is none is not looked at before its signature.
    assert send(http, b"{", signed(body)).status_code == 401
    assert send(http, b"{", signed(b"{")).status_code == 400
    assert bench.records.requests.listed() == []
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        assert client.keys("proctor:webhook:*") == []


def test_a_body_of_any_size_is_read_no_further_than_its_bound(bench: AuditBench, http: httpx.Client) -> None:
    body = json.dumps(created(description="x" * MAX_BODY_BYTES)).encode()
    assert send(http, body).status_code == 413
    pieces = http.post("/v1/webhooks/mlflow", content=iter([body[:1000]] * 300), headers=signed(body))
    assert pieces.status_code == 413
    whole = json.dumps(created(description="")).encode()
    padded = whole + b" " * (MAX_BODY_BYTES - len(whole))
    assert send(http, padded).status_code == 202


@pytest.mark.parametrize(
    "event",
    [
        tag_set("proctor.decision"),
        created("example_model", tags={"example_key": "example_value"}),
        created("other"),
        created(source="proctor://acme~m/sha256-ab"),
        alias_set("champion"),
        {**created(), "action": "updated"},
    ],
)
def test_what_starts_nothing_is_answered_with_200(bench: AuditBench, http: httpx.Client, event: dict[str, Any]) -> None:
    answer = send(http, event)
    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert answer.json()["why"]
    assert bench.records.requests.listed() == []


@pytest.mark.parametrize(
    "name",
    ["acme~<script>alert(1)</script>", "acme~\u202e\x1b[31m", "acme~'; DROP TABLE audits; --", "acme~" + "é" * 500],
)
def test_a_hostile_name_is_on_record_and_refused_in_words_that_do_nothing(
    bench: AuditBench, http: httpx.Client, name: str
) -> None:
    assert send(http, created(name)).status_code == 202
    wait_until(lambda: states(bench) == [RequestState.REFUSED])
    (request,) = bench.records.requests.listed()
    assert request.model == name
    assert "model_config.model_id" in request.detail
    assert request.detail.isprintable()
    assert bench.records.audits() == []


def test_redis_away_is_a_503_and_nothing_is_lost(bench: AuditBench, triggers: Triggers, receiver: Receiver) -> None:
    body = json.dumps(created()).encode()
    headers = {name.lower(): [value] for name, value in signed(body).items()}
    away = Replays("redis://127.0.0.1:9/0")
    with pytest.raises(StoreError):
        Receiver(triggers, SECRETS.by_registry, away, bench.records.requests).mlflow(headers, body)
    away.close()
    assert receiver.mlflow(headers, body).status == "accepted"


def test_a_record_store_that_does_not_take_it_is_a_503_and_the_retry_is_taken(
    bench: AuditBench, http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(created()).encode()
    headers, requests = signed(body), bench.records.requests

    def full(*arguments: object) -> frozenset[str]:
        raise OperationalError("INSERT", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(requests, "add", full)
        refused = send(http, body, headers)
    assert refused.status_code == 503
    assert refused.headers["retry-after"]
    assert "INSERT" not in refused.text
    assert send(http, body, headers).status_code == 202


def test_redis_that_dies_behind_the_record_has_the_delivery_sent_again_for_the_same_request(
    bench: AuditBench, triggers: Triggers, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps(created()).encode()
    headers = {name.lower(): [value] for name, value in signed(body).items()}

    def dies(*arguments: object) -> bool:
        raise StoreError("Redis is away")

    with monkeypatch.context() as patch:
        patch.setattr(Replays, "remember", dies)
        with pytest.raises(StoreError):
            receiver.mlflow(headers, body)
    assert len(bench.records.requests.listed()) == 1
    assert receiver.mlflow(headers, body).status == "accepted"
    assert len(bench.records.requests.listed()) == 1


def test_what_is_kept_of_a_delivery_outlives_the_time_in_which_its_signature_is_good(
    bench: AuditBench, receiver: Receiver
) -> None:
    body = json.dumps(created()).encode()
    receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        (key,) = client.keys("proctor:webhook:*")
        assert 600 < client.ttl(key) <= KEPT_S


def test_a_registry_without_a_secret_is_told_to_come_again(bench: AuditBench, triggers: Triggers) -> None:
    body = json.dumps(created()).encode()
    with serving_both(bench.desk) as (_, url), client(url) as http:
        assert send(http, body).status_code == 404
    replays = Replays(bench.settings.ledger_url)
    unset = Receiver(triggers, {}, replays, bench.records.requests)
    with pytest.raises(Exception, match="set PROCTOR_GATEWAY_MLFLOW_SECRETS"):
        unset.mlflow({}, body)
    replays.close()


def test_gateways_that_race_over_many_events_begin_each_audit_once(bench: AuditBench, triggers: Triggers) -> None:
    versions, copies = 12, 4
    with ExitStack() as stack:
        urls = [stack.enter_context(serving_both(bench.desk, triggers=triggers))[1] for _ in range(3)]
        bodies = [json.dumps(created(version=str(n % versions))).encode() for n in range(versions * copies)]

        def post(n: int) -> int:
            return httpx.post(
                f"{urls[n % 3]}/v1/webhooks/mlflow",
                content=bodies[n],
                headers=signed(bodies[n]),
                trust_env=False,
                timeout=30,
            ).status_code

        with ThreadPoolExecutor(8) as senders:
            assert set(senders.map(post, range(len(bodies)))) == {202}
        wait_until(lambda: states(bench) == [RequestState.STARTED] * versions, timeout_s=40)
    audits = [one.audit_id for one in bench.records.requests.listed()]
    # The versions have the same weights, so that each goes on with the audit that has not ended.
    assert len(set(audits)) == len(bench.records.audits()) == 1


def starter(bench: AuditBench, triggers: Triggers, **sources: VersionSource) -> Starter:
    return Starter(triggers, bench.desk, {RegistryKind(name): source for name, source in sources.items()})


def test_starters_that_race_over_one_request_put_one_audit_on_record(
    bench: AuditBench, triggers: Triggers, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that both hold a claim: the slower one was thought dead. The audit of the quicker has ended meanwhile."""
    body = json.dumps(created()).encode()
    receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    requests, slow, quick = bench.records.requests, starter(bench, triggers), starter(bench, triggers)
    (request,) = requests.listed()
    (stale,) = requests.claim([request.suite_digest], hold_s=1)
    requests.set_back(request.key, "", wait_s=-1)
    quick.round()
    (audit,) = [one.audit_id for one in requests.listed()]
    assert audit is not None
    bench.desk.cancel(audit)
    slow._look_at(stale)
    assert [one.audit_id for one in bench.records.audits()] == [audit]
    assert [(one.audit_id, one.state) for one in requests.listed()] == [(audit, RequestState.STARTED)]


def test_one_request_of_many_threads_is_one_audit(bench: AuditBench, triggers: Triggers, receiver: Receiver) -> None:
    for number in range(10):
        digest = "sha256:" + f"{number:064x}"
        body = json.dumps(created(version=str(number), tags={"proctor.model_digest": digest})).encode()
        receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    threads = [threading.Thread(target=starter(bench, triggers).round) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bench.records.audits()) == 10
    assert {one.state for one in bench.records.requests.listed()} == {RequestState.STARTED}


def test_an_audit_whose_message_was_not_sent_is_on_record_all_the_same(
    bench: AuditBench, triggers: Triggers, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(message: Message) -> None:
        raise OSError("the broker is away")

    body = json.dumps(created()).encode()
    receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    desk = dataclasses.replace(bench.desk, send=away)
    with pytest.raises(StackError):
        desk.submit(bench.suite_file("other"))
    Starter(triggers, desk, {}).round()
    assert states(bench) == [RequestState.STARTED]


def test_a_ceiling_on_triggers_has_their_audits_wait_and_loses_none(
    bench: AuditBench, receiver: Receiver, triggers: Triggers
) -> None:
    for number in (1, 2):
        digest = "sha256:" + f"{number:064x}"
        body = json.dumps(created(version=str(number), tags={"proctor.model_digest": digest})).encode()
        receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    ceilings = parse_ceilings('{"triggers": {"max_audits": 1}}', source="the test")
    settings = bench.settings.model_copy(update={"ceilings": ceilings})
    desk = dataclasses.replace(bench.desk, settings=settings)
    held = Starter(triggers, desk, {})
    held.round()
    found = {one.state: one for one in bench.records.requests.listed()}
    assert set(found) == {RequestState.STARTED, RequestState.REQUESTED}
    assert "max_audits" in found[RequestState.REQUESTED].detail
    bench.desk.cancel(str(found[RequestState.STARTED].audit_id))
    bench.records.requests.set_back(found[RequestState.REQUESTED].key, "", wait_s=-1)
    held.round()
    assert states(bench) == [RequestState.STARTED] * 2


def test_what_was_refused_is_looked_at_again_once_it_is_mended(
    bench: AuditBench, receiver: Receiver, triggers: Triggers
) -> None:
    body = json.dumps(created()).encode()
    receiver.mlflow({name.lower(): [value] for name, value in signed(body).items()}, body)
    items = bench.home / "items.jsonl"
    content = items.read_bytes()
    items.unlink()
    first = starter(bench, triggers)
    first.round()
    (request,) = bench.records.requests.listed()
    assert (request.state, "items.jsonl" in request.detail) == (RequestState.REFUSED, True)
    items.write_bytes(content)
    again = starter(bench, triggers)
    again.reopen()
    again.round()
    assert states(bench) == [RequestState.STARTED]


class _Registry:
    """What a registry says of a version; counts how often it is asked."""

    def __init__(self, found: RegisteredVersion) -> None:
        self.found, self.asked = found, 0

    def look_up(self, version: RegisteredVersion) -> RegisteredVersion:
        self.asked += 1
        return self.found

    def close(self) -> None:
        pass


def test_an_alias_has_its_version_looked_up_before_its_tags_count(bench: AuditBench) -> None:
    triggers = loaded(bench, tags={"stage": "candidate"})
    replays = Replays(bench.settings.ledger_url)
    receiver = Receiver(triggers, SECRETS.by_registry, replays, bench.records.requests)
    found = RegisteredVersion(registry=RegistryKind.MLFLOW, name="acme~m", version="1", tags={"stage": "draft"})
    registry = _Registry(found)
    for version, tags in (("1", {"stage": "draft"}), ("2", {"stage": "candidate", "proctor.model_digest": DIGEST})):
        body = json.dumps(alias_set("audit-me", version=version)).encode()
        headers = {name.lower(): [value] for name, value in signed(body).items()}
        assert receiver.mlflow(headers, body).status == "accepted"
        registry.found = found.model_copy(update={"version": version, "tags": tags})
        starter(bench, triggers, mlflow=registry).round()
    replays.close()
    assert registry.asked == 2
    assert {one.version: one.state for one in bench.records.requests.listed()} == {
        "1": RequestState.SKIPPED,
        "2": RequestState.STARTED,
    }


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    with stand_in_hub() as found:
        yield found


def commit(hub: StandInHub, sha: str, weights: int = 1) -> None:
    """A commit of acme/m on the stand-in, with so many files of weights."""
    files = [
        {"rfilename": f"model-{n}.safetensors", "lfs": {"sha256": f"{n:064x}", "size": 1}}
        for n in range(1, weights + 1)
    ]
    said = {"id": "acme/m", "sha": sha, "tags": ["text-generation"], "siblings": [{"rfilename": "README.md"}, *files]}
    hub.answers[f"/api/models/acme/m/revision/{sha}"] = lambda handler: answered(handler, json.dumps(said).encode())


def test_a_push_is_a_hint_of_which_the_stand_in_of_the_hub_is_asked(bench: AuditBench, hub: StandInHub) -> None:
    triggers = loaded(bench, registry="huggingface", models=["acme/*"], model={"model_id": "{name}"})
    settings = bench.settings.model_copy(update={"hub": HubAccess(endpoint=hub.url)})
    desk = dataclasses.replace(bench.desk, settings=settings)
    commit(hub, "c" * 40)
    commit(hub, "d" * 40, weights=2)
    secret = {"X-Webhook-Secret": HUB_SECRET}
    with serving_both(desk, triggers=triggers) as (_, url), client(url) as http:
        for sha in ("c" * 40, "d" * 40, "e" * 40):
            assert http.post("/v1/webhooks/huggingface", json=pushed(sha=sha), headers=secret).status_code == 202
        again = http.post("/v1/webhooks/huggingface", json=pushed(), headers=secret)
        assert again.json()["status"] == "duplicate"
        for shown, query in (({"X-Webhook-Secret": "x"}, ""), ({}, f"?secret={HUB_SECRET}")):
            sent = http.post(f"/v1/webhooks/huggingface{query}", json=pushed(sha="f" * 40), headers=shown)
            assert sent.status_code == 401
        wait_until(lambda: RequestState.REQUESTED not in states(bench))
    requests = bench.records.requests
    found = {one.version[0]: one for one in requests.listed()}
    assert {name: one.state for name, one in found.items()} == {
        "c": RequestState.STARTED, "d": RequestState.REFUSED, "e": RequestState.REFUSED,
    }  # fmt: skip
    audit = bench.records.audit(str(found["c"].audit_id))
    assert json.loads(audit.suite)["model_config"]["model_version"] == f"sha256:{1:064x}"
    assert "one file of weights" in found["d"].detail
    assert "no such commit" in found["e"].detail
