"""Whoever reaches the webhook's port, and whatever is sent there: it is refused in bounds, and the next is answered."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.gateway.admission.certificates.issuing import Issued, issue
from proctor.gateway.admission.certificates.source import FilePair
from proctor.gateway.admission.review import MAX_BODY_BYTES
from tests.admission_server import webhook_server
from tests.certificates import Authority
from tests.standing_audits import DecidedAudits, decided_audits
from tests.support import free_port, wait_until


class Webhook:
    """A webhook that serves, and its certificate's files."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.issued = self.renew()

    def renew(self) -> Issued:
        """Lay another certificate down."""
        self.issued = issue(("localhost",), timedelta(hours=1), datetime.now(UTC))
        self.key.write_bytes(self.issued.key)
        self.certificate.write_bytes(self.issued.certificate)
        return self.issued

    def context(self, issued: Issued | None = None) -> ssl.SSLContext:
        """Of a client that believes the authority of a certificate alone."""
        return ssl.create_default_context(cadata=(issued or self.issued).authority.decode())

    def ask(self, models: str, path: str = "/admission", *, tls: ssl.SSLContext | None = None) -> dict[str, Any]:
        """What is answered of a Pod that names models."""
        status, answer = self.post(path, review(models), tls=tls)
        assert status == 200, answer
        found: dict[str, Any] = json.loads(answer)["response"]
        return found

    def post(self, path: str, body: bytes, *, tls: ssl.SSLContext | None = None) -> tuple[int, bytes]:
        """Status and body of the answer."""
        connection = http.client.HTTPSConnection("localhost", self.port, context=tls or self.context(), timeout=20)
        try:
            connection.request("POST", path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def review(models: str) -> bytes:
    """A review of a Pod that names models."""
    pod = {"metadata": {"annotations": {"proctor.dev/model": models}}}
    request = {"uid": "u-1", "operation": "CREATE", "dryRun": True, "object": pod}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home") as found:
        event = found.decide("good", DecisionOutcome.APPROVE)
        found.records.register(event.audit_id, "1")
        yield found


@pytest.fixture
def webhook(audits: DecidedAudits, tmp_path: Path) -> Iterator[Webhook]:
    found = Webhook(tmp_path, free_port())
    source = FilePair(found.certificate, found.key, every_s=0.05)
    with webhook_server(audits.settings, audits.records, found.port, source):
        yield found


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/admission", b"", 400),
        ("/admission", b"nonsense", 400),
        ("/admission", b"\x00" * 1_000, 400),
        ("/admission", b"[" * 100_000, 400),
        ("/admission", b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null}', 400),
        ("/admission", b" " * (MAX_BODY_BYTES + 1), 413),
        ("/", b"{}", 404),
        ("/admission/", b"{}", 404),
        ("/admission/enforce", b"{}", 404),
        ("/v1/audits", b"{}", 404),
    ],
)
def test_what_is_no_review_is_refused_and_the_next_one_is_answered(
    webhook: Webhook, path: str, body: bytes, status: int
) -> None:
    try:
        assert webhook.post(path, body)[0] == status
    except (BrokenPipeError, ConnectionResetError):
        # It was told before it had sent all of it.
        assert status == 413
    assert webhook.ask("good@1")["allowed"]


def test_a_mode_is_a_path_and_nothing_of_the_gateway_is_served_beside_it(webhook: Webhook) -> None:
    assert not webhook.ask("none@1")["allowed"]
    assert webhook.ask("none@1", "/admission/warn")["warnings"]
    assert webhook.ask("none@1", "/admission/audit")["auditAnnotations"]["decision"] == "refused"


def test_a_caller_that_sends_nothing_is_let_go_and_holds_up_nobody(webhook: Webhook) -> None:
    idle = [socket.create_connection(("localhost", webhook.port)) for _ in range(50)]
    try:
        begun = time.monotonic()
        assert webhook.ask("good@1")["allowed"]
        assert time.monotonic() - begun < 5
    finally:
        for one in idle:
            one.close()


def test_a_name_that_would_forge_a_message_is_told_as_text(webhook: Webhook) -> None:
    message = webhook.ask("ok\r\nHTTP/1.1 200 OK\u202e@1")["status"]["message"]
    assert message.isprintable()
    assert "\\r\\nHTTP/1.1 200 OK\\u202e" in message
    message = webhook.ask("'; DROP TABLE standings; --@1")["status"]["message"]
    assert "was never audited" in message
    assert webhook.ask("good@1")["allowed"]


def test_a_new_certificate_is_served_while_connections_go_on_and_a_broken_one_is_not(webhook: Webhook) -> None:
    first = webhook.issued
    kept = http.client.HTTPSConnection("localhost", webhook.port, context=webhook.context(), timeout=20)
    kept.request("POST", "/admission", review("good@1"))
    assert b'"allowed":true' in kept.getresponse().read()
    second = webhook.renew()

    def serves(issued: Issued) -> bool:
        try:
            return bool(webhook.ask("good@1", tls=webhook.context(issued))["allowed"])
        except ssl.SSLCertVerificationError:
            return False

    wait_until(lambda: serves(second), what="the new certificate")
    assert not serves(first)
    # A connection of before is still good.
    kept.request("POST", "/admission", review("good@1"))
    assert b'"allowed":true' in kept.getresponse().read()
    kept.close()
    webhook.certificate.write_bytes(b"nonsense")
    for _ in range(5):
        assert serves(second)


def test_only_an_api_server_of_the_authority_is_let_in_where_one_is_named(
    audits: DecidedAudits, tmp_path: Path
) -> None:
    authority, port = Authority(tmp_path / "clients"), free_port()
    found = Webhook(tmp_path, port)
    source = FilePair(found.certificate, found.key)
    with webhook_server(audits.settings, audits.records, port, source, client_authority=authority.pem):
        with pytest.raises((ssl.SSLError, ConnectionResetError, http.client.RemoteDisconnected)):
            found.ask("good@1")
        pair = authority.issue("api-server", names=("kube-apiserver",))
        tls = found.context()
        tls.load_cert_chain(pair.certificate, pair.key)
        assert found.ask("good@1", tls=tls)["allowed"]
