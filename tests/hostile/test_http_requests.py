"""Callers of the gateway's HTTP who mean harm: heads and bodies that do not end, or do not come."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.hub import HubAccess
from proctor.domain.registered_version import RegisteredVersion, RegistryKind
from proctor.formats.triggers import load_triggers
from proctor.gateway.http import bodies, server, webhooks
from proctor.gateway.triggers.secrets import WebhookSecrets
from proctor.registry import hub_client
from proctor.registry.hub_versions import HubVersions
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError
from tests.hostile.hub_stand_in import endless, send, stand_in_hub
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.registry_webhooks import SECRET, created, signed, trigger_file


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        found.suite_file()
        yield found


@pytest.fixture
def url(bench: AuditBench) -> Iterator[str]:
    triggers = load_triggers(trigger_file(bench.home), bench.settings.bundle)
    with serving_both(bench.desk, triggers=triggers) as (_, found):
        yield found


def connected(url: str) -> socket.socket:
    parts = httpx.URL(url)
    return socket.create_connection((parts.host, parts.port or 0), timeout=20)


def closed(connection: socket.socket) -> bytes:
    """What comes until the other side closes the connection."""
    said = b""
    try:
        while piece := connection.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: "])
def test_a_head_that_does_not_come_is_given_up(url: str, begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_HEAD_S", 0.3)
    with connected(url) as connection:
        connection.sendall(begun)
        assert closed(connection) == b""
    with client(url) as http:
        assert http.get("/healthz").status_code == 200


def test_a_head_that_drips_is_given_up_however_steadily_it_does(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_HEAD_S", 0.3)
    with connected(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        connection.settimeout(0.01)
        assert any(has_gone(connection) for _ in range(2_000))


def has_gone(connection: socket.socket) -> bool:
    """Send one more header, and say whether the other side is gone."""
    try:
        connection.sendall(b"a: b\r\n")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_a_connection_that_is_kept_alive_is_given_a_new_time_for_each_head(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_HEAD_S", 0.3)
    with connected(url) as connection:
        for _ in range(3):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b'"ok"}'):
                answer += connection.recv(65_536)
            assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /healthz HTTP")
        assert closed(connection) == b""


def test_a_head_past_its_bound_is_refused(url: str) -> None:
    with connected(url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ")
        # What one read brings is parsed as it is; what has to wait for more is bounded.
        with contextlib.suppress(OSError):
            connection.sendall(b"x" * (64 * server.MAX_HEAD_BYTES) + b"\r\n\r\n")
        assert closed(connection)[:12] in (b"HTTP/1.1 400", b"")
    with client(url) as http:
        assert http.get("/healthz", headers={"A": "x" * 1_000}).status_code == 200


def test_a_body_that_does_not_come_is_given_up_and_holds_back_nobody(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "SMALL_BODY_S", 0.3)
    with ExitStack() as stack:
        slow = []
        for _ in range(20):
            connection = stack.enter_context(connected(url))
            connection.sendall(b"POST /v1/webhooks/mlflow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            slow.append(connection)
        body = json.dumps(created()).encode()
        with client(url) as http:
            assert http.post("/v1/webhooks/mlflow", content=body, headers=signed(body)).status_code == 202
        for connection in slow:
            connection.settimeout(20)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 429")


def test_deliveries_past_the_places_are_told_to_come_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        for _ in range(webhooks.MAX_DELIVERIES):
            connection = stack.enter_context(connected(url))
            connection.sendall(b"POST /v1/webhooks/mlflow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        body = json.dumps(created()).encode()
        with client(url) as http:
            answers = [http.post("/v1/webhooks/mlflow", content=body, headers=signed(body)) for _ in range(5)]
            assert http.get("/healthz").status_code == 200
    assert 429 in {one.status_code for one in answers}


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 30, "٣", "1, 2"])
def test_a_length_that_is_none_is_refused(url: str, length: str) -> None:
    with connected(url) as connection:
        head = f"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + b"{}")
        assert closed(connection).startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))


def test_a_body_is_counted_as_it_comes_whatever_was_said_of_its_length() -> None:
    class Dripping:
        headers: dict[str, str] = {}  # noqa: RUF012

        async def stream(self) -> object:
            for _ in range(1_000):
                yield b"x" * 1_000

    async def read() -> bytes:
        return await bodies.body_of(Dripping(), most=10_000, within_s=5)  # type: ignore[arg-type]

    with pytest.raises(bodies.BodyTooLargeError):
        asyncio.run(read())


@pytest.mark.parametrize(
    "text", ["short", "aaaaaaaaaaaaaaaaaaaaaaaa", "a b " * 5, f"{SECRET}\n{SECRET}1\n{SECRET}2", "x" * 2_000]
)
def test_secrets_that_could_be_guessed_or_are_too_many_start_no_server_and_are_not_told(text: str) -> None:
    with pytest.raises(BadInputError) as refused:
        WebhookSecrets.from_environment({"PROCTOR_GATEWAY_MLFLOW_SECRETS": text})
    assert "PROCTOR_GATEWAY_MLFLOW_SECRETS" in str(refused.value)
    assert not any(line in str(refused.value) for line in text.split("\n"))


def test_secrets_are_read_from_a_file_one_a_line_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text(f"{SECRET}\n\n{SECRET[::-1]}\n")
    found = WebhookSecrets.from_environment({"PROCTOR_GATEWAY_MLFLOW_SECRETS": f"@{file}"})
    assert [one.get_secret_value() for one in found.by_registry[RegistryKind.MLFLOW]] == [SECRET, SECRET[::-1]]
    assert SECRET not in repr(found)
    assert found.by_registry[RegistryKind.HUGGINGFACE] == ()


COMMIT = RegisteredVersion(registry=RegistryKind.HUGGINGFACE, name="acme/m", version="c" * 40)


def test_a_hub_that_answers_anything_else_than_a_commit_is_an_error_of_that_hub(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_client, "MAX_ANSWER_BYTES", 10_000)
    path = f"/api/models/acme/m/revision/{COMMIT.version}"
    with stand_in_hub() as hub:
        source = HubVersions(HubAccess(endpoint=hub.url, token="hf_secret"))
        hub.answers[path] = endless
        with pytest.raises(RegistryUnavailableError, match="end of its answer"):
            source.look_up(COMMIT)
        for status, error in ((404, VersionGoneError), (503, RegistryUnavailableError)):
            hub.answers[path] = partial(send, body=b"{}", status=status)
            with pytest.raises(error):
                source.look_up(COMMIT)
        for body in (b"[]", b"{", b"[" * 100_000, b'{"id": "acme/m", "sha": "other"}'):
            hub.answers[path] = partial(send, body=body[:9_000])
            with pytest.raises(Exception, match="the hub at"):
                source.look_up(COMMIT)
        other = "http://127.0.0.1:9/steal"
        hub.answers[path] = lambda handler: send(handler, b"", status=302, Location=other)
        with pytest.raises(Exception, match="no answer of a hub"):
            source.look_up(COMMIT)
        source.close()
