"""The review queue, and the sign-offs of people: the one way in which a decision's outcome is not what holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.messages import WriteDecision
from proctor.domain.record.entry import Entry, plain_of
from proctor.domain.record.sign_off import (
    MAX_APPROVAL_DAYS,
    MAX_NAME_CHARACTERS,
    MAX_REASON_CHARACTERS,
    MAX_REFERENCE_CHARACTERS,
    SignedBy,
    Verb,
    checked_words,
)
from proctor.domain.standing import Standing, standing_after
from proctor.domain.submitter import BY_TERMINAL, RESERVED, Role, Submitter, hold_to
from proctor.runtime.login_name import login_name
from proctor.runtime.records.attestations import lay_down_attestations
from proctor.runtime.records.decision_log import SigningKey
from proctor.runtime.records.standings import DEFAULT_LIMIT, NewSignOff, Place
from proctor.runtime.records.store import Records
from proctor.runtime.records.telling import tell
from proctor.runtime.settings import Settings
from proctor.runtime.signing import open_signing_key


class Signed(NamedTuple):
    """What came of a sign-off."""

    standing: Standing
    """What holds now."""
    told: bool
    """Whether the registry's writer knows. Where it does not, a router tells it later."""


class Reviews:
    """Reviews on a record store.

    Args:
        records: the store.
        key: gives the key that signs what a person signs off.
        settings: where reports lie, and whether there is a registry.
        send: sends a message to the registry's writer.
    """

    def __init__(
        self,
        records: Records,
        key: Callable[[], SigningKey],
        settings: Settings,
        send: Callable[[WriteDecision], None],
    ) -> None:
        self._records = records
        self._key = key
        self._settings = settings
        self._send = send

    def waiting(
        self, limit: int = DEFAULT_LIMIT, before: Place | None = None, submitter: str | None = None
    ) -> list[Standing]:
        """The queue, the newest first: reviews, blocks that nobody has signed off, and approvals that ended.

        Args:
            limit: at most so many.
            before: where the page before ended (`place_of` of its last one).
            submitter: of audits that this one started last; None is everybody's.

        Raises:
            StoreError: the store does not answer.
        """
        return self._records.standings.waiting(limit=limit, before=before, submitter=submitter)

    def n_waiting(self, submitter: str | None = None) -> int:
        """How many are in the queue; no more than `MAX_COUNTED` are counted."""
        return self._records.standings.n_waiting(submitter)

    def standing(self, audit_id: str) -> Standing:
        """What holds for an audit.

        Raises:
            BadInputError: it has no decision that this Proctor can read.
        """
        found = self._records.standings.standing_of(audit_id)
        if found is None:
            raise BadInputError(f"audit {audit_id} has no decision yet, or none that can be read: nothing stands")
        return found

    def history(self, audit_id: str) -> list[Standing]:
        """What held for an audit by each entry of the log, the decision first."""
        steps, last = list[Standing](), None
        for logged in self._records.logged(audit_id):
            last = standing_after(last, Entry.model_validate(plain_of(logged.text)))
            if last is not None:
                steps.append(last)
        return steps

    def sign(
        self,
        audit_id: str,
        verb: Verb,
        outcome: DecisionOutcome,
        by: Submitter,
        reason: str,
        reference: str,
        *,
        expires_after_days: int | None = None,
        seen: int | None = None,
    ) -> Signed:
        """Put a person's sign-off on record, and have the registry written by what holds then.

        The decision, its row and its report stay as they are.

        Args:
            audit_id: the audit, by its whole id.
            verb: what the person does.
            outcome: what is to hold; of approve and reject there is only one.
            by: who does it. Whoever is known by this machine's terminal signs by the name of its login.
            reason: why, on one line.
            reference: a ticket, a URL: where it was talked about.
            expires_after_days: for how long an approval is to hold; by default for as long as the suite lets it.
            seen: the `sequence` of the standing that the person looked at.

        Raises:
            ForbiddenError: the caller is no reviewer.
            BadInputError: what was written is blank, too long or does not print; the audit has no decision; the verb
                is not for what holds; or there is no key to sign with.
            SignedMeanwhileError: what holds is no more what the person saw.
            StoreError: the store does not take it.
        """
        hold_to(by, Role.REVIEWER)
        if expires_after_days is not None and not 1 <= expires_after_days <= MAX_APPROVAL_DAYS:
            raise BadInputError(f"an approval ends after 1 to {MAX_APPROVAL_DAYS:,} days, not {expires_after_days:,}")
        wanted = NewSignOff(
            verb,
            outcome,
            SignedBy(name=checked_words("name", _name_of(by), MAX_NAME_CHARACTERS), via=by.via),
            checked_words("reason", reason, MAX_REASON_CHARACTERS),
            checked_words("reference", reference, MAX_REFERENCE_CHARACTERS),
            expires_after_days,
        )
        standing = self._records.standings.sign(audit_id, wanted, key=self._signing_key(), seen=seen)
        lay_down_attestations(self._records, self._settings.home, audit_id)
        return Signed(standing, not self._settings.registry_uri or tell(self._records, standing, self._send))

    def _signing_key(self) -> SigningKey:
        # A decision does not wait for a key; a person can.
        try:
            return self._key()
        except OSError as error:
            raise BadInputError(
                f"a sign-off is signed, and no key can be made: {error.strerror or error}; set PROCTOR_SIGNING_KEY"
            ) from None


def reviews_of(settings: Settings, records: Records, send: Callable[[WriteDecision], None]) -> Reviews:
    """Reviews on the store of an installation, signed by its key."""
    return Reviews(records, lambda: open_signing_key(settings.home, settings.signing_key), settings, send)


def only_outcome(verb: Verb, outcome: DecisionOutcome | None) -> DecisionOutcome:
    """The outcome that a verb stands for.

    Raises:
        BadInputError: an override without an outcome.
    """
    own = {Verb.APPROVE: DecisionOutcome.APPROVE, Verb.REJECT: DecisionOutcome.BLOCK}
    chosen = outcome or own.get(verb)
    if chosen is None:
        raise BadInputError("an override says which outcome is to hold: approve, review or block")
    return chosen


def _name_of(by: Submitter) -> str:
    return login_name() if by.via == BY_TERMINAL and by.name in RESERVED else by.name
