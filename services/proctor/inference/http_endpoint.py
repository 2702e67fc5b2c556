"""One HTTP endpoint: its connections, the waits that it asks for, and asking it a shard. What HTTP backends share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import httpx

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Trial
from proctor.inference.address import HttpAddress
from proctor.inference.api_keys import without_key
from proctor.inference.backend import (
    MAX_ANSWER_BYTES,
    Answer,
    Probe,
    TrialFailure,
    answered,
    attempt,
    printable,
    prompt_bytes,
)
from proctor.inference.http_failures import RETRYABLE_STATUSES, ConnectionFailure, HttpReply, not_connected, refusal
from proctor.inference.public_place import check_encrypted, peer_check
from proctor.inference.retry import RetryBudget, asked_wait_s, backoff_s
from proctor.inference.window import Window, map_bounded

_PROBE_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 5.0
_MAX_ATTEMPTS = 5
#: An endpoint that cannot be connected to is not asked as often: nothing listens, and the router tries the shard again.
_MAX_CONNECTION_ATTEMPTS = 3


class HttpRequest(NamedTuple):
    """A request to POST: its URL and its JSON."""

    url: str
    body: bytes


class _Patience(NamedTuple):
    """Whether a request is sent again: while the budget lasts, and not where another endpoint can be asked."""

    budget: RetryBudget
    instead: bool

    def is_over(self, *, away: bool) -> bool:
        """Whether a failure stands. One that is away is left to whoever can ask another instead."""
        return (away and self.instead) or not self.budget.spend()


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

        Raises:
            BadInputError: only public addresses are allowed, and the way there is not encrypted.
        """
        self._spec = spec
        self._key = key
        self._host = None if spec.server_name is None else address.host
        # A proxy is for other machines: one that the environment names does not stand before this one. Nor before an
        # endpoint whose address is checked: the proxy would look it up.
        self._trust_env = not address.loopback and not spec.public_only
        if spec.public_only:
            check_encrypted(address.url, encrypted=address.encrypted)
        self._window = window or Window()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._client: httpx.AsyncClient | None = None
        self._not_before = 0.0

    async def probe(self, url: str, judge: Callable[[HttpReply], Probe]) -> Probe:
        """GET a URL and judge the reply. An endpoint that gives none is a failed probe that says why."""
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                reply = await self._send("GET", url, None)
        except (TrialFailure, EndpointError) as failure:
            found = Probe(False, detail=str(failure))
        except TimeoutError:
            found = Probe(False, detail=f"{self._spec.url} did not answer within {_PROBE_TIMEOUT_S:.0f} s")
        else:
            found = judge(reply)
        return found._replace(detail=self._safe(found.detail), server=self._safe(found.server))

    def session(
        self,
        request: Callable[[Trial], HttpRequest],
        read: Callable[[Trial, bytes], Answer],
        *,
        repeats: int,
        instead: bool = False,
    ) -> HttpSession:
        """Ask trials one by one.

        Args:
            request: a trial's request.
            read: the answer in the body of a reply to a trial; raises TrialFailure where it holds none.
            repeats: how often a request may be sent again, over all trials.
            instead: whether another endpoint can be asked instead: then none is sent again to one that is away.
        """
        return HttpSession(self, request, read, _Patience(RetryBudget(repeats), instead))

    async def complete(self, trials: Sequence[Trial], session: HttpSession, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        return await map_bounded(
            self._window,
            trials,
            lambda trial: len(trial.prompt),
            lambda trial: attempt(session, trial, self._spec, deadline),
        )

    async def ask(
        self,
        trial: Trial,
        request: Callable[[Trial], HttpRequest],
        read: Callable[[Trial, bytes], Answer],
        patience: _Patience,
        *,
        deadline: float,
    ) -> Completion:
        """One trial; see `Session.ask`."""
        started = time.monotonic()
        try:
            prompt_bytes(trial.prompt)
            async with asyncio.timeout(deadline - started):
                payload = await self._send_until_answered(request(trial), patience)
            answer = read(trial, payload)
        except TimeoutError:
            raise self._too_late() from None
        except TrialFailure as failure:
            safe = self._safe(str(failure))
            raise TrialFailure(safe, retryable=failure.retryable, unavailable=failure.unavailable) from None
        answer = answer._replace(text=self._safe(answer.text))
        return answered(trial, self._spec, answer, latency_s=time.monotonic() - started)

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _send_until_answered(self, request: HttpRequest, patience: _Patience) -> bytes:
        attempt = 0
        while True:
            attempt += 1
            await self._wait_until_asked_again()
            try:
                reply = await self._send("POST", request.url, request.body)
            except ConnectionFailure:
                if attempt >= _MAX_CONNECTION_ATTEMPTS or patience.is_over(away=True):
                    raise
            else:
                if reply.status == 200:
                    return reply.body
                failure = refusal(self._spec.url, reply)
                over = attempt >= _MAX_ATTEMPTS or not failure.retryable
                if over or patience.is_over(away=failure.unavailable):
                    raise failure
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
            EndpointError: only public addresses are allowed, and it has another.
        """
        try:
            async with self._opened().stream(method, url, content=body, extensions=self._extensions()) as response:
                payload = bytearray()
                async for chunk in response.aiter_bytes():
                    payload += chunk
                    if len(payload) > MAX_ANSWER_BYTES:
                        raise TrialFailure(
                            f"{self._spec.url} answered more than {MAX_ANSWER_BYTES:,} bytes", retryable=False
                        )
                if response.status_code in RETRYABLE_STATUSES:
                    wait = asked_wait_s(response.headers, now=time.time())
                    self._not_before = max(self._not_before, time.monotonic() + (wait or 0.0))
                server = printable(response.headers.get("server", ""))[:80]
                return HttpReply(response.status_code, bytes(payload), server)
        except httpx.ConnectError as error:
            raise ConnectionFailure(not_connected(self._spec.url, error)) from None
        except httpx.TimeoutException:
            raise ConnectionFailure(f"{self._spec.url} did not accept a connection in time") from None
        except httpx.TransportError as error:
            name = type(error).__name__
            raise ConnectionFailure(
                f"the connection to {self._spec.url} broke ({name}): {printable(str(error))}"
            ) from None
        except (httpx.DecodingError, httpx.InvalidURL) as error:
            said = printable(str(error))
            raise TrialFailure(f"{self._spec.url} sent what cannot be read: {said}", retryable=False) from None

    def _extensions(self) -> dict[str, Any]:
        extensions: dict[str, Any] = {}
        if self._spec.public_only:
            extensions["trace"] = peer_check()
        if self._spec.server_name is not None:
            extensions["sni_hostname"] = self._spec.server_name
        return extensions

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            if self._host is not None:
                headers["host"] = self._host
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


class HttpSession:
    """Trials of one call or shard: they share how often requests may be repeated."""

    def __init__(
        self,
        endpoint: HttpEndpoint,
        request: Callable[[Trial], HttpRequest],
        read: Callable[[Trial, bytes], Answer],
        patience: _Patience,
    ) -> None:
        self._endpoint = endpoint
        self._request = request
        self._read = read
        self._patience = patience

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """See `Session.ask`."""
        return await self._endpoint.ask(trial, self._request, self._read, self._patience, deadline=deadline)

    async def close(self) -> None:
        """Nothing is open: the endpoint keeps its connections."""
