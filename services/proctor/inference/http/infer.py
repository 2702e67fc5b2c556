"""The backend for the article's contract: POST `{"prompt", "task_id"}`, get `{"response"}`.

The contract carries no decoding settings: an endpoint answers as it was set up, with its own temperature, ceiling of
tokens and stop texts, and `decoding_config` is unknown on the protocol card (`proctor.domain.asked`). Nor does it carry
a finish reason or token counts, so an answer that was cut off counts as `unknown` and not as truncated, unless
the endpoint says so in the optional members (`proctor.inference.http.infer_wire`).

Source: "Implementing Contamination Audits: A Router-Worker Approach for LLM Evaluation" (2026), `_dispatch_task`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.http.address import http_address
from proctor.inference.http.endpoint import HttpEndpoint, HttpRequest, HttpSession
from proctor.inference.http.failures import HttpReply
from proctor.inference.http.infer_wire import read_answer, request_body
from proctor.inference.worker.api_keys import api_key
from proctor.inference.worker.backend import Probe
from proctor.inference.worker.retry import repeats_for
from proctor.inference.worker.window import Window

_PATH = "/infer"


class InferBackend:
    """A model behind an endpoint of the article's contract."""

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
            spec: the endpoint; a URL that does not end in `/infer` gets it.
            environ: where the API key is looked up.
            window: bounds what is in flight.
            rng: draws the jitter of the waits between attempts; changes no answer.

        Raises:
            BadInputError: the URL is not http or https, or a key in the environment cannot be used.
        """
        self._spec = spec
        address = http_address(spec.url, example="https://host/v1/infer", name=spec.server_name)
        self._url = address.url if address.url.endswith(_PATH) else address.url + _PATH
        key = api_key(address, environ, openai=False, named=spec.gets_keys)
        self._endpoint = HttpEndpoint(spec, address, key, window=window, rng=rng)

    async def probe(self) -> Probe:
        """Ask whether anything answers there.

        The contract has no question about the model, and a GET asks for none: whatever its status, somebody answers
        HTTP. Which model that is shows in the answers, if at all.
        """
        return await self._endpoint.probe(self._url, self._judge)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`. `decoding` is not part of the contract."""
        session = await self.session(decoding, repeats=repeats_for(len(trials)), deadline_s=deadline_s)
        return await self._endpoint.complete(trials, session, deadline_s=deadline_s)

    async def session(
        self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False
    ) -> HttpSession:
        """Trials one by one; see `Server.session`.

        Of `decoding`, which is not part of the contract, the ceiling counts: a longer answer is not kept.
        """
        return self._endpoint.session(
            lambda trial: HttpRequest(self._url, request_body(trial, self._spec)),
            lambda trial, payload: read_answer(payload, trial, self._spec),
            max_tokens=decoding.max_tokens,
            repeats=repeats,
            instead=instead,
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self._endpoint.close()

    def _judge(self, reply: HttpReply) -> Probe:
        described = "POST …/infer endpoint, which takes no decoding settings"
        described += f" ({reply.server})" if reply.server else ""
        detail = f"{self._url} answers (GET: {reply.status}); which model it serves is unchecked"
        return Probe(True, server=described, detail=detail)
