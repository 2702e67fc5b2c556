"""Samples of paired answers: drawn, simulated and written out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from proctor.domain.estimate import Estimate
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.replicated_answers import ReplicatedAnswers


def ends(estimate: Estimate) -> tuple[float, float]:
    """The bounds of an interval that has both."""
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def paired(canonical: Sequence[int], right: Sequence[int], total: Sequence[int]) -> PairedAnswers:
    """Items named by their place."""
    return PairedAnswers.of(
        [f"item-{i:05d}" for i in range(len(canonical))], [bool(c) for c in canonical], right, total
    )


def sample(
    rng: np.random.Generator, chances: npt.NDArray[np.float64], *, variants: int, leaked: float = 0.0
) -> PairedAnswers:
    """Answers that are independent given each item's chance; leaked items are right in canonical form."""
    n = chances.size
    canonical = rng.random(n) < np.where(rng.random(n) < leaked, 0.99, chances)
    return paired(canonical.tolist(), rng.binomial(variants, chances).tolist(), [variants] * n)


def consistent(
    rng: np.random.Generator, n: int, *, variants: int, leaked: float = 0.0, known: float = 0.75, noise: float = 0.01
) -> PairedAnswers:
    """A model that knows an item or does not; leaked items are among those that it does not know."""
    kind = rng.random(n)
    reworded = np.where(kind < known, 1 - noise, noise)
    canonical = np.where((kind >= known) & (kind < known + leaked), 0.99, reworded)
    return paired((rng.random(n) < canonical).tolist(), rng.binomial(variants, reworded).tolist(), [variants] * n)


def samples(*, min_items: int = 0, max_items: int = 60) -> st.SearchStrategy[PairedAnswers]:
    """Any sample, with differing numbers of variants."""
    row = st.integers(1, 5).flatmap(lambda t: st.tuples(st.integers(0, 1), st.integers(0, t), st.just(t)))
    return st.lists(row, min_size=min_items, max_size=max_items).map(
        lambda rows: paired([c for c, _, _ in rows], [r for _, r, _ in rows], [t for *_, t in rows])
    )


def replicated(answers: PairedAnswers) -> ReplicatedAnswers:
    """Answers to wordings that were asked once each, as replicates of one."""
    places = np.arange(int(answers.total.max(initial=1)))
    return ReplicatedAnswers(
        answers.item_ids,
        np.column_stack([answers.canonical, places < answers.right[:, None]]).astype(np.int64),
        np.column_stack([np.ones(answers.n), places < answers.total[:, None]]).astype(np.int64),
        answers.excluded,
    )
