"""Wordings that were each asked several times (at a temperature above 0): the perturbation channel with replicates.

The wording is the unit within an item and the item is the unit of the sample. Repeated answers to one wording say how
often the model gets that wording right; they are not further wordings, and counting them as such would make the model's
own dice look like evidence about memory. So each wording counts by its share of right answers: D of an item is its
canonical share minus the mean of its rewordings' shares, and all else follows from D as it does where each wording was
asked once, to which every figure reduces.

Replicates may rank items and never flag one: that a single item's canonical wording is right five times of five and its
rewordings never is as likely for the one easy wording of four as for a leak.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.evidence import Estimate
from proctor.domain.trial import Outcome
from proctor.evidence.answers import Exclusion, FloatArray, IntArray, PairedAnswers
from proctor.evidence.clusters import (
    Clusters,
    clustered_contamination_score,
    clustered_score_inflation,
    clustered_test,
)
from proctor.evidence.intervals import PairSums
from proctor.evidence.perturbation.power import minimum_detectable_inflation
from proctor.evidence.perturbation.ranking import leaked_posterior
from proctor.evidence.perturbation.wording_exchange import wording_exchangeability

NULL_HYPOTHESIS = (
    "Over items, the model's mean accuracy on the canonical wording is no higher than on the admitted rewordings, each "
    "wording counted by its share of right answers (score inflation D is at most 0)."
)


class WordingAnswer(NamedTuple):
    """One graded answer to one wording of an item."""

    item_id: str
    wording: str | None
    """Identifier of the rewording within its item; None for the canonical wording."""
    outcome: Outcome | None
    """None for an error row: nothing came back."""


@dataclass(frozen=True, eq=False)
class ReplicatedAnswers:
    """n items in V + 1 wordings, the canonical one first; each with its right answers of those asked."""

    item_ids: tuple[str, ...]
    right: IntArray
    """Shape (n, V + 1)."""
    asked: IntArray
    """Shape (n, V + 1); 0 for a wording that the item does not have."""
    excluded: tuple[Exclusion, ...] = ()

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


def replicated(answers: PairedAnswers) -> ReplicatedAnswers:
    """Answers to wordings that were asked once each, as replicates of one."""
    places = np.arange(int(answers.total.max(initial=1)))
    return ReplicatedAnswers(
        answers.item_ids,
        np.column_stack([answers.canonical, places < answers.right[:, None]]).astype(np.int64),
        np.column_stack([np.ones(answers.n), places < answers.total[:, None]]).astype(np.int64),
        answers.excluded,
    )


def collect_replicates(answers: Iterable[WordingAnswer], item_ids: Sequence[str] = ()) -> ReplicatedAnswers:
    """Count the answers of each wording, items and wordings in the order of their ids.

    Args:
        answers: of both arms, in any order.
        item_ids: every item of the audit, so that one without any answer is listed as excluded too.

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
    return ReplicatedAnswers(tuple(kept), table[:, :, 0], table[:, :, 1], tuple(excluded))


class RankedItem(Frozen):
    """One item's replicates and its place in the ranking. There is no flag: replicates rank."""

    item_id: str
    canonical_right: int
    canonical_asked: int
    reworded_right: int
    reworded_asked: int
    suspicion: float = Field(ge=0.0, le=1.0)
    rank: int | None
    """None without suspicion."""


class ReplicatedInflation(Frozen):
    """Score inflation where wordings were asked several times."""

    null_hypothesis: str = NULL_HYPOTHESIS
    n_items: int
    n_wordings: int
    """Most rewordings of an item."""
    n_replicates: int
    """Most answers to a wording."""
    score_inflation: Estimate
    """D in percentage points."""
    contamination_score: Estimate
    p_value: float
    """The larger of the two below, as in the perturbation channel."""
    p_exchangeability: float
    p_exchangeability_method: str
    p_studentised: float
    minimum_detectable_points: float
    items: tuple[RankedItem, ...]
    """Most suspected first."""


def replicated_inflation(answers: ReplicatedAnswers, *, level: float, alpha: float) -> ReplicatedInflation:
    """Estimate D and the Contamination Score, test them, and rank the items.

    Null hypothesis: `NULL_HYPOTHESIS`. Assumes independent items; nothing about the dependence of replicates on each
    other. Without an item the estimates are undefined and p is 1.
    """
    clusters = Clusters.single(answers.n)
    differences, canonical = answers.differences, answers.canonical_share
    exact = wording_exchangeability(answers.right, answers.asked)
    studentised = clustered_test(differences, clusters)
    sums = PairSums(
        float(answers.n),
        float(differences.sum()),
        float(canonical.sum()),
        float((differences**2).sum()),
        float((differences * canonical).sum()),
    )
    return ReplicatedInflation(
        n_items=answers.n,
        n_wordings=int(answers.wordings.max(initial=0)),
        n_replicates=int(answers.asked.max(initial=0)),
        score_inflation=clustered_score_inflation(differences, canonical, clusters, level),
        contamination_score=clustered_contamination_score(differences, canonical, clusters, level),
        p_value=max(exact.p_value, studentised),
        p_exchangeability=exact.p_value,
        p_exchangeability_method=exact.method,
        p_studentised=studentised,
        minimum_detectable_points=100 * minimum_detectable_inflation(sums, alpha=alpha),
        items=ranked_replicates(answers),
    )


def ranked_replicates(answers: ReplicatedAnswers) -> tuple[RankedItem, ...]:
    """Items by `leaked_posterior` over shares, most suspected first; ties by difference, then by id."""
    if answers.n == 0:
        return ()
    canonical, wordings, differences = answers.canonical_share, answers.wordings, answers.differences
    # Rounding lets equal shares of unequal counts (2/4, 3/6) be one pattern whatever the order of addition.
    rows = np.column_stack([canonical, np.round(answers.shares[:, 1:].sum(axis=1), 9), wordings])
    patterns, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    posterior = leaked_posterior(
        counts.astype(np.int64), patterns[:, 0], patterns[:, 1], patterns[:, 2].astype(np.int64)
    )
    scores = np.where(differences > 0, posterior[inverse.ravel()], 0.0).tolist()
    order = sorted(range(answers.n), key=lambda i: (-scores[i], -differences[i], answers.item_ids[i]))
    return tuple(
        RankedItem(
            item_id=answers.item_ids[i],
            canonical_right=int(answers.right[i, 0]),
            canonical_asked=int(answers.asked[i, 0]),
            reworded_right=int(answers.right[i, 1:].sum()),
            reworded_asked=int(answers.asked[i, 1:].sum()),
            suspicion=scores[i],
            rank=place if scores[i] > 0 else None,
        )
        for place, i in enumerate(order, start=1)
    )
