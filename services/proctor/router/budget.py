"""Whether an audit may ask more: its ceilings, what its stages have used, and what their tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.ceilings import CEILINGS
from proctor.domain.errors import BadInputError
from proctor.domain.prices import Prices
from proctor.domain.submitter import LOCAL_NAME
from proctor.domain.suite import Suite
from proctor.domain.suite_budget import BudgetSection
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE
from proctor.router.ledger.types import Spent
from proctor.router.submit.endpoints import audited_endpoint, paraphraser_endpoint, router_endpoint
from proctor.runtime.settings import Settings

_MEND: Final = "and start the audit again: it goes on where it stopped"
_SUITE: Final = (
    "the budget stops the audit: budget_config.{ceiling} is {limit}, and {use}; raise it in the suite " + _MEND
)
_OPERATOR: Final = (
    "a ceiling of the operator stops the audit: {ceiling} is {limit} for its submitter, and {use}; have it raised in "
    + CEILINGS
    + " "
    + _MEND
)


class Terms(Frozen):
    """What an audit may use, and what the tokens of each of its models cost.

    They are an audit's own state and not its suite's: whoever starts it again brings the budget of that day.
    """

    budget: BudgetSection = BudgetSection()
    """The suite's."""
    ceilings: BudgetSection = Field(default=BudgetSection(), exclude_if=lambda ceilings: not ceilings.is_set)
    """The operator's, for whoever submitted it. Not written where there are none, so that rows stay what they were."""
    answer: Prices | None = None
    paraphrase: Prices | None = None
    transmit: Prices | None = None

    @property
    def limited(self) -> bool:
        """Whether there is any ceiling."""
        return self.budget.is_set or self.ceilings.is_set

    def prices_of(self, stage: str) -> Prices | None:
        """The prices of a stage of the ledger, e.g. `answer` or `paraphrase-2`."""
        kind = stage.partition("-")[0]
        return {ANSWER_STAGE: self.answer, PARAPHRASE_STAGE: self.paraphrase, TRANSMIT_STAGE: self.transmit}[kind]


def terms_of(suite: Suite, settings: Settings, submitter: str = LOCAL_NAME) -> Terms:
    """The terms of a suite, with the ceilings and prices that the operator gave its submitter and the endpoints.

    Raises:
        BadInputError: when an endpoint may not be asked, or the cost is limited and one of them has no prices.
    """
    asked = {
        ANSWER_STAGE: audited_endpoint(suite, settings),
        PARAPHRASE_STAGE: paraphraser_endpoint(suite, settings),
        TRANSMIT_STAGE: router_endpoint(suite, settings),
    }
    ceilings = settings.ceilings.of(submitter).budget
    for found in asked.values():
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
    prices = {stage: found.prices for stage, found in asked.items() if found is not None}
    return Terms(budget=suite.budget, ceilings=ceilings, **prices)


def exceeded(terms: Terms, spent: Mapping[str, Spent], *, planned_trials: int | None = None) -> str | None:
    """Say why an audit may not ask more; None where it may.

    It is to be asked before more is planned or handed out, so a ceiling that is reached already stops. What was in
    flight when it was reached is still answered and counted, so that the audit can end above it by that much.

    Args:
        terms: the ceilings and prices.
        spent: what each of the audit's stages has used, by its name in the ledger; all of them share the budget.
        planned_trials: how many trials the audit comes to, asked and to be asked; None where that is not known yet.
    """
    for whose, budget in ((_OPERATOR, terms.ceilings), (_SUITE, terms.budget)):
        if budget.is_set and (said := _past(budget, terms, spent, planned_trials)) is not None:
            ceiling, limit, use = said
            return whose.format(ceiling=ceiling, limit=limit, use=use)
    return None


class _Past(NamedTuple):
    """A ceiling that was reached, in words."""

    ceiling: str
    limit: str
    use: str


def _past(budget: BudgetSection, terms: Terms, spent: Mapping[str, Spent], planned_trials: int | None) -> _Past | None:
    trials = sum(one.trials for one in spent.values())
    if budget.max_trials is not None:
        if planned_trials is not None and planned_trials > budget.max_trials:
            return _Past("max_trials", f"{budget.max_trials:,}", f"it comes to {planned_trials:,} trials")
        if planned_trials is None and trials >= budget.max_trials:
            return _Past("max_trials", f"{budget.max_trials:,}", f"{trials:,} trials were asked and more are to come")
    tokens = sum(one.input_tokens + one.output_tokens for one in spent.values())
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return _Past("max_tokens", f"{budget.max_tokens:,}", f"{tokens:,} tokens were used and more are to come")
    cost = cost_of(terms, spent)
    if budget.max_cost is not None and cost >= budget.max_cost:
        return _Past("max_cost", f"{budget.max_cost:,.2f}", f"{cost:,.2f} was spent and more is to come")
    return None


def cost_of(terms: Terms, spent: Mapping[str, Spent]) -> float:
    """What the stages have cost so far; a stage without prices costs nothing."""
    priced = ((terms.prices_of(stage), one) for stage, one in spent.items())
    return sum(prices.of(one.input_tokens, one.output_tokens) for prices, one in priced if prices is not None)
