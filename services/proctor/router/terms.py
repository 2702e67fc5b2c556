"""What an audit may use, and what the tokens of each of its models cost."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.prices import Prices
from proctor.domain.suite_budget import BudgetSection


class Role(StrEnum):
    """A model's part in an audit."""

    AUDITED = "audited"
    REWORDING = "rewording"
    ROUTING = "routing"
    CHECKING = "checking"
    """There may be several of it."""


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
    check: tuple[Prices | None, ...] = Field(default=(), exclude_if=lambda check: not check)
    """Of each solver of the answering check. Not written where there are none."""

    @property
    def limited(self) -> bool:
        """Whether there is any ceiling."""
        return self.budget.is_set or self.ceilings.is_set

    def prices_of(self, role: Role, which: int = 0) -> Prices | None:
        """What the tokens of a model cost, by its role, and which of it, from 0."""
        if role is Role.CHECKING:
            return self.check[which] if which < len(self.check) else None
        return {Role.AUDITED: self.answer, Role.REWORDING: self.paraphrase, Role.ROUTING: self.transmit}[role]
