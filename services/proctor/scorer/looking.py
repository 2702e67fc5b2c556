"""The looks of a sequential audit: what one sees, whether the audit stops there, and how its evidence is then told.

Pure. A look is weighed and decided on like any audit, at the level of that look (`evidence.sequential.schedule`): so
what it says of approval and block is what a fixed audit of these items would say at a stricter level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.decision import Decision, DecisionOutcome, Reason
from proctor.domain.estimate import Estimate
from proctor.domain.evidence import Evidence, PerturbationEvidence
from proctor.domain.looks import LookSeen, LooksSoFar, SequentialRecord, Stop
from proctor.domain.suite import Suite
from proctor.evidence.perturbation.held import Held, with_p_value
from proctor.evidence.sequential.futility import Interval, decision_chance
from proctor.evidence.sequential.schedule import Look, repeated_p_value, schedule
from proctor.evidence.written_numbers import counted
from proctor.scorer.policy import unusable_channels
from proctor.scorer.score import Score


class Looks(NamedTuple):
    """The looks that a suite plans, of which one is to be taken."""

    suite: Suite
    planned: tuple[Look, ...]
    number: int
    """Of the one that is to be taken, from 1."""
    before: tuple[LookSeen, ...]
    """What the earlier ones found."""

    @classmethod
    def of(cls, suite: Suite, so_far: LooksSoFar) -> Looks:
        """Of an audit's manifest."""
        scoring = suite.scoring
        levels = {"level": scoring.confidence_level, "alpha": scoring.significance_alpha}
        return cls(suite, schedule(scoring.design, so_far.sizes, **levels), so_far.number, so_far.seen)

    @property
    def now(self) -> Look:
        """The look that is to be taken."""
        return self.planned[self.number - 1]

    @property
    def suite_now(self) -> Suite:
        """The suite with the levels of this look alone."""
        levels = {"confidence_level": self.now.level, "significance_alpha": self.now.alpha}
        scoring = self.suite.scoring.model_copy(update=levels)
        return self.suite.model_copy(update={"scoring": scoring})


class Ended(NamedTuple):
    """An audit that asks nothing more."""

    score: Score
    """As it is told at the end."""
    record: SequentialRecord | None
    """None where the wordings were not compared, so that no look saw anything."""


def look_at(looks: Looks, score: Score) -> LookSeen | Ended:
    """Take a look at an audit: what it saw where further items are asked, else how the audit ended.

    Args:
        looks: of the suite, with the one that is taken.
        score: of all that was asked by then, at the level of this look.
    """
    seen = look_seen(looks, score)
    stop = stop_of(looks, score, seen)
    if seen is None:
        return Ended(score, None)
    if stop is None:
        return seen
    record = record_of(looks, (*looks.before, seen), stop)
    return Ended(retold(score, looks, record), record)


def look_seen(looks: Looks, score: Score) -> LookSeen | None:
    """What a look found; None where the wordings were not compared."""
    result, now = score.evidence.perturbation, looks.now
    if result is None:
        return None
    held = Held.of(result)
    return LookSeen(
        number=now.number,
        n_items=now.n_items,
        information=now.information,
        level=now.level,
        alpha=now.alpha,
        inflation=held.inflation,
        score=held.score,
        p_value=held.p_value,
        decision_chance=None if now.last else _decision_chance(looks, held),
    )


def _decision_chance(looks: Looks, held: Held) -> float:
    inflation, score = Interval.of(held.inflation), Interval.of(held.score)
    if inflation is None or score is None:
        # Nothing is bounded yet, so that anything may come.
        return 1.0
    suite = looks.suite
    chance = decision_chance(inflation, score, suite.scoring, suite.governance, now=looks.now, last=looks.planned[-1])
    return float(chance)


def stop_of(looks: Looks, score: Score, seen: LookSeen | None) -> Stop | None:
    """Why an audit asks nothing more after a look; None where it goes on."""
    outcome = score.decision.outcome
    if outcome is DecisionOutcome.APPROVE:
        return Stop.APPROVED
    if outcome is DecisionOutcome.BLOCK:
        return Stop.BLOCKED
    if looks.now.last:
        return Stop.LAST
    if seen is None or unusable_channels(score.evidence, looks.suite):
        return Stop.UNUSABLE
    chance = seen.decision_chance
    if chance is not None and chance < looks.suite.scoring.design.futility:
        return Stop.FUTILE
    return None


def record_of(looks: Looks, seen: Sequence[LookSeen], stop: Stop) -> SequentialRecord:
    """How the audit came to its end, with the p-value of all its looks.

    Args:
        looks: of the suite.
        seen: every look that was taken, in order.
        stop: why it ended.
    """
    scoring = looks.suite.scoring
    information = [look.information for look in seen]
    return SequentialRecord(
        sizes=tuple(look.n_items for look in looks.planned),
        looks=tuple(seen),
        stop=stop,
        p_value=repeated_p_value(scoring.design.spending, information, [look.p_value for look in seen]),
        level=scoring.confidence_level,
    )


def retold(score: Score, looks: Looks, record: SequentialRecord) -> Score:
    """Evidence and decision as they are told at the end: at the level that all looks have together.

    An interval of this look is one of the suite's level, because those of all looks hold it together; the p of what is
    held against the limits becomes that of all looks.
    """
    evidence: Evidence = _at_all_looks(score.evidence, looks, record)
    return Score(evidence, _explained(score.decision, looks, record))


def _at_all_looks(value: Any, looks: Looks, record: SequentialRecord) -> Any:
    if isinstance(value, Estimate):
        if value.level != looks.now.level:
            return value
        method = f"{value.method}, at {100 * looks.now.level:.2f} % so that all looks together hold the level"
        return value.model_copy(update={"level": record.level, "method": method})
    if isinstance(value, Frozen):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {name: new for name, old in fields.items() if (new := _at_all_looks(old, looks, record)) is not old}
        told = value.model_copy(update=changed) if changed else value
        return with_p_value(told, record.p_value) if isinstance(told, PerturbationEvidence) else told
    if isinstance(value, tuple):
        items = tuple(_at_all_looks(one, looks, record) for one in value)
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, Mapping):
        mapped = {key: _at_all_looks(one, looks, record) for key, one in value.items()}
        return mapped if any(mapped[key] is not value[key] for key in value) else value
    return value


def _explained(decision: Decision, looks: Looks, record: SequentialRecord) -> Decision:
    """The decision with a last reason that says why no further items were asked; none at the last look."""
    asked, planned = counted(record.n_asked, "item"), f"{record.n_planned:,}"
    said = {
        Stop.FUTILE: f"After {asked} of {planned} the chance that the rest would approve or block was "
        f"{100 * (record.looks[-1].decision_chance or 0.0):.0f} %, below the suite's "
        f"{100 * looks.suite.scoring.design.futility:g} %, so they were not asked.",
        Stop.UNUSABLE: f"After {asked} of {planned} a required channel said nothing, which further items would not "
        "mend, so they were not asked.",
        Stop.APPROVED: f"That was plain after {asked} of {planned}, at look {record.looks[-1].number} of "
        f"{len(record.sizes)}; the intervals hold their level at all looks together.",
    }
    said[Stop.BLOCKED] = said[Stop.APPROVED]
    if record.stop is Stop.LAST or record.n_asked == record.n_planned:
        return decision
    reason = Reason(code=f"stopped_{record.stop}", text=said[record.stop])
    return decision.model_copy(update={"reasons": (*decision.reasons, reason)})
