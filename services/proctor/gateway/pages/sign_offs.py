"""What a person can sign for an audit, by what holds for it, and what they sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import Verb, why_not
from proctor.gateway.fields import FieldError

_WORDS = {
    (Verb.APPROVE, DecisionOutcome.APPROVE): "Approve it",
    (Verb.REJECT, DecisionOutcome.BLOCK): "Reject it: it is blocked",
    (Verb.OVERRIDE, DecisionOutcome.APPROVE): "Override the block: it is approved",
    (Verb.OVERRIDE, DecisionOutcome.REVIEW): "Override: it is held for review",
    (Verb.OVERRIDE, DecisionOutcome.BLOCK): "Override: it is blocked",
}


class Offer(NamedTuple):
    """One thing that can be signed."""

    verb: Verb
    outcome: DecisionOutcome

    @property
    def value(self) -> str:
        """As it stands in a form."""
        return f"{self.verb.value}:{self.outcome.value}"

    @property
    def words(self) -> str:
        """As a person reads it."""
        return _WORDS[self.verb, self.outcome]


class SentSignOff(NamedTuple):
    """What a person sent."""

    offer: Offer
    reason: str
    reference: str
    expires_after_days: int | None
    seen: int


def offers(stands: DecisionOutcome) -> tuple[Offer, ...]:
    """What can be signed where this holds: each outcome once, by the plainest verb for it."""
    found: dict[DecisionOutcome, Offer] = {}
    for verb, outcome in _WORDS:
        if why_not(verb, outcome, stands) is None:
            found.setdefault(outcome, Offer(verb, outcome))
    return tuple(found.values())


def sent_of(form: Mapping[str, str]) -> SentSignOff:
    """What a form holds.

    Raises:
        FieldError: when a field of it can be none.
    """
    verb, _, outcome = form.get("choice", "").partition(":")
    try:
        offer = Offer(Verb(verb), DecisionOutcome(outcome))
    except ValueError:
        raise FieldError("choose what is to hold") from None
    # A box of several lines is easier to write in, and the record has one.
    reason = " ".join(form.get("reason", "").split())
    days = form.get("days", "").strip()
    return SentSignOff(
        offer,
        reason,
        form.get("reference", ""),
        _number("days", days) if days else None,
        _number("seen", form.get("seen", "")),
    )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise FieldError(f"{name} is no number")
    return int(text)
