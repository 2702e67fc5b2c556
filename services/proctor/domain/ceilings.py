"""What the operator of a deployment lets each submitter use, whatever the suites say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field, ValidationError

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.operator_json import operator_object
from proctor.domain.problems import path_text, quoted
from proctor.domain.submitter import is_name
from proctor.domain.suite_budget import BudgetSection

#: The variable, for messages.
CEILINGS: Final = "PROCTOR_CEILINGS"
#: The name under which stands what holds for everyone.
EVERYONE: Final = "*"
_EXAMPLE: Final = '{"*": {"max_items": 5000, "max_audits": 4}, "ci": {"max_audits": 20, "max_cost": 500}}'
_MOST: Final = 2**53 - 1
#: A gateway remembers when each was: three a second are more than it could read.
MAX_SUBMISSIONS_PER_HOUR: Final = 10_000


class LimitError(ProctorError):
    """More was asked of a service than it takes, or lets this submitter have."""


class Ceilings(Frozen):
    """Of one submitter; None where there is no ceiling."""

    max_trials: int | None = Field(default=None, ge=1, le=_MOST)
    """Most prompts that an audit may ask, those of rewording models and routers among them."""
    max_tokens: int | None = Field(default=None, ge=1, le=_MOST)
    """Most tokens of prompts and answers together that an audit may use."""
    max_cost: float | None = Field(default=None, gt=0.0, le=1e12)
    """Most that an audit's tokens may cost, by the prices of PROCTOR_ENDPOINTS."""
    max_items: int | None = Field(default=None, ge=1, le=_MOST)
    """Most items that an audit may ask of."""
    max_audits: int | None = Field(default=None, ge=0, le=1_000_000)
    """Most audits that have not ended, paused ones among them; 0 lets nobody submit."""
    max_submissions_per_hour: int | None = Field(default=None, ge=0, le=MAX_SUBMISSIONS_PER_HOUR)
    """Most submissions through one gateway in any hour, those that were refused among them."""

    @property
    def budget(self) -> BudgetSection:
        """Those that hold for an audit while it runs."""
        return BudgetSection(max_trials=self.max_trials, max_tokens=self.max_tokens, max_cost=self.max_cost)


@dataclass(frozen=True)
class OperatorCeilings:
    """The ceilings of all submitters: what holds for everyone, and what is said of one beside it."""

    by_name: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def of(self, submitter: str) -> Ceilings:
        """The ceilings of one submitter: their own word on a ceiling (null lifts it), else that of everyone."""
        return Ceilings(**{**self.by_name.get(EVERYONE, {}), **self.by_name.get(submitter, {})})

    def written(self) -> str:
        """The JSON that `parse_ceilings` reads back as the same ceilings."""
        return json.dumps(self.by_name) if self.by_name else ""


NO_CEILINGS: Final = OperatorCeilings()


def parse_ceilings(text: str, *, source: str) -> OperatorCeilings:
    """Read the operator's ceilings: an object of submitters' names, `*` for everyone, each with its ceilings.

    Raises:
        BadInputError: with the name, the key and what to do.
    """
    found = operator_object(text, source=source, example=_EXAMPLE)
    for name, said in found.items():
        where = f"{source}: {quoted(name)}"
        if name != EVERYONE and not is_name(name):
            raise BadInputError(f"{where} is no submitter's name; use small letters, digits, '.', '_' and '-', or '*'")
        if not isinstance(said, dict):
            raise BadInputError(f"{where} is no object of ceilings; write it like {_EXAMPLE}")
        try:
            Ceilings.model_validate_json(json.dumps(said), strict=True)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            key = path_text(fault["loc"])
            if fault["type"] == "extra_forbidden":
                raise BadInputError(
                    f"{where}: {key} is no ceiling; known: {', '.join(Ceilings.model_fields)}"
                ) from None
            raise BadInputError(
                f"{where}: {key} is {quoted(fault['input'])}; {fault['msg'][:1].lower()}{fault['msg'][1:]}"
            ) from None
    return OperatorCeilings(found)
