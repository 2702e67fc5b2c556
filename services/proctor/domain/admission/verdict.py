"""Whether a model version may be deployed, from what is on record of it. Pure.

What is missing never admits: a version without an audit, a suite that waits, a decision that cannot be read. Nor does a
row that the signed log does not bear out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from proctor.domain.admission.reference import ModelReference, shown
from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.problems import visible
from proctor.domain.standing import StandingKind
from proctor.domain.version_decision import SuiteDecision, VersionDecision

#: Of a reason that is repeated: a server's answer may be quoted in it, or a person's words.
_REASON_CHARACTERS: Final = 300


class Ground(StrEnum):
    """Why a version may be deployed, or not."""

    APPROVED = "approved"
    BLOCKED = "blocked"
    IN_REVIEW = "in_review"
    PENDING = "pending"
    """A suite that it has to pass has no decision yet."""
    EXPIRED = "expired"
    """An approval that has ended."""
    NEVER_AUDITED = "never_audited"
    NOT_ATTESTED = "not_attested"
    """An approval that the signed log does not bear out."""
    AMBIGUOUS = "ambiguous"
    """Several weights are on record under one version."""


class Facts(NamedTuple):
    """What is on record of a version."""

    decision: VersionDecision | None
    """What stands over its suites; None where nothing was asked for and nothing has run."""
    events: Mapping[str, DecisionEvent]
    """The decisions on its weights, by audit."""
    faults: Mapping[str, str]
    """By audit, why the log does not bear out what stands; audits that it does bear out are not in it."""
    digests: tuple[str, ...] = ()
    """The weights that are on record under its name."""


class Verdict(Frozen):
    """What is said of one version."""

    reference: str
    """As the workload names it."""
    ground: Ground
    reason: str
    """One sentence or more, on one line, bounded and printable."""
    audit_id: str | None = None
    """The audit that decides."""
    report_url: str = ""
    """Where its report is; empty where there is none."""
    until: str | None = None
    """When an approval ends by itself, ISO 8601 in UTC."""
    sequence: int = 0
    """The newest entry of the decision log that it rests on."""

    @property
    def admits(self) -> bool:
        """Whether a workload with it may begin."""
        return self.ground is Ground.APPROVED

    @property
    def sentence(self) -> str:
        """What whoever deploys it is told."""
        where = f" Report: {self.report_url}" if self.report_url else ""
        return f"{shown(self.reference)} {_WORDS[self.ground]}: {self.reason}{where}"


_WORDS: Final = {
    Ground.APPROVED: "is approved",
    Ground.BLOCKED: "is blocked",
    Ground.IN_REVIEW: "waits for a review",
    Ground.PENDING: "is not decided yet",
    Ground.EXPIRED: "is approved no longer",
    Ground.NEVER_AUDITED: "was never audited",
    Ground.NOT_ATTESTED: "has no valid attestation",
    Ground.AMBIGUOUS: "names no one model",
}


def verdict_of(reference: ModelReference, facts: Facts, address: Callable[[DecisionEvent], str]) -> Verdict:
    """What is to be said of a version.

    Args:
        reference: as it was named.
        facts: what is on record of it now.
        address: gives where a decision's report is.
    """
    decision = facts.decision
    if len(facts.digests) > 1:
        named = ", ".join(one[:19] for one in facts.digests[:3])
        reason = f"the record has several weights under it ({named}); name one by its digest."
        return _plain(reference, Ground.AMBIGUOUS, reason)
    if decision is None:
        return _plain(
            reference,
            Ground.NEVER_AUDITED,
            "the record has no audit of it; start one, or write the name and version as the registry has them.",
        )
    first = decision.suites[0]
    deciding = decision.deciding(facts.events)
    fault = next(iter(facts.faults.items()), None)
    reasons = decision.reasons(facts.events)
    ground, reason = _ground(first), reasons[0].text if reasons else "the decision gives no reason."
    if decision.outcome is DecisionOutcome.APPROVE and fault is not None:
        ground, reason = Ground.NOT_ATTESTED, f"the record of audit {fault[0]} does not hold: {fault[1]}"
    return Verdict(
        reference=reference.text,
        ground=ground,
        reason=_bounded(reason),
        audit_id=None if deciding is None else deciding.audit_id,
        report_url="" if deciding is None else visible(address(deciding)),
        until=_until(decision),
        sequence=decision.sequence,
    )


def _ground(worst: SuiteDecision) -> Ground:
    if worst.outcome is DecisionOutcome.APPROVE:
        return Ground.APPROVED
    if worst.outcome is DecisionOutcome.BLOCK:
        return Ground.BLOCKED
    if worst.standing is None:
        return Ground.PENDING
    return Ground.EXPIRED if worst.standing.kind is StandingKind.EXPIRY else Ground.IN_REVIEW


def _until(decision: VersionDecision) -> str | None:
    if decision.outcome is not DecisionOutcome.APPROVE:
        return None
    ends = [one.standing.expires_at for one in decision.suites if one.standing is not None and one.standing.expires_at]
    return min(ends, default=None)


def _plain(reference: ModelReference, ground: Ground, reason: str) -> Verdict:
    return Verdict(reference=reference.text, ground=ground, reason=reason)


def _bounded(text: str) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= _REASON_CHARACTERS else text[: _REASON_CHARACTERS - 1] + "…"
