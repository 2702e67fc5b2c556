"""What holds for each audit now, beside the decision log from which it follows, and the entries that change it.

A row is written in the transaction of its entry, while the log is held: so whoever changes an audit's standing sees
what the one before made of it, and of two who do it at once the second is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from proctor.domain.action import Action
from proctor.domain.action import Verb as ActionVerb
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError, ProctorError, StoreError
from proctor.domain.record.entry import Entry, EntryKind, plain_of
from proctor.domain.record.sign_off import ApprovalTerms, Expiry, SignedBy, SignOff, Verb, why_not
from proctor.domain.standing import Standing, StandingKind, as_text, expires_at, is_expired, standing_after, standing_at
from proctor.runtime.records.actions import note
from proctor.runtime.records.decision_log import NoKey, SigningKey, append, hold_log, logged_on
from proctor.runtime.records.engine import outlasting, said
from proctor.runtime.records.tables import AUDITS, DECISIONS, STANDINGS, started_by

logger = logging.getLogger(__name__)

#: Standings that a page holds where nobody says how many.
DEFAULT_LIMIT: Final = 50
#: Of a queue: nobody reads past it, and counting all of a hundred thousand takes longer than a page may.
MAX_COUNTED: Final = 1_000
_NEWEST: Final = (STANDINGS.c.at.desc(), STANDINGS.c.audit_id.desc())
#: What a standing has under the same name in its row.
_SAME: Final = (
    "audit_id", "outcome", "decided", "kind", "reason", "reference", "at", "expires_at", "sequence", "audit_suite_id",
    "model_id", "model_digest", "protocol_digest", "ends_when_superseded",
)  # fmt: skip


class Place(NamedTuple):
    """Where a page of standings ended; the next one begins behind it."""

    at: str
    audit_id: str


class NewSignOff(NamedTuple):
    """What a person wants an audit's outcome to be."""

    verb: Verb
    outcome: DecisionOutcome
    by: SignedBy
    reason: str
    reference: str
    expires_after_days: int | None = None
    """For how long an approval is to hold; None for as long as the suite lets it."""


