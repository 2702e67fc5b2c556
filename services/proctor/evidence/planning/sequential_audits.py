"""What a sequential design does with simulated audits, all of them at once: where each stops, and how it decides there.

The looks, levels and rules are those of an audit (`evidence.sequential`), and what a look finds is `SimulatedAudits` of
the items so far; a test holds the two together audit by audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from proctor.evidence.answers import BoolArray, FloatArray, IntArray
from proctor.evidence.planning.controlled_audits import ControlledAudits
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits
from proctor.evidence.sequential.futility import Interval, decision_chance
from proctor.evidence.sequential.schedule import Look

Audits = SimulatedAudits | ControlledAudits


class Stopped(NamedTuple):
    """Where simulated audits stopped, a row each."""

    look: IntArray
    """Number of the look."""
    n_items: IntArray
    approved: BoolArray
    blocked: BoolArray
    futile: BoolArray
    """Stopped for review before the last look."""
    rejected: BoolArray
    """Whether p was below its look's level at any look until the stop."""


def at_look(limits: Limits, look: Look) -> Limits:
    """The limits of a suite as they are read at one look."""
    levels = {"confidence_level": look.level, "significance_alpha": look.alpha}
    return limits._replace(scoring=limits.scoring.model_copy(update=levels))


def stopped(looks: Sequence[Look], so_far: Iterable[Audits], limits: Limits, *, futility: float) -> Stopped:
    """Go through the looks and stop each audit where its design says.

    Args:
        looks: of the design.
        so_far: the audits at each look, with all that was asked by then; the same audits in the same order each time.
        limits: of the suite, with the levels of all looks together.
        futility: chance of a decision below which an audit stops.
    """
    result: Stopped | None = None
    for look, audits in zip(looks, so_far, strict=True):
        there = at_look(limits, look)
        approved, blocked = audits.decisions(there)
        if result is None:
            none = np.zeros(approved.shape, dtype=np.bool_)
            result = Stopped(
                np.zeros(none.shape, dtype=np.int64), np.zeros(none.shape, dtype=np.int64),
                none.copy(), none.copy(), none.copy(), none.copy(),
            )  # fmt: skip
        going = result.look == 0
        result.rejected[going] |= audits.significant(there.scoring.significance_alpha, exact=False)[going]
        futile = _chance(audits, there, look, looks[-1]) < futility
        ends = going & (approved | blocked | futile | look.last)
        result.look[ends], result.n_items[ends] = look.number, look.n_items
        result.approved[ends], result.blocked[ends] = approved[ends], blocked[ends]
        result.futile[ends] = (futile & ~approved & ~blocked & (not look.last))[ends]
    assert result is not None
    return result


def _chance(audits: Audits, limits: Limits, look: Look, last: Look) -> FloatArray:
    level = limits.scoring.confidence_level
    bounds = Interval(*audits.inflation(level)), Interval(*audits.contamination_score(level))
    return decision_chance(*bounds, limits.scoring, limits.governance, now=look, last=last)


def drawn_looks(
    chances: FloatArray, looks: Sequence[Look], *, audits: int, rng: np.random.Generator
) -> Iterator[SimulatedAudits]:
    """The same audits at each look, with independent items.

    Args:
        chances: of each pattern of answers, from `pattern_chances`.
        looks: of the design.
        audits: how many.
        rng: source of randomness.
    """
    counts, asked = np.zeros((audits, *chances.shape), dtype=np.int64), 0
    for look in looks:
        further = rng.multinomial(look.n_items - asked, chances.ravel(), size=audits)
        counts, asked = counts + further.reshape(counts.shape), look.n_items
        yield SimulatedAudits(counts)
