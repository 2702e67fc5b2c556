"""What an HTTP endpoint's failures mean: whether asking again may help, and whether the server is away."""

from __future__ import annotations

from typing import NamedTuple

from proctor.inference.worker.backend import TrialFailure, printable
from proctor.inference.worker.server_faults import engine_died, lacks_memory

#: Statuses that say "later": too many requests, and a server or its proxy in trouble.
RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class HttpReply(NamedTuple):
    """What came back for one request. `server` is its Server header, fit to be printed.

    Of a status other than 200 `body` is the beginning. `wait_s` is for how long it asks not to be asked again.
    """

    status: int
    body: bytes
    server: str
    wait_s: float = 0.0


class ConnectionFailure(TrialFailure):
    """No connection, or one that broke: there was no answer at all."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=True, unavailable=True)


def unauthorised(url: str, status: int) -> str:
    """What is said of 401 and 403, whose bodies like to repeat the key."""
    return f"{url} answered {status}: it wants another API key; set PROCTOR_API_KEY for the inference worker"


def refusal(url: str, reply: HttpReply, *, asked: bytes = b"") -> TrialFailure:
    """The failure that a reply other than 200 stands for.

    Args:
        url: the endpoint's.
        reply: what came.
        asked: the body of the request, which the reply may repeat.
    """
    if reply.status in (401, 403):
        return TrialFailure(unauthorised(url, reply.status), retryable=False)
    if 300 <= reply.status < 400:
        return TrialFailure(f"{url} answered with a redirect ({reply.status}), which is not followed", retryable=False)
    words = reply.body.decode("utf-8", "replace")
    died = engine_died(words, asked=asked)
    passing = reply.status in RETRYABLE_STATUSES
    return TrialFailure(
        f"{url} answered {reply.status}: {printable(words[:600])}",
        retryable=died or passing or lacks_memory(words, asked=asked),
        unavailable=died or (passing and reply.status >= 500),
    )


def not_connected(url: str, error: Exception) -> str:
    """What is said of an endpoint to which there is no connection."""
    cause: BaseException | None = error
    seen = 0
    while cause is not None and seen < 8:
        # With several addresses (IPv6 and IPv4) anyio says only that all attempts failed.
        if isinstance(cause, ConnectionRefusedError) or "All connection attempts failed" in str(cause):
            return f"connection refused at {url}"
        cause, seen = cause.__cause__ or cause.__context__, seen + 1
    return f"{url} cannot be reached: {printable(str(error))}"
