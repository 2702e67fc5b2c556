"""Answers to wordings that were each asked several times, counted by wording.

The wording is the unit within an item and the item is the unit of the sample. Repeated answers to one wording say how
often the model gets that wording right; they are not further wordings, and counting them as such would make the model's
own dice look like evidence about memory. So each wording counts by its share of right answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from proctor.domain.trial import Outcome
from proctor.evidence.answers import Exclusion, FloatArray, IntArray, labels_of


class WordingAnswer(NamedTuple):
    """One graded answer to one wording of an item."""

    item_id: str
    wording: str | None
    """Identifier of the rewording within its item; None for the canonical wording."""
    outcome: Outcome | None
    """None for an error row: nothing came back."""
    replicate: int = 0
    """Which of the answers to the wording it is."""


@dataclass(frozen=True, eq=False)
class ReplicatedAnswers:
    """n items in V + 1 wordings, the canonical one first; each with its right answers of those asked."""

    item_ids: tuple[str, ...]
    right: IntArray
    """Shape (n, V + 1)."""
    asked: IntArray
    """Shape (n, V + 1); 0 for a wording that the item does not have."""
    excluded: tuple[Exclusion, ...] = ()
    clusters: tuple[str, ...] | None = None
    """What each item shares with others, one label an item; None where each is a cluster of its own."""

    def __post_init__(self) -> None:
        n = len(self.item_ids)
        if self.right.shape != self.asked.shape or self.right.ndim != 2 or self.right.shape[0] != n:
            raise ValueError(f"{n} items need right and asked of shape ({n}, wordings), not {self.right.shape}")
        if len(set(self.item_ids)) != n:
            raise ValueError("item_ids repeat; items are paired by id, so each may stand once")
        if bool((self.right < 0).any()) or bool((self.right > self.asked).any()):
            raise ValueError("every wording needs 0 <= right <= asked")
        if n and (bool((self.asked[:, 0] < 1).any()) or bool((self.asked[:, 1:].sum(axis=1) < 1).any())):
            raise ValueError("every item needs an answer to its canonical wording and one to a rewording")

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def shares(self) -> FloatArray:
        """Share of right answers of each wording, 0 for one that was not asked; shape (n, V + 1)."""
        shares: FloatArray = self.right / np.maximum(self.asked, 1)
        return shares

    @property
    def canonical_share(self) -> FloatArray:
        """Share of right answers to the canonical wording; shape (n,)."""
        share: FloatArray = self.shares[:, 0]
        return share

    @property
    def wordings(self) -> IntArray:
        """Rewordings of each item that were answered; shape (n,)."""
        wordings: IntArray = (self.asked[:, 1:] > 0).sum(axis=1)
        return wordings

    @property
    def differences(self) -> FloatArray:
        """D of each item: canonical share minus the mean share of its rewordings; -1 to 1."""
        differences: FloatArray = self.canonical_share - self.shares[:, 1:].sum(axis=1) / self.wordings
        return differences


def collect_replicates(
    answers: Iterable[WordingAnswer],
    item_ids: Sequence[str] = (),
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> ReplicatedAnswers:
    """Count the answers of each wording, items and wordings in the order of their ids.

    Args:
        answers: of both arms, in any order.
        item_ids: every item of the audit, so that one without any answer is listed as excluded too.
        clusters: item id → its cluster, of the items that are in one.

    An error row is in neither the right nor the asked answers of its wording. Items without an answer to the canonical
    wording, or to any rewording, are excluded with the reason.
    """
    counts: dict[str, dict[str | None, list[int]]] = {item: {} for item in item_ids}
    for answer in answers:
        wordings = counts.setdefault(answer.item_id, {})
        if answer.outcome is not None:
            right_asked = wordings.setdefault(answer.wording, [0, 0])
            right_asked[0] += answer.outcome is Outcome.CORRECT
            right_asked[1] += 1
    kept, excluded = [], []
    for item, wordings in sorted(counts.items()):
        if None not in wordings:
            excluded.append(Exclusion(item, "no answer to the canonical wording"))
        elif len(wordings) == 1:
            excluded.append(Exclusion(item, "no answer to a rewording"))
        else:
            kept.append(item)
    width = max((len(counts[item]) for item in kept), default=1)
    table = np.zeros((len(kept), width, 2), dtype=np.int64)
    for row, item in zip(table, kept, strict=True):
        ordered = sorted(counts[item].items(), key=lambda entry: (entry[0] is not None, entry[0] or ""))
        row[: len(ordered)] = [right_asked for _, right_asked in ordered]
    labels = labels_of(kept, clusters) if clusters else None
    return ReplicatedAnswers(tuple(kept), table[:, :, 0], table[:, :, 1], tuple(excluded), labels)