class SignedMeanwhileError(ProctorError):
    """What holds for an audit has changed since it was looked at."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        super().__init__(f"audit {standing.audit_id} was changed meanwhile: {words_of(standing)}; look at it again")


class Standings:
    """The standings of a record store. What is read holds now: an approval past its time is none.

    Args:
        engine: of the store.
        clock: the time.
    """

    def __init__(self, engine: sa.Engine, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._engine = engine
        self._clock = clock

    @outlasting
    def standing_of(self, audit_id: str) -> Standing | None:
        """What holds for an audit; None where it has no decision, or one that this Proctor cannot read."""
        with self._engine.connect() as connection:
            found = _found(connection, audit_id)
        return None if found is None else standing_at(found, self._clock())

    @outlasting
    def standings(
        self,
        *,
        limit: int = DEFAULT_LIMIT,
        before: Place | None = None,
        model_id: str | None = None,
        audit_suite_id: str | None = None,
        model_digest: str | None = None,
    ) -> list[Standing]:
        """Standings by the time since when they hold as the log says, the newest first, behind the place `before`.

        Args:
            limit: at most so many.
            before: where the page before ended (`place_of`).
            model_id: of this model alone.
            audit_suite_id: of this suite alone.
            model_digest: of these weights alone.
        """
        statement = _behind(sa.select(STANDINGS), before).order_by(*_NEWEST).limit(limit)
        wanted = {"model_id": model_id, "audit_suite_id": audit_suite_id, "model_digest": model_digest}
        for name, value in wanted.items():
            if value is not None:
                statement = statement.where(STANDINGS.c[name] == value)
        now = self._clock()
        with self._engine.connect() as connection:
            return [standing_at(_standing(row), now) for row in connection.execute(statement).mappings()]

    @outlasting
    def waiting(
        self, *, limit: int = DEFAULT_LIMIT, before: Place | None = None, submitter: str | None = None
    ) -> list[Standing]:
        """The review queue, the newest first: reviews, blocks that nobody has signed off, and approvals that ended.

        Args:
            limit: at most so many.
            before: where the page before ended (`place_of`).
            submitter: of audits that this one started last; None is everybody's.
        """
        now = self._clock()
        queue = _of_submitter(sa.select(STANDINGS), submitter)
        told_so = _behind(queue.where(STANDINGS.c.waits), before).order_by(*_NEWEST).limit(limit)
        # The log does not say so yet.
        ended = queue.where(*_past(now))
        if before is not None:
            ended = ended.where(sa.tuple_(STANDINGS.c.expires_at, STANDINGS.c.audit_id) < sa.tuple_(*before))
        ended = ended.order_by(STANDINGS.c.expires_at.desc(), STANDINGS.c.audit_id.desc()).limit(limit)
        with self._engine.connect() as connection:
            rows = [*connection.execute(told_so).mappings(), *connection.execute(ended).mappings()]
        found = [standing_at(_standing(row), now) for row in rows]
        return sorted(found, key=place_of, reverse=True)[:limit]

    @outlasting
    def n_waiting(self, submitter: str | None = None) -> int:
        """How many are in the review queue, of which no more than `MAX_COUNTED` are counted; as `waiting`."""
        waits = sa.or_(STANDINGS.c.waits, sa.and_(*_past(self._clock())))
        some = _of_submitter(sa.select(sa.literal(1)).select_from(STANDINGS), submitter).where(waits)
        counted = sa.select(sa.func.count()).select_from(some.limit(MAX_COUNTED).subquery())
        with self._engine.connect() as connection:
            return connection.scalar(counted) or 0

    def sign(
        self, audit_id: str, sign_off: NewSignOff, *, key: SigningKey | NoKey, seen: int | None = None
    ) -> Standing:
        """Put a person's sign-off on record; what holds from then on. The decision stays as it is.

        Not given twice by itself: where the store goes away at the end, whether it is on record is not known.

        Args:
            audit_id: the audit.
            sign_off: what is wanted.
            key: signs the entry.
            seen: the `sequence` of the standing that the person looked at; None takes what holds now.

        Raises:
            BadInputError: the audit has no decision, or the verb is not for what holds.
            SignedMeanwhileError: what holds is no more what the person saw.
            StoreError: the log has lost its end, or the store does not take it.
        """
        try:
            return self._sign(audit_id, sign_off, key, seen)
        except DBAPIError as error:
            raise StoreError(
                f"the record store did not take the sign-off of audit {audit_id} ({said(error)}): look whether it "
                "is on record before you give it again"
            ) from error

    def _sign(self, audit_id: str, sign_off: NewSignOff, key: SigningKey | NoKey, seen: int | None) -> Standing:
        with self._engine.begin() as connection:
            hold_log(connection)
            now = self._clock()
            before = _found(connection, audit_id)
            if before is None:
                raise BadInputError(_nothing_to_sign(connection, audit_id))
            if seen is not None and before.sequence != seen:
                raise SignedMeanwhileError(standing_at(before, now))
            # The log tells the whole story, however seldom somebody looks for approvals that ended.
            before = self._end(connection, before, now, key) if is_expired(before, now) else before
            if why := why_not(sign_off.verb, sign_off.outcome, before.outcome):
                raise BadInputError(f"audit {audit_id}: {why} ({words_of(before)})")
            decision = _Decision(connection, audit_id)
            content = SignOff(
                verb=sign_off.verb,
                outcome=sign_off.outcome,
                by=sign_off.by,
                reason=sign_off.reason,
                reference=sign_off.reference,
                of=decision.digest,
                expires_at=_end_of(sign_off, decision.terms, as_text(now)),
                model_id=decision.model_id,
                digests=decision.digests,
            )
            after = _change(connection, before, EntryKind.OVERRIDE, content.plain(), as_text(now), key)
            detail = {"verb": sign_off.verb.value, "outcome": sign_off.outcome.value, "entry": after.sequence}
            note(connection, audit_id, Action(ActionVerb.SIGN_OFF, sign_off.by, detail), at=as_text(now))
            return after

    def expire(self, *, key: SigningKey | NoKey, limit: int = DEFAULT_LIMIT) -> list[str]:
        """Say in the log that approvals past their time have ended, each once; the audits whose they were.

        One that cannot be said does not keep the others from it.
        """
        now = self._clock()
        due = sa.select(STANDINGS.c.audit_id).where(*_past(now)).order_by(STANDINGS.c.expires_at).limit(limit)
        with self._engine.connect() as connection:
            audits = list(connection.scalars(due))
        return [audit_id for audit_id in audits if self._expire(audit_id, now, key)]

    def _expire(self, audit_id: str, now: datetime, key: SigningKey | NoKey) -> bool:
        try:
            with self._engine.begin() as connection:
                hold_log(connection)
                # Another router may have been quicker, or a person.
                before = _found(connection, audit_id)
                if before is None or not is_expired(before, now):
                    return False
                self._end(connection, before, now, key)
                return True
        except StoreError as error:
            logger.error("that the approval of audit %s has ended is not in the log: %s", audit_id, error)
            return False

    def _end(self, connection: sa.Connection, before: Standing, now: datetime, key: SigningKey | NoKey) -> Standing:
        decision = _Decision(connection, before.audit_id)
        expiry = Expiry(
            because="time",
            at=str(before.expires_at),
            of=decision.digest,
            model_id=decision.model_id,
            digests=decision.digests,
        )
        return _change(connection, before, EntryKind.EXPIRY, expiry.plain(), as_text(now), key)

    @outlasting
    def untold(self, limit: int = DEFAULT_LIMIT) -> list[Standing]:
        """Standings that changed since the registry's queue was told of the audit."""
        statement = sa.select(STANDINGS).where(sa.text("told < sequence")).order_by(STANDINGS.c.audit_id).limit(limit)
        with self._engine.connect() as connection:
            return [_standing(row) for row in connection.execute(statement).mappings()]

    @outlasting
    def note_told(self, audit_id: str, sequence: int) -> None:
        """Note that the registry's queue was told of an audit when it stood as that entry says."""
        older = sa.and_(STANDINGS.c.audit_id == audit_id, STANDINGS.c.told < sequence)
        with self._engine.begin() as connection:
            connection.execute(STANDINGS.update().where(older).values(told=sequence))


