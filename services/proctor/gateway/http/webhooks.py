"""`/v1/webhooks`: what registries send. They show no token; each delivery is signed, or brings the secret."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Final, TypeAlias

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.domain.registered_version import RegistryKind
from proctor.gateway.http.answers import problems
from proctor.gateway.http.bodies import SMALL_BODY_S, body_of
from proctor.gateway.triggers.traffic import Traffic
from proctor.registry.webhooks.events import ForgedError
from proctor.registry.webhooks.receiver import MAX_BODY_BYTES, Answer, NoSecretError, Receiver
from proctor.runtime.grpc.calls import Places
from proctor.runtime.logs.context import carried
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import WebhookOutcome

#: Deliveries at once, whose bodies are in memory: 16 MiB of them. MLflow sends ten at once.
MAX_DELIVERIES: Final = 64
_Take: TypeAlias = Callable[[Mapping[str, Sequence[str]], bytes], Answer]


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
        registry: RegistryKind,
        take: _Take,
        request: Request,
        response: Response,
    ) -> Taken:
        with _counted(registry) as counted:
            answer = await answered(take, request)
            counted.outcome = WebhookOutcome(answer.status)
        response.status_code = 202 if answer.status == "accepted" else 200
        return Taken(status=answer.status, why=answer.why, requests=answer.requests)

    async def answered(take: _Take, request: Request) -> Answer:
        # By one name for all: whoever sends is known only once the body was read.
        with places.of(""):
            body = await body_of(request, most=MAX_BODY_BYTES, within_s=SMALL_BODY_S)
            loop = asyncio.get_running_loop()
            with traffic.delivery():
                return await loop.run_in_executor(workers, carried(take), _headers(request), body)

    def route(registry: RegistryKind, take: _Take, summary: str) -> None:
        async def endpoint(request: Request, response: Response) -> Taken:
            return await taken(registry, take, request, response)

        body = {"requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}}
        routes.post(
            f"/{registry}",
            status_code=202,
            name=registry.value,
            summary=summary,
            responses={200: {"model": Taken}},
            openapi_extra=body,
        )(endpoint)

    route(RegistryKind.MLFLOW, receiver.mlflow, "An event of MLflow's registry, signed as MLflow signs")
    hub = "An event of the Hugging Face Hub, with its secret in X-Webhook-Secret"
    route(RegistryKind.HUGGINGFACE, receiver.huggingface, hub)
    return routes


class _Delivery:
    """A delivery that is being taken in, and what became of it."""

    outcome = WebhookOutcome.FAILED


@contextmanager
def _counted(registry: RegistryKind) -> Iterator[_Delivery]:
    """Count a delivery by what it comes to; what it raises passes on."""
    delivery = _Delivery()
    try:
        yield delivery
    except ForgedError:
        delivery.outcome = WebhookOutcome.FORGED
        raise
    except LimitError:
        delivery.outcome = WebhookOutcome.REFUSED
        raise
    except NoSecretError:
        raise
    except BadInputError:
        delivery.outcome = WebhookOutcome.INVALID
        raise
    finally:
        metrics.webhook_delivery(registry, delivery.outcome)


def _headers(request: Request) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, value in request.scope["headers"]:
        found[name.decode("latin-1")].append(value.decode("latin-1"))
    return found
