"""The HTTPS server that the API server calls: a port of its own, under certificates that change while it serves.

It takes no token: what it answers, whoever may read the registry knows. Who may ask can be held to an authority's
client certificates.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.gateway.admission.answer import Mode
from proctor.gateway.admission.certificates.source import CertificateSource, presenting
from proctor.gateway.admission.desk import AdmissionDesk, Terms
from proctor.gateway.admission.review import MAX_BODY_BYTES, review_of
from proctor.gateway.front import Front
from proctor.gateway.http.bodies import BodyTooLargeError, body_of
from proctor.gateway.http.server import served
from proctor.runtime.grpc.serving import Address
from proctor.runtime.verdicts import Verdicts

logger = logging.getLogger(__name__)

#: Of a webhook's path, what the namespaces ask for whose workloads it is called for.
PATHS: Final = {"/admission": Mode.ENFORCE, "/admission/warn": Mode.WARN, "/admission/audit": Mode.AUDIT}
#: Reviews that are read or answered at once; who comes later waits.
_AT_ONCE: Final = 16
_THREADS: Final = 8
_BODY_S: Final = 5.0


class AdmissionOptions(NamedTuple):
    """How the webhook is served."""

    address: Address
    certificates: CertificateSource
    terms: Terms = Terms()
    client_authority: Path | None = None
    """PEM file of an authority; only API servers with a certificate of it are let in."""
    grace_s: float = 0.0


@asynccontextmanager
async def serving_admission(
    front: Front, options: AdmissionOptions, ready: Callable[[Address], None] = lambda bound: None
) -> AsyncIterator[Address]:
    """Serve for as long as the block lasts; gives the address with its real port, and tells it to `ready`.

    Raises:
        BadInputError: the address cannot be listened on, or the certificates cannot be used.
    """
    desk = front.desk
    verdicts = Verdicts(desk.settings, desk.records.deployable)
    # Said now, and not at the first workload.
    verdicts.trust()
    context = _context(options.client_authority)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="gateway-admission") as workers:
        app = application(AdmissionDesk(verdicts, workers, options.terms))
        async with (
            presenting(options.certificates, context),
            served(app, options.address, options.grace_s, {}, context) as bound,
        ):
            ready(bound)
            yield bound


def application(desk: AdmissionDesk) -> Starlette:
    """The webhook's routes."""
    places = asyncio.Semaphore(_AT_ONCE)

    def of(mode: Mode) -> Callable[[Request], Awaitable[Response]]:
        async def review(request: Request) -> Response:
            async with places:
                try:
                    body = await body_of(request, most=MAX_BODY_BYTES, within_s=_BODY_S)
                    asked = review_of(body)
                except BodyTooLargeError as error:
                    return _said(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error)
                except LimitError as error:
                    return _said(HTTPStatus.REQUEST_TIMEOUT, error)
                except BadInputError as error:
                    return _said(HTTPStatus.BAD_REQUEST, error)
                return JSONResponse(await desk.answer(asked, mode))

        return review

    app = Starlette(routes=[Route(path, of(mode), methods=["POST"]) for path, mode in PATHS.items()])
    app.router.redirect_slashes = False
    return app


def _said(status: HTTPStatus, error: Exception) -> Response:
    return JSONResponse({"detail": str(error)}, status)


def _context(client_authority: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_authority is not None:
        try:
            context.load_verify_locations(client_authority)
        except (OSError, ssl.SSLError) as error:
            raise BadInputError(f"{client_authority} is no PEM file of an authority: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context
