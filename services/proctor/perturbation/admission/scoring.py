"""Pairs before the gate, whatever its window and margin are: what each of its checks would say of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.domain.evidence import Estimate
from proctor.domain.gate_calibration import ChangedAdmits
from proctor.domain.item import Item, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.evidence.intervals import wilson
from proctor.perturbation.admission.gate import Placed, screen
from proctor.perturbation.admission.measure import ItemPair, measure
from proctor.perturbation.admission.pairs import ChangedQuestion, LabelledPair
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.other_items import OtherItems
from proctor.text.same_question import asked

_LEVEL: Final = 0.95
_WIDEST: Final = {"min_semantic_distance": 0.0, "max_semantic_distance": 2.0, "min_margin": None}
_PAIRS_AT_ONCE: Final = 1024


class Scored(NamedTuple):
    """A labelled pair before the gate's checks."""

    item_id: str
    equivalent: bool
    nearest: bool
    reason: str | None
    """Why the gate turns the pair away at any distance; None where only the distance is left to decide."""
    placed: Placed
    """At an infinite distance where a text cannot be measured."""

    @property
    def distance(self) -> float:
        """From the own item."""
        return self.placed.distance

    def gate_distance(self, min_margin: float | None) -> float:
        """The distance from which on the whole gate admits the pair; infinite for never."""
        margin = self.placed.margin
        apart = min_margin is None or margin is None or margin >= min_margin
        return self.distance if self.reason is None and apart else math.inf


class Gate(NamedTuple):
    """The ends of a window, and the margin that is asked for besides."""

    low: float
    high: float
    margin: float | None = None


class Setting(NamedTuple):
    """What all pairs of a calibration are measured with."""

    settings: PerturbationSection
    encoder: Encoder
    others: OtherItems


def scored(pairs: Sequence[LabelledPair], setting: Setting) -> list[Scored]:
    """Every pair, in their order; raises what measuring raises."""
    # What the gate says besides is judged here, so that pairs outside of any window and margin are measured too.
    widest = setting.settings.model_copy(update=_WIDEST)
    found: list[Scored] = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        part = pairs[start : start + _PAIRS_AT_ONCE]
        measured = measure(
            [ItemPair(pair.item, pair.candidate) for pair in part], widest, setting.encoder, others=setting.others
        )
        for pair, result in zip(part, measured, strict=True):
            placed = Placed(math.inf)
            if result.measurements is not None:
                placed = Placed(result.measurements.semantic_distance, result.measurements.margin)
            reason = None if result.rejection is None else result.rejection.reason
            found.append(Scored(pair.item.item_id, pair.equivalent, pair.nearest, reason, placed))
    return found


def put_to_nearest(pairs: Sequence[LabelledPair], items: Sequence[Item], setting: Setting) -> list[Scored]:
    """Equivalent rewordings as they would be of the other item whose question is nearest to them."""
    usable = [
        pair
        for pair in pairs
        if pair.equivalent
        and not isinstance(screen(pair.item, pair.candidate, setting.settings), Rejection)
        and pair.candidate.question != pair.item.question
    ]
    if not usable:
        return []
    asking: dict[str, Item] = {}
    for item in items:
        asking.setdefault(asked(item.question), item)
    texts = [(pair.item.question, pair.candidate.question) for pair in usable]
    nearest = setting.others.nearest_rows(texts, setting.encoder.encode([rewording for _, rewording in texts]))
    mistaken = []
    for pair, (_, row) in zip(usable, nearest, strict=True):
        if row >= 0:
            other = asking[asked(setting.others.questions[row])]
            candidate = Candidate(pair.candidate.question, other.choices, "different", 1, {})
            mistaken.append(LabelledPair(other, candidate, equivalent=False))
    return scored(mistaken, setting)


def changed_admits(changed: Sequence[ChangedQuestion], setting: Setting, gate: Gate) -> tuple[ChangedAdmits, ...]:
    """The share admitted of questions that were changed on purpose, by kind, in the order of their names."""
    pairs = [LabelledPair(one.item, one.candidate, equivalent=False) for one in changed]
    kinds: dict[str, list[Scored]] = {}
    for one, result in zip(changed, scored(pairs, setting), strict=True):
        kinds.setdefault(one.kind, []).append(result)
    return tuple(
        ChangedAdmits(kind=kind, questions=len(kinds[kind]), admitted=share(kinds[kind], gate))
        for kind in sorted(kinds)
    )


def share(scored: Sequence[Scored], gate: Gate) -> Estimate:
    """The share of the pairs that a gate admits, with Wilson\'s interval."""
    admitted = sum(gate.low <= one.gate_distance(gate.margin) <= gate.high for one in scored)
    return wilson(admitted, len(scored), _LEVEL)
