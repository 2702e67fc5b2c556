"""What a sequential design does with simulated audits, all of them at once: where each stops, and how it decides there.

The looks, levels and rules are those of an audit (`evidence.sequential`), and what a look finds is `SimulatedAudits` of
the items so far; a test holds the two together audit by audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from proctor.evidence.answers import BoolArray, FloatArray, IntArray
from proctor.evidence.planning.clustered_audits import SHARED, ClusteredAudits
from proctor.evidence.planning.controlled_audits import ControlledAudits
from proctor.evidence.planning.simulated_audits import Bounds, Limits, SimulatedAudits
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
    inflation: Bounds
    """Score inflation at the stop, in points, at the level of its look; beside control items what is beyond theirs."""
    score: Bounds
    """The Contamination Score at the stop, in the same way."""


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

    Raises:
        ValueError: without a look, or where there are not as many audits as looks.
    """
    result: Stopped | None = None
    for look, audits in zip(looks, so_far, strict=True):
        there = at_look(limits, look)
        level = there.scoring.confidence_level
        inflation, score = audits.inflation(level), audits.contamination_score(level)
        approved, blocked = audits.decisions(there)
        if result is None:
            result = _none_stopped(approved.size)
        going = result.look == 0
        result.rejected[going] |= audits.significant(there.scoring.significance_alpha, exact=False)[going]
        chance = decision_chance(
            Interval(*inflation), Interval(*score), there.scoring, there.governance, now=look, last=looks[-1]
        )
        futile = (chance < futility) & (not look.last)
        ends = going & (approved | blocked | futile | look.last)
        result.look[ends], result.n_items[ends] = look.number, look.n_items
        result.approved[ends], result.blocked[ends] = approved[ends], blocked[ends]
        result.futile[ends] = (futile & ~approved & ~blocked)[ends]
        for found, kept in ((inflation, result.inflation), (score, result.score)):
            for side, kept_side in zip(found, kept, strict=True):
                kept_side[ends] = side[ends]
    if result is None:
        raise ValueError("a design without a look stops nothing")
    return result


def _none_stopped(audits: int) -> Stopped:
    def no() -> BoolArray:
        return np.zeros(audits, dtype=np.bool_)

    def unknown() -> Bounds:
        return Bounds(*(np.full(audits, np.nan) for _ in Bounds._fields))

    zeros = np.zeros(audits, dtype=np.int64)
    return Stopped(zeros, zeros.copy(), no(), no(), no(), no(), unknown(), unknown())


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


def drawn_controlled_looks(
    chances: FloatArray,
    clean: FloatArray,
    looks: Sequence[Look],
    control_items: int,
    *,
    audits: int,
    rng: np.random.Generator,
) -> Iterator[ControlledAudits]:
    """The same beside control items, which come in the shares of the looks and are answered as `clean` says."""
    benchmark = drawn_looks(chances, looks, audits=audits, rng=rng)
    beside = [look._replace(n_items=round(look.information * control_items)) for look in looks]
    controls = drawn_looks(clean, beside, audits=audits, rng=rng)
    return (ControlledAudits(*both) for both in zip(benchmark, controls, strict=True))


def drawn_clustered_looks(
    chances: FloatArray,
    sizes: IntArray,
    ends: Sequence[int],
    *,
    audits: int,
    rng: np.random.Generator,
    shared: float = SHARED,
) -> Iterator[ClusteredAudits]:
    """The same with items in clusters, of which each look has the first so many.

    Args:
        chances: of each pattern of answers, from `pattern_chances`.
        sizes: of the clusters in the order in which they are asked, shape (G,).
        ends: clusters of each look, from `whole_clusters`.
        audits: how many.
        rng: source of randomness.
        shared: chance that an item's answers are its cluster's.
    """
    parts = (
        ClusteredAudits.simulate(chances, sizes[begin:end], audits=audits, rng=rng, shared=shared)
        for begin, end in pairwise((0, *ends))
    )
    return _joined(parts)


def whole_clusters(sizes: IntArray, wanted: Sequence[int]) -> list[int]:
    """How many whole clusters each look has, ascending: those that end nearest to the items that it wants.

    Args:
        sizes: of the clusters in the order in which they are asked, shape (G,).
        wanted: items of each look, the last all of them.
    """
    items = np.concatenate([[0], np.cumsum(sizes)])
    # Of two ends that are as near the later one, as `item_order.cut_at` has it.
    nearest = (sizes.size - int(np.argmin(np.abs(items[::-1] - want))) for want in wanted)
    return [end for end in dict.fromkeys(nearest) if end]


def _joined(parts: Iterable[ClusteredAudits]) -> Iterator[ClusteredAudits]:
    so_far: ClusteredAudits | None = None
    for part in parts:
        if so_far is None:
            so_far = part
        else:
            so_far = ClusteredAudits(
                so_far.counts + part.counts,
                np.concatenate([so_far.sizes, part.sizes]),
                np.concatenate([so_far.d, part.d], axis=1),
                np.concatenate([so_far.b, part.b], axis=1),
            )
        yield so_far
