"""The decision, and the event in which it leaves (protos/proctor/v1/decision.proto in canonical JSON)."""

from __future__ import annotations

from enum import StrEnum

from pydantic import AliasGenerator, ConfigDict
from pydantic.alias_generators import to_camel

from proctor.domain.base import Frozen
from proctor.domain.scope import WORDING_ALONE, Scope
from proctor.domain.versions import added
from proctor.domain.weights import Weights


class DecisionOutcome(StrEnum):
    """What the gate does with a suite."""

    APPROVE = "approve"
    REVIEW = "review"
    BLOCK = "block"


class Reason(Frozen):
    """One reason of a decision: a code for machines, a sentence for people."""

    code: str
    text: str


class Decision(Frozen):
    """The gate's decision on one suite, with its reasons, the deciding one first."""

    outcome: DecisionOutcome
    reasons: tuple[Reason, ...]
    scope: Scope | None = added(None, since=2)
    """How far the evidence reaches past the wording; None in documents of before there was a scope."""


def scope_caveat(outcome: DecisionOutcome, scope: Scope | None) -> str | None:
    """What a decision has to say of its scope before anything else: that an approval rests on wordings alone."""
    approved_by_wording = outcome is DecisionOutcome.APPROVE and scope is Scope.WORDING
    return WORDING_ALONE if approved_by_wording else None


class DecisionEvent(Frozen):
    """What leaves on the topic exchange `proctor.events`. `plain()` is protobuf's canonical JSON form."""

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel, validation_alias=to_camel))

    audit_id: str
    audit_suite_id: str
    model_id: str
    model_digest: str
    outcome: DecisionOutcome
    reasons: tuple[Reason, ...]
    fingerprint: str
    protocol_digest: str
    report_digest: str
    report_path: str
    n_items: int
    scope: Scope | None = added(None, since=2)
    """How far the evidence reaches past the wording; None where an earlier Proctor decided."""
    weights: Weights | None = added(None, since=3)
    """How the digest of the weights is known; None where an earlier Proctor decided, which did not tell apart what was
    proven from what was declared."""

    @property
    def routing_key(self) -> str:
        """Topic under which the event is published: `decision.<outcome>`."""
        return f"decision.{self.outcome}"
