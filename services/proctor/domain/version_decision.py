"""The decision on a model version: the worst over the suites that it has to pass. Pure.

A version has to pass every suite that a trigger asked for, and every one by which its weights were audited. One that
waits, failed or was not run is a review: what is missing never approves.

Of one form of a suite (its id, and the digest of its protocol) the audit that was decided last counts. A suite that is
changed keeps its id, so a later form takes the place of the one before. What a trigger asks for is the operator's word,
and only what a trigger asked for later takes its place. A block stays where it is: a suite that was made easier is no
way past it. The same suite, asked again, is, and so is a person's sign-off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.scope import Scope
from proctor.domain.standing import Standing, StandingKind, standing_at

#: A suite's id, and the digest of its protocol: of one id there are several where a suite was changed.
_Form = tuple[str, str]
_SEVERITY: Final = {DecisionOutcome.APPROVE: 0, DecisionOutcome.REVIEW: 1, DecisionOutcome.BLOCK: 2}


class AskedSuite(NamedTuple):
    """A suite that a trigger asked for, of this version."""

    audit_suite_id: str
    """Empty where it is not known, as of a request that an earlier Proctor put on record."""
    suite_digest: str
    """Of the suite without its model, as the request has it."""
    audit_id: str | None
    """The audit that was begun for it."""
    at: str
    """When it was asked for, ISO 8601 in UTC."""
    waiting: str
    """What it waits for, or why it cannot be begun: a sentence for when there is no decision."""


class SuiteDecision(Frozen):
    """What one suite says of a version."""

    audit_suite_id: str
    outcome: DecisionOutcome
    """As it stands now; a review where there is no decision."""
    standing: Standing | None
    """None where there is no decision."""
    waiting: str = ""
    """Where there is none: why."""

    @property
    def audit_id(self) -> str | None:
        """The audit that counts."""
        return None if self.standing is None else self.standing.audit_id


class VersionDecision(Frozen):
    """What the gate does with a version."""

    outcome: DecisionOutcome
    suites: tuple[SuiteDecision, ...]
    """Those that the version has to pass, the worst first."""
    superseded: tuple[SuiteDecision, ...]
    """Earlier forms of these suites, which count no more."""

    @property
    def sequence(self) -> int:
        """The newest entry of the log that a suite's standing rests on; 0 where there is none."""
        return max((one.standing.sequence for one in self.suites if one.standing is not None), default=0)

    def deciding(self, events: Mapping[str, DecisionEvent]) -> DecisionEvent | None:
        """The decision whose evidence goes with the version's: of the worst suite that has one.

        Of several approvals it is the one that reaches least far, so that none is read for more than it says.
        """
        found = [
            (events[one.standing.audit_id], one.standing)
            for one in self.suites
            if one.standing is not None and one.standing.audit_id in events
        ]

        def weight(pair: tuple[DecisionEvent, Standing]) -> tuple[int, bool, int]:
            event, standing = pair
            return _SEVERITY[standing.outcome], event.scope in (None, Scope.WORDING), standing.sequence

        return max(found, key=weight)[0] if found else None

    def reasons(self, events: Mapping[str, DecisionEvent]) -> tuple[Reason, ...]:
        """Why, the deciding suite's words first; each with the suite's name where there are several."""
        worst = [one for one in self.suites if one.outcome is self.outcome]
        several = len(self.suites) > 1
        return tuple(
            reason.model_copy(update={"text": f"{one.audit_suite_id}: {reason.text}"}) if several else reason
            for one in worst
            for reason in _reasons_of(one, events)
        )


def version_decision(
    asked: Sequence[AskedSuite], standings: Sequence[Standing], now: datetime
) -> VersionDecision | None:
    """Decide on a version; None where no suite was asked for and none was run.

    Args:
        asked: what triggers asked for of the version, without what was found not to be of it.
        standings: those of every audit of its weights, in the order in which they were decided.
        now: an approval past its time holds no longer, whether the log says so yet or not.
    """
    by_audit = {one.audit_id: standing_at(one, now) for one in standings}
    # Of a form the last one stays, and its place is the last one's.
    forms: dict[_Form, Standing] = {}
    for standing in by_audit.values():
        forms.pop(_form(standing), None)
        forms[_form(standing)] = standing
    asked_at: dict[_Form, str] = {}
    waiting: list[AskedSuite] = []
    for request in asked:
        decided = by_audit.get(request.audit_id or "")
        if decided is None:
            waiting.append(request)
        else:
            asked_at[_form(decided)] = max(asked_at.get(_form(decided), ""), request.at)
    counts, superseded = list[SuiteDecision](), list[SuiteDecision]()
    for form, standing in forms.items():
        one = SuiteDecision(audit_suite_id=form[0], outcome=standing.outcome, standing=standing)
        blocks = standing.outcome is DecisionOutcome.BLOCK
        gone = not blocks and _is_superseded(form, list(forms), asked_at, waiting)
        (superseded if gone else counts).append(one)
    counts += [_waiting(request) for request in waiting if not _was_asked_anew(request, asked_at, waiting)]
    if not counts:
        return None
    counts.sort(key=lambda one: (-_SEVERITY[one.outcome], one.audit_suite_id, one.audit_id or "", one.waiting))
    return VersionDecision(outcome=counts[0].outcome, suites=tuple(counts), superseded=tuple(superseded))


def _form(standing: Standing) -> _Form:
    return standing.audit_suite_id, standing.protocol_digest


def _is_superseded(
    form: _Form, in_order: Sequence[_Form], asked_at: Mapping[_Form, str], waiting: Sequence[AskedSuite]
) -> bool:
    """Whether another form of the same suite has taken the place of this one."""
    later = [other for other in in_order[in_order.index(form) + 1 :] if other[0] == form[0]]
    if form not in asked_at:
        return bool(later)
    again = [at for other, at in asked_at.items() if other[0] == form[0]]
    again += [one.at for one in waiting if one.audit_suite_id == form[0]]
    return any(at > asked_at[form] for at in again)


def _was_asked_anew(one: AskedSuite, asked_at: Mapping[_Form, str], waiting: Sequence[AskedSuite]) -> bool:
    """Whether the operator's file names a later form of a suite that never came to a decision."""
    if not one.audit_suite_id:
        return False
    later = [at for (suite, _), at in asked_at.items() if suite == one.audit_suite_id]
    later += [other.at for other in waiting if other.audit_suite_id == one.audit_suite_id]
    return any(at > one.at for at in later)


def _waiting(one: AskedSuite) -> SuiteDecision:
    return SuiteDecision(
        audit_suite_id=one.audit_suite_id or f"suite {one.suite_digest[:19]}",
        outcome=DecisionOutcome.REVIEW,
        standing=None,
        waiting=one.waiting,
    )


def _reasons_of(one: SuiteDecision, events: Mapping[str, DecisionEvent]) -> tuple[Reason, ...]:
    standing = one.standing
    if standing is None:
        return (Reason(code="not_decided", text=f"A decision is missing: {one.waiting}"),)
    event = events.get(standing.audit_id)
    decided = () if event is None else event.reasons
    if standing.kind is StandingKind.SIGN_OFF and standing.by is not None:
        reference = f" ({standing.reference})" if standing.reference else ""
        text = f"{standing.by.name} signed {standing.outcome.value} after {standing.decided.value}: {standing.reason}"
        return (Reason(code="signed_off", text=text + reference), *decided)
    if standing.kind is StandingKind.EXPIRY:
        return (Reason(code="approval_ended", text=standing.reason or "The approval has ended."), *decided)
    return decided
