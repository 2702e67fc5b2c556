"""One HTTP endpoint: its connections, the waits that it asks for, and asking it a shard. What HTTP backends share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import httpx

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Completion, Trial
from proctor.inference.address import HttpAddress
from proctor.inference.api_keys import without_key
from proctor.inference.backend import (
    MAX_ANSWER_BYTES,
    Answer,
    Probe,
    TrialFailure,
    answered,
    failed,
    printable,
    prompt_bytes,
)
from proctor.inference.retry import RetryBudget, asked_wait_s, backoff_s
from proctor.inference.window import Window, map_bounded

_PROBE_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 5.0
#: Statuses that say "later": too many requests, and a server or its proxy in trouble.
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_ATTEMPTS = 5
#: An endpoint that cannot be connected to is not asked as often: nothing listens, and the router tries the shard again.
_MAX_CONNECTION_ATTEMPTS = 3
#: Beside one repeat a trial: enough for an endpoint that limits its rate; one that is down runs out of it soon.
_SPARE_REPEATS = 8


class HttpReply(NamedTuple):
    """What came back for one request. `server` is its Server header, fit to be printed."""

    status: int
    body: bytes
    server: str


class HttpRequest(NamedTuple):
    """A request to POST: its URL and its JSON."""

    url: str
    body: bytes


class HttpEndpoint:
    """An endpoint over HTTP. Follows no redirect, reads no answer past the size limit, sends the key to it alone."""

    def __init__(
        self,
        spec: EndpointSpec,
        address: HttpAddress,
        key: str | None,
        *,
        window: Window | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """
        Args:
            spec: the endpoint, for completions and messages.
            address: where it is.
            key: the API key it gets, if any.
            window: bounds what is in flight.
            rng: draws the jitter of the waits between attempts; changes no answer.
        """
        self._spec = spec
        self._key = key
        # A proxy is for other machines: one that the environment names does not stand before this one.
        self._trust_env = not address.loopback
        self._window = window or Window()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._client: httpx.AsyncClient | None = None
        self._not_before = 0.0

    async def probe(self, url: str, judge: Callable[[HttpReply], Probe]) -> Probe:
        """GET a URL and judge the reply. An endpoint that gives none is a failed probe that says why."""
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                reply = await self._send("GET", url, None)
        except TrialFailure as failure:
            found = Probe(False, detail=str(failure))
        except TimeoutError:
            found = Probe(False, detail=f"{self._spec.url} did not answer within {_PROBE_TIMEOUT_S:.0f} s")
        else:
            found = judge(reply)
        return found._replace(detail=self._safe(found.detail), server=self._safe(found.server))

    async def complete(
        self,
        trials: Sequence[Trial],
        request: Callable[[Trial], HttpRequest],
        read: Callable[[Trial, bytes], Answer],
        *,
        deadline_s: float,
    ) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`.

        Args:
            trials: what to ask.
            request: a trial's request.
            read: the answer in the body of a reply to a trial; raises TrialFailure where it holds none.
            deadline_s: seconds from now.
        """
        deadline = time.monotonic() + deadline_s
        budget = RetryBudget(_SPARE_REPEATS + len(trials))

        async def ask(trial: Trial) -> Completion:
            started = time.monotonic()
            try:
                prompt_bytes(trial.prompt)
                async with asyncio.timeout(deadline - started):
                    payload = await self._send_until_answered(request(trial), budget)
                answer = read(trial, payload)
            except TimeoutError:
                return failed(trial, self._spec, self._too_late(), latency_s=time.monotonic() - started)
            except TrialFailure as failure:
                safe = TrialFailure(self._safe(str(failure)), retryable=failure.retryable)
                return failed(trial, self._spec, safe, latency_s=time.monotonic() - started)
            answer = answer._replace(text=self._safe(answer.text))
            return answered(trial, self._spec, answer, latency_s=time.monotonic() - started)

        return await map_bounded(self._window, trials, lambda trial: len(trial.prompt), ask)

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _send_until_answered(self, request: HttpRequest, budget: RetryBudget) -> bytes:
        attempt = 0
        while True:
            attempt += 1
            await self._wait_until_asked_again()
            try:
                reply = await self._send("POST", request.url, request.body)
            except _ConnectionFailure:
                if attempt >= _MAX_CONNECTION_ATTEMPTS or not budget.spend():
                    raise
            else:
                if reply.status == 200:
                    return reply.body
                if reply.status not in _RETRYABLE_STATUSES or attempt >= _MAX_ATTEMPTS or not budget.spend():
                    raise _refusal(self._spec.url, reply)
            await asyncio.sleep(backoff_s(attempt, self._rng))

    async def _wait_until_asked_again(self) -> None:
        """Hold back for as long as the endpoint asked: that counts for the whole endpoint, not for one prompt."""
        if (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait + self._rng.random() * min(wait, 1.0))

    def _too_late(self) -> TrialFailure:
        why = ": it asked to be left alone for longer" if self._not_before > time.monotonic() else ""
        return TrialFailure(f"no answer from {self._spec.url} before the deadline{why}", retryable=True)

    async def _send(self, method: str, url: str, body: bytes | None) -> HttpReply:
        """One exchange.

        Raises:
            TrialFailure: no connection, a broken one, or an answer past the size limit.
        """
        try:
            async with self._opened().stream(method, url, content=body) as response:
                payload = bytearray()
                async for chunk in response.aiter_bytes():
                    payload += chunk
                    if len(payload) > MAX_ANSWER_BYTES:
                        raise TrialFailure(
                            f"{self._spec.url} answered more than {MAX_ANSWER_BYTES:,} bytes", retryable=False
                        )
                if response.status_code in _RETRYABLE_STATUSES:
                    wait = asked_wait_s(response.headers, now=time.time())
                    self._not_before = max(self._not_before, time.monotonic() + (wait or 0.0))
                server = printable(response.headers.get("server", ""))[:80]
                return HttpReply(response.status_code, bytes(payload), server)
        except httpx.ConnectError as error:
            raise _ConnectionFailure(_not_connected(self._spec.url, error), retryable=True) from None
        except httpx.TimeoutException:
            raise _ConnectionFailure(f"{self._spec.url} did not accept a connection in time", retryable=True) from None
        except httpx.TransportError as error:
            name = type(error).__name__
            raise _ConnectionFailure(
                f"the connection to {self._spec.url} broke ({name}): {printable(str(error))}", retryable=True
            ) from None
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            said = printable(str(error))
            raise TrialFailure(f"{self._spec.url} sent what cannot be read: {said}", retryable=False) from None

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            self._client = httpx.AsyncClient(
                headers=headers,
                follow_redirects=False,
                trust_env=self._trust_env,
                # Reading has no limit of its own: a model may think for long, and every request has its deadline.
                timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        return self._client

    def _safe(self, text: str) -> str:
        return without_key(text, self._key)


class _ConnectionFailure(TrialFailure):
    """No connection, or one that broke: there was no answer at all."""


def unauthorised(url: str, status: int) -> str:
    """What is said of 401 and 403, whose bodies like to repeat the key."""
    return f"{url} answered {status}: it wants another API key; set PROCTOR_API_KEY for the inference worker"


def _refusal(url: str, reply: HttpReply) -> TrialFailure:
    if reply.status in (401, 403):
        return TrialFailure(unauthorised(url, reply.status), retryable=False)
    if 300 <= reply.status < 400:
        return TrialFailure(f"{url} answered with a redirect ({reply.status}), which is not followed", retryable=False)
    said = printable(reply.body[:600].decode("utf-8", "replace"))
    return TrialFailure(f"{url} answered {reply.status}: {said}", retryable=reply.status in _RETRYABLE_STATUSES)


def _not_connected(url: str, error: Exception) -> str:
    cause: BaseException | None = error
    seen = 0
    while cause is not None and seen < 8:
        # With several addresses (IPv6 and IPv4) anyio says only that all attempts failed.
        if isinstance(cause, ConnectionRefusedError) or "All connection attempts failed" in str(cause):
            return f"connection refused at {url}"
        cause, seen = cause.__cause__ or cause.__context__, seen + 1
    return f"{url} cannot be reached: {printable(str(error))}"
