"""The backend for OpenAI-compatible HTTP endpoints: `/v1/completions`, or `/v1/chat/completions`.

Such an endpoint says nothing that would prove which weights it serves, so the model's digest stays unverified.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from proctor.domain.errors import BadInputError
from proctor.domain.messages import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.backend import MAX_ANSWER_BYTES, Probe, TrialFailure, answered, failed, printable, prompt_bytes
from proctor.inference.openai_wire import read_answer, request_body
from proctor.inference.retry import RetryBudget, backoff_s, retry_after_s
from proctor.inference.window import Window, map_bounded

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PROBE_TIMEOUT_S = 10.0
_CONNECT_TIMEOUT_S = 5.0
#: Statuses that say "later": too many requests, and a server or its proxy in trouble.
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_MAX_ATTEMPTS = 5
#: An endpoint that cannot be connected to is not asked as often: nothing listens, and the router tries the shard again.
_MAX_CONNECTION_ATTEMPTS = 3


class OpenAIBackend:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(
        self,
        spec: EndpointSpec,
        *,
        environ: Mapping[str, str] = os.environ,
        window: Window | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """
        Args:
            spec: the endpoint; a URL without a path gets `/v1`.
            environ: where the API key is looked up.
            window: bounds what is in flight.
            rng: draws the jitter of the waits between attempts; changes no answer.

        Raises:
            BadInputError: the URL is not http or https.
        """
        self._spec = spec
        self._base, loopback = _base_url(spec.url)
        self._headers = _headers(environ, secure=self._base.startswith("https://") or loopback)
        self._trust_env = not loopback
        self._window = window or Window()
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._client: httpx.AsyncClient | None = None
        self._not_before = 0.0

    async def probe(self) -> Probe:
        """Ask for the list of models."""
        try:
            status, body, server = await self._send("GET", "/models", None, _PROBE_TIMEOUT_S)
        except TrialFailure as failure:
            return Probe(False, detail=str(failure))
        except TimeoutError:
            return Probe(False, detail=f"{self._spec.url} did not answer within {_PROBE_TIMEOUT_S:.0f} s")
        described = f"OpenAI-compatible endpoint ({server})" if server else "OpenAI-compatible endpoint"
        if status in (401, 403):
            return Probe(False, server=described, detail=_unauthorised(self._spec.url, status))
        if status in (404, 405, 501):
            detail = f"{self._base}/models answered {status}, so that {self._spec.served_name!r} is served is unchecked"
            return Probe(True, server=described, detail=detail)
        if status != 200:
            detail = f"{self._base}/models answered {status}: {printable(body[:300].decode('utf-8', 'replace'))}"
            return Probe(False, server=described, detail=detail)
        names = _model_names(body)
        if names is not None and self._spec.served_name not in names:
            shown = ", ".join(repr(printable(name)[:80]) for name in names[:5]) or "no model"
            detail = f"{self._spec.url} does not serve {self._spec.served_name!r}; it lists {shown}"
            return Probe(False, server=described, detail=detail)
        return Probe(True, server=described)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        # Enough for an endpoint that limits its rate; an endpoint that is down runs out of it soon.
        budget = RetryBudget(8 + len(trials))
        return await map_bounded(
            self._window,
            trials,
            lambda trial: len(trial.prompt),
            lambda trial: self._ask(trial, decoding, deadline, budget),
        )

    async def close(self) -> None:
        """Give back the connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def _ask(self, trial: Trial, decoding: Decoding, deadline: float, budget: RetryBudget) -> Completion:
        started = time.monotonic()
        try:
            prompt_bytes(trial.prompt)
            path, body = request_body(self._spec, trial.prompt, decoding)
            async with asyncio.timeout(deadline - started):
                payload = await self._send_until_answered(path, body, budget)
            answer = read_answer(payload, chat=self._spec.chat)
        except TimeoutError:
            failure = TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True)
            return failed(trial, self._spec, failure, latency_s=time.monotonic() - started)
        except TrialFailure as failure:
            return failed(trial, self._spec, failure, latency_s=time.monotonic() - started)
        return answered(trial, self._spec, answer, model_digest=None, latency_s=time.monotonic() - started)

    async def _send_until_answered(self, path: str, body: bytes, budget: RetryBudget) -> bytes:
        attempt = 0
        while True:
            attempt += 1
            await self._wait_until_asked_again()
            try:
                status, payload, _ = await self._send("POST", path, body, None)
            except _ConnectionFailure:
                if attempt >= _MAX_CONNECTION_ATTEMPTS or not budget.spend():
                    raise
            else:
                if status == 200:
                    return payload
                if status not in _RETRYABLE_STATUSES or attempt >= _MAX_ATTEMPTS or not budget.spend():
                    raise _refusal(self._spec.url, status, payload)
            await asyncio.sleep(backoff_s(attempt, self._rng))

    async def _wait_until_asked_again(self) -> None:
        """Hold back while the endpoint's Retry-After runs: it counts for the whole endpoint, not for one prompt."""
        if (wait := self._not_before - time.monotonic()) > 0:
            await asyncio.sleep(wait + self._rng.random() * min(wait, 1.0))

    async def _send(
        self, method: str, path: str, body: bytes | None, timeout_s: float | None
    ) -> tuple[int, bytes, str]:
        """Status, body and Server header of one exchange.

        Raises:
            TrialFailure: no connection, a broken one, or an answer past the size limit.
            TimeoutError: `timeout_s` ran out.
        """
        try:
            stream = self._opened().stream(method, self._base + path, content=body)
            async with asyncio.timeout(timeout_s), stream as response:
                payload = bytearray()
                async for chunk in response.aiter_bytes():
                    payload += chunk
                    if len(payload) > MAX_ANSWER_BYTES:
                        raise TrialFailure(
                            f"{self._spec.url} answered more than {MAX_ANSWER_BYTES:,} bytes", retryable=False
                        )
                wait = retry_after_s(response.headers.get("retry-after"), now=time.time())
                if wait is not None and response.status_code in _RETRYABLE_STATUSES:
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                return response.status_code, bytes(payload), printable(response.headers.get("server", ""))[:80]
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
            self._client = httpx.AsyncClient(
                headers=self._headers,
                follow_redirects=False,
                trust_env=self._trust_env,
                # Reading has no limit of its own: a model may think for long, and every request has its deadline.
                timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            )
        return self._client