def place_of(standing: Standing) -> Place:
    """Where a standing is among those that are listed."""
    return Place(standing.at, standing.audit_id)


def words_of(standing: Standing) -> str:
    """What holds, and by whom, in a few words."""
    words = f"{standing.outcome.value} since {standing.at}"
    if standing.by is not None:
        return f"{words}, signed off by {standing.by.name} (via {standing.by.via}; {standing.reference})"
    ended = standing.kind is StandingKind.EXPIRY
    return f"{words}, {'when an approval ended' if ended else 'as the gate decided'}"


def note_decision(connection: sa.Connection, entry: Entry, key: SigningKey | NoKey) -> None:
    """Within the transaction of a decision's entry: write what holds by it, and end the approvals that it supersedes.

    A decision that nobody can read has no standing: nothing is approved by it.
    """
    standing = standing_after(None, entry)
    if standing is None:
        return
    connection.execute(STANDINGS.insert().values(**row_of(standing), told=standing.sequence))
    superseded = sa.select(STANDINGS).where(
        STANDINGS.c.model_id == standing.model_id,
        STANDINGS.c.audit_suite_id == standing.audit_suite_id,
        STANDINGS.c.outcome == DecisionOutcome.APPROVE,
        STANDINGS.c.ends_when_superseded,
        STANDINGS.c.protocol_digest != standing.protocol_digest,
        # What is taken in late was decided before what stands.
        STANDINGS.c.at <= standing.at,
    )
    for row in connection.execute(superseded.order_by(STANDINGS.c.audit_id)).mappings().all():
        before = _standing(row)
        decision = _Decision(connection, before.audit_id)
        expiry = Expiry(
            because="superseded",
            at=entry.time,
            of=decision.digest,
            superseded_by=standing.audit_id,
            model_id=decision.model_id,
            digests=decision.digests,
        )
        _change(connection, before, EntryKind.EXPIRY, expiry.plain(), entry.time, key)


def row_of(standing: Standing) -> dict[str, Any]:
    """The columns of a standing's row that follow from the log."""
    by = standing.by
    return {
        **{name: getattr(standing, name) for name in _SAME},
        "by_name": None if by is None else by.name,
        "by_via": None if by is None else by.via,
        "waits": standing.waits,
    }


