"""Graded answers as rows, and the paired layout that the perturbation channel's estimators take.

An error row is a missing answer, not a wrong one: it is in neither the right nor the asked answers of its item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from proctor.domain.item import Item
from proctor.domain.suite import ScoringSection
from proctor.domain.trial import Arm, Outcome

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Answer(NamedTuple):
    """One trial's answer as the evidence sees it."""

    arm: Arm
    item_id: str
    outcome: Outcome | None
    """None for an error row: nothing came back."""
    truncated: bool = False
    cut_short: bool = False
    """Truncated before an answer stood in it, and not right: nobody knows what it would have said."""


class Exclusion(NamedTuple):
    """An item that could not be paired, and why."""

    item_id: str
    reason: str


class Patterns(NamedTuple):
    """The distinct (canonical, right, total) of a sample, in a fixed order, and how many items show each.

    A million items share a few dozen patterns, and sums over patterns do not depend on the order of the items.
    """

    counts: IntArray
    canonical: BoolArray
    right: IntArray
    total: IntArray
    inverse: IntArray
    """For each item, the place of its pattern."""

    @property
    def differences(self) -> FloatArray:
        """D of each pattern: canonical minus the share of right reworded answers; -1 to 1."""
        return self.canonical - self.reworded_share

    @property
    def reworded_share(self) -> FloatArray:
        """Share of right answers among the reworded ones."""
        return self.right / self.total


@dataclass(frozen=True, eq=False)
class PairedAnswers:
    """n items, each with one canonical answer and `total` reworded ones, of which `right` are right."""

    item_ids: tuple[str, ...]
    canonical: BoolArray
    right: IntArray
    total: IntArray
    excluded: tuple[Exclusion, ...] = ()
    clusters: tuple[str, ...] | None = None
    """What each item shares with others, one label an item; None where each is a cluster of its own."""

    def __post_init__(self) -> None:
        n = len(self.item_ids)
        for name, array in (("canonical", self.canonical), ("right", self.right), ("total", self.total)):
            if array.shape != (n,):
                raise ValueError(f"{name} has shape {array.shape}, and {n} items need ({n},)")
        if self.clusters is not None and len(self.clusters) != n:
            raise ValueError(f"{len(self.clusters)} cluster labels for {n} items; each item needs one")
        if len(set(self.item_ids)) != n:
            raise ValueError("item_ids repeat; items are paired by id, so each may stand once")
        if n and (self.total.min() < 1 or self.right.min() < 0 or bool((self.right > self.total).any())):
            raise ValueError("every item needs total >= 1 and 0 <= right <= total")

    @classmethod
    def of(
        cls,
        item_ids: Sequence[str],
        canonical: Sequence[bool] | BoolArray,
        right: Sequence[int] | IntArray,
        total: Sequence[int] | IntArray,
        excluded: Sequence[Exclusion] = (),
        clusters: Sequence[str] | None = None,
    ) -> PairedAnswers:
        """Build from any sequences."""
        return cls(
            tuple(item_ids),
            np.asarray(canonical, dtype=np.bool_),
            np.asarray(right, dtype=np.int64),
            np.asarray(total, dtype=np.int64),
            tuple(excluded),
            None if clusters is None else tuple(clusters),
        )

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def canonical_share(self) -> FloatArray:
        """Share of right canonical answers of each item: 0 or 1."""
        return self.canonical.astype(np.float64)

    @property
    def differences(self) -> FloatArray:
        """D of each item: canonical minus the share of right reworded answers; -1 to 1."""
        return self.canonical - self.right / self.total

    @cached_property
    def patterns(self) -> Patterns:
        """The sample as pattern counts."""
        width = int(self.total.max(initial=0)) + 1
        keys = (self.total * width + self.right) * 2 + self.canonical
        # Counting into a table beats sorting a million keys, as long as the table is no larger than they are.
        if 2 * width * width <= max(10_000, 4 * self.n):
            table = np.bincount(keys, minlength=2 * width * width)
            present = np.flatnonzero(table)
            places = np.zeros(table.size, dtype=np.int64)
            places[present] = np.arange(present.size)
            counts, inverse = table[present], places[keys]
        else:
            present, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return Patterns(
            counts=counts.astype(np.int64),
            canonical=(present % 2).astype(np.bool_),
            right=(present // 2 % width).astype(np.int64),
            total=(present // 2 // width).astype(np.int64),
            inverse=inverse.astype(np.int64),
        )


def cluster_labels(items: Iterable[Item]) -> Mapping[str, str]:
    """Item id → its cluster, of the items that are in one."""
    return {item.item_id: item.cluster for item in items if item.cluster is not None}


def labels_of(item_ids: Iterable[str], clusters: Mapping[str, str]) -> tuple[str, ...]:
    """One label an item, where those that are in no cluster have one of their own."""
    return tuple(f"c {clusters[item]}" if item in clusters else f"i {item}" for item in item_ids)


def pair_answers(
    answers: Iterable[Answer], item_ids: Sequence[str] = (), clusters: Mapping[str, str] = MappingProxyType({})
) -> PairedAnswers:
    """Pair answers by item id, in the order of the ids.

    Args:
        answers: rows of both arms, in any order.
        item_ids: every item of the audit, so that one without any answer is listed as excluded too.
        clusters: item id → its cluster, of the items that are in one.

    Items without a canonical answer, or without any reworded one, are excluded with the reason.

    Raises:
        ValueError: for two canonical answers of one item; a trial counts once.
    """
    canonical: dict[str, bool] = {}
    failed_canonical: set[str] = set()
    right: dict[str, int] = {}
    total: dict[str, int] = {}
    failed_reworded: set[str] = set()
    seen = set(item_ids)
    for answer in answers:
        item = answer.item_id
        seen.add(item)
        if answer.arm is Arm.CANONICAL:
            if item in canonical or item in failed_canonical:
                raise ValueError(f"item {item!r} has two canonical answers; a trial counts once")
            if answer.outcome is None:
                failed_canonical.add(item)
            else:
                canonical[item] = answer.outcome is Outcome.CORRECT
        elif answer.arm is Arm.PERTURBED:
            if answer.outcome is None:
                failed_reworded.add(item)
            else:
                total[item] = total.get(item, 0) + 1
                right[item] = right.get(item, 0) + (answer.outcome is Outcome.CORRECT)
    kept, excluded = [], []
    for item in sorted(seen):
        if item in failed_canonical:
            excluded.append(Exclusion(item, "the canonical answer is an error row"))
        elif item not in canonical:
            excluded.append(Exclusion(item, "no canonical answer"))
        elif item not in total:
            reason = "every reworded answer is an error row" if item in failed_reworded else "no admitted variant"
            excluded.append(Exclusion(item, reason))
        else:
            kept.append(item)
    return PairedAnswers.of(
        kept,
        [canonical[item] for item in kept],
        [right[item] for item in kept],
        [total[item] for item in kept],
        excluded,
        labels_of(kept, clusters) if clusters else None,
    )


def guess_chance(scoring: ScoringSection, items: Iterable[Item]) -> float | None:
    """Chance that a guess is right: the suite's, else the mean of 1/options where every item has options, else None."""
    if scoring.guess_chance is not None:
        return scoring.guess_chance
    chances = []
    for item in items:
        if not item.choices:
            return None
        chances.append(1.0 / len(item.choices))
    return float(np.mean(chances)) if chances else None
