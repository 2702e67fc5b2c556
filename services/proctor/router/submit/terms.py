"""The terms of an audit, as its suite and the operator have them on the day that it is submitted."""

from __future__ import annotations

from proctor.domain.ceilings import CEILINGS
from proctor.domain.errors import BadInputError
from proctor.domain.submitter import LOCAL_NAME
from proctor.domain.suite import Suite
from proctor.router.submit.allowed import Allowed
from proctor.router.submit.endpoints import audited_endpoint, paraphraser_endpoint, router_endpoint
from proctor.router.submit.solvers import solver_endpoints
from proctor.router.terms import Terms
from proctor.runtime.settings import Settings


def terms_of(suite: Suite, settings: Settings, submitter: str = LOCAL_NAME, *, from_logs: bool = False) -> Terms:
    """The terms of a suite, with the ceilings and prices that the operator gave its submitter and the endpoints.

    Args:
        suite: names the endpoints.
        settings: the operator's.
        submitter: whose ceilings hold.
        from_logs: whether answers are taken from logs, so that only solvers are asked.

    Raises:
        BadInputError: when an endpoint may not be asked, or the cost is limited and one of them has no prices.
    """
    asked: dict[str, Allowed | None] = {}
    if not from_logs:
        asked = {
            "answer": audited_endpoint(suite, settings),
            "paraphrase": paraphraser_endpoint(suite, settings),
            "transmit": router_endpoint(suite, settings),
        }
    solvers = solver_endpoints(suite, settings).values()
    ceilings = settings.ceilings.of(submitter).budget
    for found in (*asked.values(), *solvers):
        if found is None or found.prices is not None:
            continue
        mend = "give it input_price_per_million and output_price_per_million in PROCTOR_ENDPOINTS (0 is a price)"
        if suite.budget.max_cost is not None:
            raise BadInputError(
                f"budget_config.max_cost is {suite.budget.max_cost:g}, but the endpoint {found.name!r} has no prices; "
                f"{mend}, or limit max_tokens instead"
            )
        if ceilings.max_cost is not None:
            # What has no price could not be stopped by what it costs.
            raise BadInputError(
                f"the operator lets submitter '{submitter}' spend {ceilings.max_cost:g} an audit ({CEILINGS}: "
                f"max_cost), but the endpoint {found.name!r} has no prices; have the operator {mend}"
            )
    prices = {name: found.prices for name, found in asked.items() if found is not None}
    check = tuple(found.prices for found in solvers)
    return Terms(budget=suite.budget, ceilings=ceilings, check=check, **prices)
