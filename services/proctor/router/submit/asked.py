"""What of a suite's settings the endpoints of its models put in force, for its protocol card."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.asked import Asked, AskedModels, asked_of
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.suite import Suite
from proctor.router.submit.endpoints import resolve_endpoint, resolve_paraphraser, resolve_router
from proctor.router.submit.solvers import resolve_solvers
from proctor.runtime.settings import Settings


def asked_models(suite: Suite, settings: Settings) -> AskedModels | None:
    """What is in force of a suite's settings; None where all of them are.

    Raises:
        BadInputError: when an endpoint may not be asked here, or not so.
    """
    audited = resolve_endpoint(suite, settings)
    beside = resolve_paraphraser(suite, settings), resolve_router(suite, settings)
    return asked_at(audited, *beside, resolve_solvers(suite, audited, settings))


def asked_at(
    endpoint: EndpointSpec,
    paraphraser: EndpointSpec | None,
    router: EndpointSpec | None,
    solvers: Sequence[EndpointSpec],
) -> AskedModels | None:
    """The same of the endpoints."""
    found = AskedModels(
        audited=asked_of(endpoint),
        paraphraser=asked_of(paraphraser),
        router=asked_of(router),
        solvers=tuple(map(asked_of, solvers)),
    )
    # Not written where all of it is in force, so that an earlier router reads the row.
    of_all = (found.audited, found.paraphraser, found.router, *found.solvers)
    return None if all(one == Asked() for one in of_all) else found
