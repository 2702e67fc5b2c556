"""What an audit may use: ceilings that stop it, and take no part in its result."""

from __future__ import annotations

from pydantic import Field

from proctor.domain.base import Section


class BudgetSection(Section):
    """What the audit may use, of all its models together; it stops before it uses more, and goes on with a raised one.

    It is no part of the fingerprint: the same suite with another budget goes on with the same audit.
    """

    max_trials: int | None = Field(default=None, ge=1, le=2**53 - 1)
    """Most prompts that may be asked, those of rewording models and routers among them."""
    max_tokens: int | None = Field(default=None, ge=1, le=2**53 - 1)
    """Most tokens of prompts and answers together, as the endpoints count them."""
    max_cost: float | None = Field(default=None, gt=0.0, le=1e12)
    """Most that the tokens may cost, in the currency of the prices that the operator gave the endpoints."""

    @property
    def is_set(self) -> bool:
        """Whether there is any ceiling."""
        return any(ceiling is not None for ceiling in (self.max_trials, self.max_tokens, self.max_cost))