class _ConnectionFailure(TrialFailure):
    """No connection, or one that broke: there was no answer at all."""


def _base_url(url: str) -> tuple[str, bool]:
    """The URL that paths are added to, and whether it is this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise BadInputError(
            f"the endpoint {url[:200]!r} is not a URL like https://host/v1 (keys go in the environment)"
        )
    path = parts.path.rstrip("/") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), host in _LOOPBACK


def _headers(environ: Mapping[str, str], *, secure: bool) -> dict[str, str]:
    """Request headers with the API key. OPENAI_API_KEY, which is set for other programs too, never travels in clear."""
    key = environ.get("PROCTOR_API_KEY") or (environ.get("OPENAI_API_KEY") if secure else None)
    headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
    if key:
        if not key.isascii() or not key.isprintable():
            raise BadInputError("the API key in the environment holds a line break or another unprintable character")
        headers["authorization"] = f"Bearer {key}"
    return headers


def _refusal(url: str, status: int, payload: bytes) -> TrialFailure:
    if status in (401, 403):
        return TrialFailure(_unauthorised(url, status), retryable=False)
    if 300 <= status < 400:
        return TrialFailure(f"{url} answered with a redirect ({status}), which is not followed", retryable=False)
    said = printable(payload[:600].decode("utf-8", "replace"))
    return TrialFailure(f"{url} answered {status}: {said}", retryable=status in _RETRYABLE_STATUSES)


def _unauthorised(url: str, status: int) -> str:
    return f"{url} answered {status}: it wants another API key; set PROCTOR_API_KEY for the inference worker"


def _not_connected(url: str, error: Exception) -> str:
    cause: BaseException | None = error
    seen = 0
    while cause is not None and seen < 8:
        # With several addresses (IPv6 and IPv4) anyio says only that all attempts failed.
        if isinstance(cause, ConnectionRefusedError) or "All connection attempts failed" in str(cause):
            return f"connection refused at {url}"
        cause, seen = cause.__cause__ or cause.__context__, seen + 1
    return f"{url} cannot be reached: {printable(str(error))}"


def _model_names(body: bytes) -> list[str] | None:
    """The listed model names; None where the list is not in the form that OpenAI's has."""
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    rows = data.get("data") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        return None
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
