"""Decisions as CloudEvents: what tools know of them which know nothing of Proctor."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from proctor.domain.cloud_event import decision_event
from proctor.domain.decision import DecisionEvent
from proctor.domain.notify.settings import EventSink
from proctor.notifier.delivery import Fate
from proctor.notifier.webhooks import post_event, signed_headers
from tests.record_samples import an_event
from tests.support import free_port
from tests.unit.test_decision_event import EVENTS

AT = "2026-11-23T05:00:00+00:00"
SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")


def event(**other: Any) -> DecisionEvent:
    return DecisionEvent.model_validate(an_event("a-1", **other))


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[HTTPMessage]]]:
    """A receiver of webhooks that answers so, and what it was sent."""
    got, left = list[HTTPMessage](), list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append(HTTPMessage({name.lower(): value for name, value in self.headers.items()}, body))
            status = left.pop(0)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/in", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def post(url: str, decided: DecisionEvent) -> Fate:
    sink = EventSink(cloudevents=url, secrets=SECRETS)
    return post_event(sink, decision_event(decided, source=None, decided_at=AT)).fate


@given(decided=EVENTS.filter(lambda decided: decided.audit_id != ""))
def test_a_decision_is_an_event_that_the_sdk_of_cloudevents_reads(decided: DecisionEvent) -> None:
    sent = decision_event(decided, source="https://proctor.example.org", decided_at=AT)
    headers = {"content-type": "application/cloudevents+json; charset=utf-8"}
    read = from_structured_event(HTTPMessage(headers, sent.document()), JSONFormat())
    assert read.get_specversion() == "1.0"
    assert read.get_type() == "proctor.decision.v1"
    assert read.get_source() == "https://proctor.example.org"
    assert read.get_subject() == decided.audit_id
    assert read.get_datacontenttype() == "application/json"
    assert read.get_time() == datetime.fromisoformat(AT)
    assert read.get_data() == decided.plain()


def test_the_id_is_the_same_for_the_same_decision_and_another_for_any_other() -> None:
    ids = [
        decision_event(decided, source=source, decided_at=at).id
        for decided, source, at in (
            (event(), None, None),
            (event(), "https://proctor.example.org", AT),
            (event(outcome="block"), None, None),
            (event(report=b"another"), None, None),
        )
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert all("." not in one for one in ids)


def test_headers_and_body_of_a_message_are_the_same_event() -> None:
    sent = decision_event(event(), source=None)
    headers = sent.headers()
    assert headers == {
        "cloudEvents_specversion": "1.0",
        "cloudEvents_id": sent.id,
        "cloudEvents_source": "urn:proctor",
        "cloudEvents_type": "proctor.decision.v1",
        "cloudEvents_subject": "a-1",
        "cloudEvents_dataschema": "urn:proctor:proto:proctor.v1.DecisionEvent",
    }


def test_a_post_is_signed_with_every_key_as_standard_webhooks_verify_it() -> None:
    with receiver(204) as (url, got):
        assert post(url, event()) is Fate.SENT
    (request,) = got
    body = request.body
    assert isinstance(body, bytes)
    assert request.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert request.headers["webhook-id"] == json.loads(body)["id"]
    for secret in SECRETS:
        assert Webhook(secret).verify(body, dict(request.headers))["type"] == "proctor.decision.v1"
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 32).verify(body, dict(request.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRETS[0]).verify(body.replace(b"approve", b"blocked"), dict(request.headers))


def test_a_signature_is_the_one_of_the_standard_s_own_library() -> None:
    at = datetime(2026, 11, 23, 5, tzinfo=UTC)
    headers = signed_headers("id-1", int(at.timestamp()), b'{"a": 1}', SECRETS[:1])
    assert headers["webhook-signature"] == Webhook(SECRETS[0]).sign("id-1", at, '{"a": 1}')


@pytest.mark.parametrize(
    ("status", "fate"),
    [(200, Fate.SENT), (302, Fate.LATER), (401, Fate.LATER), (410, Fate.REFUSED), (429, Fate.LATER), (503, Fate.LATER)],
)
def test_whatever_is_not_taken_is_tried_again_until_the_receiver_says_that_it_is_gone(status: int, fate: Fate) -> None:
    with receiver(status, 200) as (url, got):
        assert post(url, event()) is fate
    # Nobody is led elsewhere.
    assert len(got) == 1


def test_a_receiver_that_is_away_is_tried_again() -> None:
    assert post(f"http://127.0.0.1:{free_port()}/in", event()) is Fate.LATER


def test_of_an_answer_nothing_but_its_status_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_without_end() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                while True:
                    connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

        thread = Thread(target=answer_without_end)
        thread.start()
        assert post(f"http://127.0.0.1:{server.getsockname()[1]}/in", event()) is Fate.SENT
        thread.join()
