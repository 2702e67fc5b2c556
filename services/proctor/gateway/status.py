"""An audit as it is at one moment, as everyone sees it who watches it from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.measure import Bounded
from proctor.domain.messages import Priority
from proctor.domain.record.sign_off import SignedBy
from proctor.domain.scope import Scope
from proctor.domain.standing import Standing, StandingKind
from proctor.domain.submitter import LOCAL_NAME
from proctor.domain.weights import Weights
from proctor.runtime.records.audit_state import AuditState

#: Causes that are told apart; the rest is counted together.
_MAX_CAUSES: Final = 10
#: Characters of a cause: a server's answer may be quoted in it.
_MAX_CAUSE: Final = 300
#: The cause under which the rest is counted.
OTHER_CAUSES: Final = "other causes"


class Trials(Frozen):
    """A stage's trials by where their shards are."""

    planned: int
    done: int
    under_way: int
    dead: int
    """Given up: they count as errors."""

    @property
    def left(self) -> int:
        """Trials that neither were answered nor given up."""
        return max(0, self.planned - self.done - self.dead)


class Failure(Frozen):
    """A cause for which shards were given up, and how many."""

    cause: str
    shards: int


class TokensSpent(Frozen):
    """What an audit has asked so far, over all its stages; tokens as far as the endpoints report them."""

    trials: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Stands(Frozen):
    """What holds for a decided audit now: its decision, a person's sign-off, or the end of an approval."""

    outcome: DecisionOutcome
    kind: StandingKind
    by: SignedBy | None = None
    """Who signed off; None where nobody did."""
    reason: str = ""
    reference: str = ""
    at: str
    """Since when, ISO 8601 in UTC."""
    expires_at: str | None = None
    """When an approval ends by itself."""
    sequence: int
    """The entry of the decision log that it rests on."""

    @classmethod
    def of(cls, standing: Standing) -> Stands:
        """What a standing says of its audit."""
        return cls(**{name: getattr(standing, name) for name in cls.model_fields})


class Verdict(Frozen):
    """The decision of an audit, as far as it is of interest to whoever waits for it."""

    outcome: DecisionOutcome
    reasons: tuple[Reason, ...]
    report_path: str
    """The report's page on the machine that scored."""
    report_digest: str
    registry_version: str | None = None
    """Where the decision stands in the model registry; None until it does."""
    scope: Scope | None = None
    """How far the evidence reaches past the wording; None where an earlier Proctor decided."""
    weights: Weights | None = None
    """How the digest of the weights is known; None where an earlier Proctor decided."""
    stands: Stands | None = None
    """What holds now; None where that cannot be read, or a service of before there were sign-offs says nothing."""

    @property
    def holds(self) -> DecisionOutcome:
        """The outcome that holds now."""
        return self.outcome if self.stands is None else self.stands.outcome

    @classmethod
    def of(cls, event: DecisionEvent, registry_version: str | None, standing: Standing | None) -> Verdict:
        """The verdict that an event carries, and what holds now."""
        return cls(
            outcome=event.outcome,
            reasons=event.reasons,
            report_path=event.report_path,
            report_digest=event.report_digest,
            registry_version=registry_version,
            scope=event.scope,
            weights=event.weights,
            stands=None if standing is None else Stands.of(standing),
        )


class LookTaken(Frozen):
    """What a look of a sequential audit found, after which it went on."""

    n_items: int
    """Items that were to be asked by then, in all."""
    inflation: Bounded
    """Score inflation in points, or what of it goes beyond the control items."""
    score: Bounded
    """The same of the Contamination Score."""
    decision_chance: float | None
    """Chance that the last look approves or blocks, by what was seen."""


class LooksTaken(Frozen):
    """How far a sequential audit has come, and the limits that its intervals close in on."""

    sizes: tuple[int, ...]
    """Items by each planned look, in all."""
    taken: tuple[LookTaken, ...]
    allowed_points: float
    """Score inflation up to which it is approved."""
    blocked_points: float
    """Score inflation past which it is blocked."""
    score_limit: float
    """Of the Contamination Score."""


class AuditStatus(Frozen):
    """An audit as it was at one moment."""

    audit_id: str
    suite: str
    """The suite's audit_suite_id."""
    model_id: str
    state: AuditState
    paused: bool = False
    priority: Priority = Priority.NORMAL
    detail: str = ""
    """Why it failed; empty otherwise."""
    created_at: str = ""
    """Time of submission, ISO 8601 in UTC."""
    stage: str | None = None
    """The stage whose prompts are being asked; None outside of one."""
    trials: Trials | None = None
    """Of that stage; None outside of one, and where an audit has ended and its ledger cannot be asked any more."""
    failures: tuple[Failure, ...] = ()
    """Why shards of that stage were given up, the most frequent cause first."""
    spent: TokensSpent | None = None
    """None where that is not known: the ledger does not have it, and nothing is on record."""
    rate: float | None = None
    """Trials a second that ended of late; only while the audit is watched."""
    eta_s: float | None = None
    """Seconds until the stage ends at that rate; only while the audit is watched, and some trials end."""
    away_s: float | None = None
    """For how many seconds the servers that the stage asks have not answered; None while they do."""
    services_away: tuple[str, ...] = ()
    """Services of which no worker has been heard of for a while; none once it has ended."""
    searching: bool = False
    """Whether training data are still to be searched for its items, beside whatever else it does."""
    looks: LooksTaken | None = None
    """Of a sequential audit; None of a fixed one."""
    decision: Verdict | None = None
    submitter: str = LOCAL_NAME
    """Who started it last: a token's name, `default` for a gateway's one token, `local` for its own terminal."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state.ended


def failures_by_cause(dead: Mapping[str, str]) -> tuple[Failure, ...]:
    """Why shards were given up, the most frequent cause first: ten causes, and the rest as one.

    Args:
        dead: shard id → cause.
    """
    counts = Counter(cause[:_MAX_CAUSE] for cause in dead.values())
    ranked = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    shown = [Failure(cause=cause, shards=shards) for cause, shards in ranked[:_MAX_CAUSES]]
    if rest := sum(shards for _, shards in ranked[_MAX_CAUSES:]):
        shown.append(Failure(cause=OTHER_CAUSES, shards=rest))
    return tuple(shown)
