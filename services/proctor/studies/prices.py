"""The prices that a plan counts with: those that were given, else the operator's."""

from __future__ import annotations

import math

from proctor.domain.errors import BadInputError
from proctor.domain.prices import Prices
from proctor.domain.suite import Suite
from proctor.router.submit.endpoints import audited_endpoint
from proctor.runtime.settings import Settings


def prices_of(million_input: float | None, million_output: float | None) -> Prices | None:
    """The prices that were given; None where neither was.

    Raises:
        BadInputError: where one is missing or no price.
    """
    if million_input is None and million_output is None:
        return None
    if million_input is None or million_output is None:
        raise BadInputError("a cost needs both --price-per-million-input and --price-per-million-output; 0 is a price")
    for price in (million_input, million_output):
        if not (math.isfinite(price) and price >= 0):
            raise BadInputError(f"{price:g} is no price of a million tokens; give 0 or more")
    return Prices(input_per_million=million_input, output_per_million=million_output)


def listed_prices(suite: Suite, settings: Settings) -> Prices | None:
    """The prices that the operator gave the audited model's endpoint; None where it is not named or may not be asked.

    A plan asks nobody, so it may be made where the audit cannot run.
    """
    try:
        return audited_endpoint(suite, settings).prices
    except BadInputError:
        return None
