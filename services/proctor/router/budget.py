"""Whether an audit may ask more: what its stages have used and what that cost, against its ceilings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proctor.domain.ceilings import CEILINGS
from proctor.domain.prices import Prices
from proctor.domain.suite_budget import BudgetSection
from proctor.domain.usage import Usage
from proctor.router.ledger.types import Spent
from proctor.router.stages.registry import stage_of, which_of
from proctor.router.terms import Terms

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
    priced = ((_prices(terms, stage), one) for stage, one in spent.items())
    return sum(prices.of(one.input_tokens, one.output_tokens) for prices, one in priced if prices is not None)


def usage_of(terms: Terms, spent: Mapping[str, Spent]) -> Usage:
    """What the stages have used so far, with what has no prices apart."""
    return Usage.total(_usage(_prices(terms, stage), one) for stage, one in spent.items())


def _usage(prices: Prices | None, spent: Spent) -> Usage:
    used = spent._asdict()
    if prices is None:
        return Usage(**used, **{f"unpriced_{unit}": count for unit, count in used.items()})
    return Usage(**used, cost=prices.of(spent.input_tokens, spent.output_tokens))


def _prices(terms: Terms, name: str) -> Prices | None:
    stage = stage_of(name)
    return terms.prices_of(stage.asks, which_of(stage, name))
