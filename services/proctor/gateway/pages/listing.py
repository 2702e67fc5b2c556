"""Which audits a list shows, from what stands in its address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from proctor.domain.decision import DecisionOutcome
from proctor.domain.problems import visible
from proctor.gateway.fields import FieldError
from proctor.runtime.records.audit_list import Place, Wanted
from proctor.runtime.records.audit_state import AuditState

#: Of a name in an address.
_NAME_CHARACTERS: Final = 200
#: Between the two halves of a place; in no time of ISO 8601.
_APART: Final = "~"


class Listing(NamedTuple):
    """What was asked for: filters, and behind which audit the page begins."""

    wanted: Wanted
    before: Place | None

    @property
    def filters(self) -> dict[str, str]:
        """The filters as they stand in an address."""
        wanted = self.wanted
        named = {"state": wanted.state, "outcome": wanted.outcome, "model": wanted.model_id, "suite": wanted.suite_id}
        return {name: value for name, value in named.items() if value}


def listing_of(query: Mapping[str, str]) -> Listing:
    """The listing that a query asks for. Fields of a form that were left empty ask for nothing.

    Raises:
        FieldError: when one of them can be none.
    """
    wanted = Wanted(
        state=_one_of("state", query, tuple(AuditState)),
        outcome=_one_of("outcome", query, tuple(DecisionOutcome)),
        model_id=_name("model", query),
        suite_id=_name("suite", query),
    )
    before = place_of_text(query.get("before", ""))
    return Listing(wanted, None if before is None else Place(*before))


def place_text(place: tuple[str, str]) -> str:
    """A place, a time and an audit, as it stands in an address."""
    return _APART.join(place)


def place_of_text(text: str) -> tuple[str, str] | None:
    """The place that stands in an address; None where none does.

    Raises:
        FieldError: when it is none.
    """
    before = _name("before", {"before": text})
    if before is None:
        return None
    time, apart, audit_id = before.partition(_APART)
    if not apart:
        raise FieldError(f"before is {visible(before)}, and no place in a list")
    return time, audit_id


def _one_of(name: str, query: Mapping[str, str], known: tuple[str, ...]) -> str | None:
    value = query.get(name) or None
    if value is not None and value not in known:
        raise FieldError(f"{name} is {visible(value[:80])}: give one of {', '.join(known)}, or nothing")
    # As plain text, which is what the store compares with.
    return None if value is None else str(value)


def _name(name: str, query: Mapping[str, str]) -> str | None:
    value = query.get(name, "").strip() or None
    if value is not None and (len(value) > _NAME_CHARACTERS or not value.isprintable()):
        raise FieldError(f"{name} has at most {_NAME_CHARACTERS} characters, all of them printable")
    return value
