"""What the log says beside decisions: a person's sign-off, an approval's end, and the terms of that end.

A decision is never written anew. Each of these names the entry that it is about by its digest, and copies the digests
of that entry, so that its attestation has the same subject.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible

#: Of what a person writes of a sign-off.
MAX_REASON_CHARACTERS: Final = 2_000
MAX_REFERENCE_CHARACTERS: Final = 500
MAX_NAME_CHARACTERS: Final = 200
#: As the longest retention; nobody says what holds in a hundred years.
MAX_APPROVAL_DAYS: Final = 36_500
_FULL_DIGEST: Final = r"^sha256:[0-9a-f]{64}$"


class Verb(StrEnum):
    """What a person does with an audit's outcome."""

    APPROVE = "approve"
    """A review becomes an approval."""
    REJECT = "reject"
    """A review, or an approval, becomes a block."""
    OVERRIDE = "override"
    """Any outcome becomes the one that is given: the only way past a block."""


class ApprovalTerms(Frozen):
    """When an approval ends by itself; as the suite's governance says. Not written where it does not."""

    expires_after_days: int | None = Field(
        default=None, ge=1, le=MAX_APPROVAL_DAYS, exclude_if=lambda days: days is None
    )
    ends_when_superseded: bool = Field(default=False, exclude_if=lambda ends: not ends)
    """Whether it ends where the same suite, changed, has decided on the same model."""


class SignedBy(Frozen):
    """The person who signed off."""

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARACTERS)
    via: str = Field(min_length=1, max_length=MAX_REASON_CHARACTERS)
    """How the person is known: `terminal`, `token`, `certificate` or `oidc:<issuer>`."""


class SignOff(Frozen):
    """The content of an `override` entry."""

    verb: Verb
    outcome: DecisionOutcome
    """What holds from then on."""
    by: SignedBy
    reason: str = Field(min_length=1, max_length=MAX_REASON_CHARACTERS)
    reference: str = Field(min_length=1, max_length=MAX_REFERENCE_CHARACTERS)
    """A ticket, a URL: where it was talked about."""
    of: str = Field(pattern=_FULL_DIGEST)
    """Digest of the decision's entry."""
    expires_at: str | None = Field(default=None, exclude_if=lambda at: at is None)
    """When an approval ends, ISO 8601 in UTC."""
    model_id: str
    digests: dict[str, str | None]
    """Those of the decision's entry."""


class Expiry(Frozen):
    """The content of an `expiry` entry."""

    because: Literal["time", "superseded"]
    at: str
    """Since when the approval does not hold, ISO 8601 in UTC."""
    of: str = Field(pattern=_FULL_DIGEST)
    """Digest of the decision's entry."""
    superseded_by: str | None = Field(default=None, exclude_if=lambda audit: audit is None)
    """The audit whose decision superseded it."""
    model_id: str
    digests: dict[str, str | None]
    """Those of the decision's entry."""


def checked_words(what: str, text: str, most: int) -> str:
    """What a person wrote of a sign-off, without blanks around it.

    Raises:
        BadInputError: it is blank, longer than `most` characters, or has characters that do not print.
    """
    words = text.strip()
    if not words:
        raise BadInputError(f"a sign-off needs a {what}: it is blank")
    if len(words) > most:
        raise BadInputError(f"the {what} has {len(words):,} characters: at most {most:,} are kept")
    if not words.isprintable():
        raise BadInputError(
            f"the {what} has characters that do not print ({visible(words[:80])}): write it on one line, as plain text"
        )
    return words


def why_not(verb: Verb, outcome: DecisionOutcome, stands: DecisionOutcome) -> str | None:
    """Why a verb is not for what stands now, and which one is; None where it is.

    Args:
        verb: what a person wants to do.
        outcome: what is to hold then.
        stands: what holds now.
    """
    if verb is Verb.APPROVE and stands is DecisionOutcome.BLOCK:
        return "it is blocked, and a block is not approved but overridden: use override, with the outcome approve"
    if verb is Verb.APPROVE and outcome is not DecisionOutcome.APPROVE:
        return f"approve makes it approved, not {outcome.value}: use override"
    if verb is Verb.REJECT and outcome is not DecisionOutcome.BLOCK:
        return f"reject makes it blocked, not {outcome.value}: use override"
    if outcome is stands:
        return f"its outcome is {stands.value} already"
    return None