class _Decision:
    """What is needed of a decision's entry for another that is about it."""

    def __init__(self, connection: sa.Connection, audit_id: str) -> None:
        for logged in logged_on(connection, audit_id):
            entry = plain_of(logged.text)
            if entry["kind"] == EntryKind.DECISION:
                content = entry["content"]
                self.digest = logged.digest
                self.digests: dict[str, str | None] = content["digests"]
                self.model_id = str(content["event"]["modelId"])
                self.terms = ApprovalTerms.model_validate(content.get("approval", {}))
                return
        raise StoreError(
            f"audit {audit_id} has a standing, and its decision is not in the decision log: somebody changed the store "
            "(`proctor record verify`)"
        )


def _change(
    connection: sa.Connection,
    before: Standing,
    kind: EntryKind,
    content: dict[str, Any],
    time: str,
    key: SigningKey | NoKey,
) -> Standing:
    entry = append(connection, kind, before.audit_id, content, time=time, key=key)
    after = standing_after(before, entry)
    assert after is not None
    connection.execute(STANDINGS.update().where(STANDINGS.c.audit_id == after.audit_id).values(**row_of(after)))
    # By which lists are looked through.
    listed = AUDITS.update().where(AUDITS.c.audit_id == after.audit_id)
    connection.execute(listed.values(outcome=after.outcome))
    return after


def _end_of(sign_off: NewSignOff, terms: ApprovalTerms, now: str) -> str | None:
    days, most = sign_off.expires_after_days, terms.expires_after_days
    if days is None:
        return expires_at(sign_off.outcome, terms, now)
    if sign_off.outcome is not DecisionOutcome.APPROVE:
        raise BadInputError(f"only an approval ends after some days, and this is the outcome {sign_off.outcome.value}")
    if most is not None and days > most:
        raise BadInputError(
            f"an approval under this suite ends after {most} days (governance.approval_expires_after_days), and {days} "
            "are asked for"
        )
    return as_text(datetime.fromisoformat(now) + timedelta(days=days))


def _nothing_to_sign(connection: sa.Connection, audit_id: str) -> str:
    there = sa.select(DECISIONS.c.audit_id).where(DECISIONS.c.audit_id == audit_id)
    if connection.scalar(there) is None:
        return f"audit {audit_id} has no decision yet, so there is nothing to sign off: wait for its end"
    return (
        f"the decision of audit {audit_id} is not in the decision log, or cannot be read: `proctor record verify` says "
        "which, and `proctor record take-in` adds what an earlier Proctor decided"
    )


def _found(connection: sa.Connection, audit_id: str) -> Standing | None:
    row = connection.execute(sa.select(STANDINGS).where(STANDINGS.c.audit_id == audit_id)).mappings().first()
    return None if row is None else _standing(row)


def _standing(row: sa.RowMapping) -> Standing:
    try:
        by = None if row["by_name"] is None else SignedBy(name=row["by_name"], via=row["by_via"])
        return Standing(**{name: row[name] for name in _SAME}, by=by)
    except ValidationError:
        raise StoreError(
            f"what holds for audit {row['audit_id']} cannot be read, so nothing does: somebody changed the store "
            "(`proctor record verify`), or a newer Proctor wrote it"
        ) from None


def _of_submitter(statement: sa.Select[Any], submitter: str | None) -> sa.Select[Any]:
    if submitter is None:
        return statement
    return statement.join(AUDITS, AUDITS.c.audit_id == STANDINGS.c.audit_id).where(started_by(submitter))


def outcome_at(now: datetime) -> sa.ColumnElement[str | None]:
    """The outcome of an audit that a list shows beside its standing (an outer join): an ended approval is none."""
    left = sa.case((STANDINGS.c.decided == DecisionOutcome.BLOCK, "block"), else_="review")
    return sa.case((sa.and_(*_past(now)), left), else_=AUDITS.c.outcome)


def _past(now: datetime) -> tuple[sa.ColumnElement[bool], ...]:
    return (STANDINGS.c.outcome == DecisionOutcome.APPROVE, STANDINGS.c.expires_at <= as_text(now))


def _behind(statement: sa.Select[Any], before: Place | None) -> sa.Select[Any]:
    if before is None:
        return statement
    return statement.where(sa.tuple_(STANDINGS.c.at, STANDINGS.c.audit_id) < sa.tuple_(*before))
