"""CloudEvents over HTTP, signed as Standard Webhooks (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from typing import Final

import httpx

from proctor.domain.cloud_event import CONTENT_TYPE, CloudEvent
from proctor.domain.host import is_loopback
from proctor.domain.notify.settings import EventSink, key_of
from proctor.notifier.delivery import SENT, Delivery, Fate

_TIMEOUT_S: Final = 15.0
#: The receiver has no use for any more events; only a person who sends one on purpose asks it again.
_GONE: Final = 410


def post_event(sink: EventSink, event: CloudEvent, *, clock: Callable[[], float] = time.time) -> Delivery:
    """Post an event once. Whatever is not an answer that it was taken is tried again, because it is known by its id."""
    body = event.document()
    headers = {
        "Content-Type": f"{CONTENT_TYPE}; charset=utf-8",
        "User-Agent": "proctor",
        **signed_headers(event.id, int(clock()), body, sink.secrets),
    }
    host = httpx.URL(sink.cloudevents).host
    try:
        with (
            # Redirects are not followed: the operator has named where it goes.
            httpx.Client(timeout=_TIMEOUT_S, trust_env=not is_loopback(host)) as client,
            client.stream("POST", sink.cloudevents, content=body, headers=headers) as response,
        ):
            # Of the answer nothing but its status is read, whatever it holds.
            status = response.status_code
    except httpx.HTTPError as error:
        return Delivery(Fate.LATER, f"it did not answer ({type(error).__name__})")
    if 200 <= status < 300:
        return SENT
    return Delivery(Fate.REFUSED if status == _GONE else Fate.LATER, f"it answered with HTTP {status}")


def signed_headers(event_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The headers by which a receiver knows sender, time and body; one signature for each key."""
    signed = f"{event_id}.{timestamp}.".encode() + body
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in map(key_of, secrets) if key is not None]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
    }
