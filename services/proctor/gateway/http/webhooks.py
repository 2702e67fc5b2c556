"""`/v1/webhooks`: what registries send. They show no token; each delivery is signed, or brings the secret."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Final

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from proctor.gateway.http.answers import problems
from proctor.gateway.http.bodies import SMALL_BODY_S, body_of
from proctor.gateway.triggers.traffic import Traffic
from proctor.registry.webhooks.receiver import MAX_BODY_BYTES, Answer, Receiver
from proctor.runtime.grpc.calls import Places

#: Deliveries at once, whose bodies are in memory: 16 MiB of them. MLflow sends ten at once.
MAX_DELIVERIES: Final = 64


class Taken(BaseModel):
    """What became of a delivery."""

    status: str
    """`accepted`: the audits are on record as asked for; `duplicate`, `ignored`: nothing was to do."""
    why: str = ""
    requests: tuple[str, ...] = ()


def webhook_routes(receiver: Receiver, workers: Executor, traffic: Traffic) -> APIRouter:
    """The routes to a receiver, whose stores are asked in threads of their own: submissions do not hold them back."""
    places = Places("deliveries are being taken in", MAX_DELIVERIES, MAX_DELIVERIES, "send it again")
    refusals = problems(400, 401, 409, 413, 429, 503)
    routes = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], responses=refusals)

    async def taken(
        take: Callable[[Mapping[str, Sequence[str]], bytes], Answer], request: Request, response: Response
    ) -> Taken:
        # By one name for all: whoever sends is known only once the body was read.
        with places.of(""):
            body = await body_of(request, most=MAX_BODY_BYTES, within_s=SMALL_BODY_S)
            loop = asyncio.get_running_loop()
            with traffic.delivery():
                answer = await loop.run_in_executor(workers, take, _headers(request), body)
        response.status_code = 202 if answer.status == "accepted" else 200
        return Taken(status=answer.status, why=answer.why, requests=answer.requests)

    def route(name: str, take: Callable[[Mapping[str, Sequence[str]], bytes], Answer], summary: str) -> None:
        async def endpoint(request: Request, response: Response) -> Taken:
            return await taken(take, request, response)

        body = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
        routes.post(
            f"/{name}",
            status_code=202,
            name=name,
            summary=summary,
            responses={200: {"model": Taken}},
            openapi_extra=body,
        )(endpoint)

    route("mlflow", receiver.mlflow, "An event of MLflow's registry, signed as MLflow signs")
    route("huggingface", receiver.huggingface, "An event of the Hugging Face Hub, with its secret in X-Webhook-Secret")
    return routes


def _headers(request: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in request.scope["headers"]:
        found[name.decode("latin-1")].append(value.decode("latin-1"))
    return found
