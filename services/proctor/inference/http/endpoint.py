"""One HTTP endpoint: its connections, the waits that it asks for, and asking it a shard. What HTTP backends share."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar, TypeVarTuple

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Trial
from proctor.inference.http.address import HttpAddress
from proctor.inference.http.client import HttpClient
from proctor.inference.http.failures import ConnectionFailure, HttpReply, refusal
from proctor.inference.http.reply_bounds import LARGE_BYTES, MAX_LISTING_BYTES, max_reply_bytes
from proctor.inference.worker.api_keys import without_key
from proctor.inference.worker.backend import Answer, Probe, TrialFailure, answered, attempt, prompt_bytes
from proctor.inference.worker.retry import RetryBudget, backoff_s
from proctor.inference.worker.window import Window, map_bounded

_PROBE_TIMEOUT_S = 10.0
_MAX_ATTEMPTS = 5
#: An endpoint that cannot be connected to is not asked as often: nothing listens, and the router tries the shard again.
_MAX_CONNECTION_ATTEMPTS = 3

T = TypeVar("T")
Given = TypeVarTuple("Given")


class HttpRequest(NamedTuple):
    """A request to POST: its URL and its JSON."""

    url: str
    body: bytes


class _Exchange(NamedTuple):
    """How the trials of a session are asked, and what may come back."""

    request: Callable[[Trial], HttpRequest]
    read: Callable[[Trial, bytes], Answer]
    max_tokens: int


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
        self._client = HttpClient(spec, address, key)
        self._window = window or Window()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._not_before = 0.0

    async def probe(self, url: str, judge: Callable[[HttpReply], Probe]) -> Probe:
        """GET a URL and judge the reply. An endpoint that gives none is a failed probe that says why."""
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                reply = await self._client.send("GET", url, None, MAX_LISTING_BYTES)
        except TrialFailure as failure:
            found = Probe(False, detail=str(failure), unavailable=failure.unavailable)
        except EndpointError as error:
            found = Probe(False, detail=str(error))
        except TimeoutError:
            found = Probe(
                False, detail=f"{self._spec.url} did not answer within {_PROBE_TIMEOUT_S:.0f} s", unavailable=True
            )
        else:
            found = await _read(judge, reply, size=len(reply.body))
        return found._replace(detail=self._safe(found.detail), server=self._safe(found.server))

    def session(
        self,
        request: Callable[[Trial], HttpRequest],
        read: Callable[[Trial, bytes], Answer],
        *,
        max_tokens: int,
        repeats: int,
        instead: bool = False,
    ) -> HttpSession:
        """Ask trials one by one.

        Args:
            request: a trial's request.
            read: the answer in the body of a reply to a trial; raises TrialFailure where it holds none. Pure, and
                called in another thread where the reply is large.
            max_tokens: the ceiling of what a model may answer, sent to the endpoint or not.
            repeats: how often a request may be sent again, over all trials.
            instead: whether another endpoint can be asked instead: then none is sent again to one that is away.
        """
        return HttpSession(self, _Exchange(request, read, max_tokens), _Patience(RetryBudget(repeats), instead=instead))

    async def complete(self, trials: Sequence[Trial], session: HttpSession, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        return await map_bounded(
            self._window,
            trials,
            lambda trial: len(trial.prompt),
            lambda trial: attempt(session, trial, self._spec, deadline),
        )

    async def ask(self, trial: Trial, exchange: _Exchange, patience: _Patience, *, deadline: float) -> Completion:
        """One trial; see `Session.ask`."""
        started = time.monotonic()
        limit = max_reply_bytes(exchange.max_tokens)
        try:
            prompt_bytes(trial.prompt)
            async with asyncio.timeout(deadline - started):
                payload = await self._send_until_answered(exchange.request(trial), limit, patience)
            answer = await _read(exchange.read, trial, payload, size=len(payload))
            answer = answer._replace(text=self._safe(answer.text))
            latency_s = time.monotonic() - started
            return answered(trial, self._spec, answer, max_tokens=exchange.max_tokens, latency_s=latency_s)
        except TimeoutError:
            raise self._too_late() from None
        except TrialFailure as failure:
            safe = self._safe(str(failure))
            raise TrialFailure(safe, retryable=failure.retryable, unavailable=failure.unavailable) from None

    async def close(self) -> None:
        """Give back the connections."""
        await self._client.close()

    async def _send_until_answered(self, request: HttpRequest, limit: int, patience: _Patience) -> bytes:
        attempt = 0
        while True:
            attempt += 1
            await self._wait_until_asked_again()
            try:
                reply = await self._client.send("POST", request.url, request.body, limit)
            except ConnectionFailure:
                if attempt >= _MAX_CONNECTION_ATTEMPTS or patience.is_over(away=True):
                    raise
            else:
                if reply.status == 200:
                    return reply.body
                self._not_before = max(self._not_before, time.monotonic() + reply.wait_s)
                failure = refusal(self._spec.url, reply, asked=request.body)
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

    def _safe(self, text: str) -> str:
        return without_key(text, self._key)


async def _read(function: Callable[[*Given], T], *given: *Given, size: int) -> T:
    """What a function makes of a reply of so many bytes; in another thread where that takes its time."""
    return function(*given) if size <= LARGE_BYTES else await asyncio.to_thread(function, *given)


class HttpSession:
    """Trials of one call or shard: they share how often requests may be repeated."""

    def __init__(self, endpoint: HttpEndpoint, exchange: _Exchange, patience: _Patience) -> None:
        self._endpoint = endpoint
        self._exchange = exchange
        self._patience = patience

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """See `Session.ask`."""
        return await self._endpoint.ask(trial, self._exchange, self._patience, deadline=deadline)

    async def close(self) -> None:
        """Nothing is open: the endpoint keeps its connections."""
