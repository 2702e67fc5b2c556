"""The backend for OpenAI-compatible HTTP endpoints: `/v1/completions`, or `/v1/chat/completions`.

Such an endpoint says nothing that would prove which weights it serves, so the model's digest stays unverified.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.http.address import http_address
from proctor.inference.http.endpoint import HttpEndpoint, HttpRequest, HttpSession
from proctor.inference.http.failures import HttpReply, unauthorised
from proctor.inference.http.openai_wire import read_answer, request_body
from proctor.inference.http.reply_bounds import load_json
from proctor.inference.worker.api_keys import api_key
from proctor.inference.worker.backend import Probe, TrialFailure, printable
from proctor.inference.worker.retry import repeats_for
from proctor.inference.worker.window import Window


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
            BadInputError: the URL is not http or https, or a key in the environment cannot be used.
        """
        self._spec = spec
        address = http_address(spec.url, example="https://host/v1", name=spec.server_name)
        self._base = address.url if address.has_path else f"{address.url}/v1"
        key = api_key(address, environ, openai=True, named=spec.gets_keys)
        self._endpoint = HttpEndpoint(spec, address, key, window=window, rng=rng)

    async def probe(self) -> Probe:
        """Ask for the list of models."""
        return await self._endpoint.probe(f"{self._base}/models", self._judge)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        session = await self.session(decoding, repeats=repeats_for(len(trials)), deadline_s=deadline_s)
        return await self._endpoint.complete(trials, session, deadline_s=deadline_s)

    async def session(
        self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False
    ) -> HttpSession:
        """Trials one by one; see `Server.session`. The endpoint is not asked first what it serves."""

        def request(trial: Trial) -> HttpRequest:
            path, body = request_body(self._spec, trial.prompt, decoding)
            return HttpRequest(self._base + path, body)

        return self._endpoint.session(
            request,
            lambda _, payload: read_answer(payload, chat=self._spec.chat),
            max_tokens=decoding.max_tokens,
            repeats=repeats,
            instead=instead,
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self._endpoint.close()

    def _judge(self, reply: HttpReply) -> Probe:
        url, name = self._spec.url, self._spec.served_name
        described = "OpenAI-compatible endpoint" + (f" ({reply.server})" if reply.server else "")
        if reply.status in (401, 403):
            return Probe(False, server=described, detail=unauthorised(url, reply.status))
        if reply.status in (404, 405, 501):
            detail = f"{self._base}/models answered {reply.status}, so that {name!r} is served is unchecked"
            return Probe(True, server=described, detail=detail)
        if reply.status != 200:
            said = printable(reply.body[:300].decode("utf-8", "replace"))
            return Probe(False, server=described, detail=f"{self._base}/models answered {reply.status}: {said}")
        names = _model_names(reply.body)
        if names is not None and name not in names:
            shown = ", ".join(repr(printable(one)[:80]) for one in names[:5]) or "no model"
            return Probe(False, server=described, detail=f"{url} does not serve {name!r}; it lists {shown}")
        return Probe(True, server=described)


def _model_names(body: bytes) -> list[str] | None:
    """The listed model names; None where the list is not in the form that OpenAI's has."""
    try:
        data: Any = load_json(body)
    except (ValueError, RecursionError, TrialFailure):
        return None
    rows = data.get("data") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        return None
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
