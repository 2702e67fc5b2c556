"""Which items of a benchmark model after model answers in their published wording and not in others.

Every model was asked an item in its canonical wording and in V others. The null of an item: for each model, given how
many of its V + 1 wordings were answered right (T), the canonical one is among them no more often than its share,
T / (V + 1); and models err independently of each other given that. The statistic is the number of models that had the
canonical wording right, and p its exact upper tail, that of a Poisson binomial distribution: the exact permutation test
of wordings, stratified by model.

What the test cannot tell: an item whose rewordings are harder, or wrong, looks the same in every model; and models of
one family share their training, so that five of them are less than five witnesses, and p is then too small. Whoever
calls this gives one model of each family that is known as one.

Families of items are corrected for the false discovery rate (Benjamini and Hochberg 1995, Journal of the Royal
Statistical Society B 57, 289–300) over those items that could give a p of alpha or less, which depends on the T and not
on the outcome (Gilbert 2005, Applied Statistics 54, 143–158).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from proctor.evidence.answers import BoolArray, FloatArray, IntArray
from proctor.evidence.multiplicity import benjamini_hochberg

#: Of fewer models nothing is claimed of an item.
MIN_MODELS: Final = 5
#: The false discovery rate.
ALPHA: Final = 0.05


class ModelAnswers(NamedTuple):
    """What K models answered to n items; all of shape (K, n)."""

    canonical: IntArray
    """1 where the canonical wording was answered right."""
    right: IntArray
    """Rewordings that were answered right."""
    total: IntArray
    """Rewordings that were asked; 0 where the model was not asked the item."""


class ItemTable(NamedTuple):
    """The items, in the order given; all of shape (n,)."""

    models: IntArray
    """Models that were asked."""
    canonical: IntArray
    """Models that had the canonical wording right."""
    right: IntArray
    """Right rewordings, over the models."""
    total: IntArray
    """Rewordings, over the models."""
    score: FloatArray
    """Mean over the models of canonical minus the share of right rewordings; NaN where no model was asked."""
    p: FloatArray
    """NaN below MIN_MODELS."""
    q: FloatArray
    """p corrected over the family; NaN for items that are not in it, because no outcome could have made their p
    small."""

    @property
    def known(self) -> BoolArray:
        """Which items are discoveries."""
        return np.asarray(np.nan_to_num(self.q, nan=1.0) <= ALPHA)

    @property
    def family(self) -> int:
        """Items that were tested together."""
        return int(np.isfinite(self.q).sum())


def item_table(answers: ModelAnswers) -> ItemTable:
    """Test every item."""
    asked = answers.total > 0
    wordings = np.where(asked, answers.total + 1, 1)
    hits = np.where(asked, answers.canonical, 0)
    chance = np.where(asked, (answers.canonical + answers.right) / wordings, 0.0)
    models, canonical = asked.sum(axis=0), hits.sum(axis=0)
    share = np.where(asked, answers.right / np.where(asked, answers.total, 1), 0.0)
    with np.errstate(invalid="ignore"):
        score = (hits - share).sum(axis=0) / np.where(models > 0, models, np.nan)
    enough = models >= MIN_MODELS
    p = np.full(models.shape, np.nan)
    p[enough] = _upper_tail(chance[:, enough], canonical[enough])
    smallest = np.prod(np.where(chance > 0, chance, 1.0), axis=0)
    family = enough & (smallest <= ALPHA)
    q = np.full(models.shape, np.nan)
    q[family] = benjamini_hochberg(p[family])
    right, total = np.where(asked, answers.right, 0).sum(axis=0), np.where(asked, answers.total, 0).sum(axis=0)
    return ItemTable(models, canonical, right, total, score, p, q)


def _upper_tail(chance: FloatArray, at_least: IntArray) -> FloatArray:
    """P(number of successes >= at_least) of independent trials with these chances, column by column.

    Args:
        chance: shape (K, n).
        at_least: shape (n,).
    """
    n_models, n_items = chance.shape
    # Row j holds the chance of j successes so far.
    counts = np.zeros((n_models + 1, n_items))
    counts[0] = 1.0
    for number, row in enumerate(chance, start=1):
        upto = counts[: number + 1]
        upto[1:] = upto[1:] * (1.0 - row) + upto[:-1] * row
        upto[0] *= 1.0 - row
    tails = np.cumsum(counts[::-1], axis=0)[::-1]
    return np.asarray(np.clip(tails[at_least, np.arange(n_items)], 0.0, 1.0), dtype=np.float64)
