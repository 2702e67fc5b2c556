"""Families of simulated models: how right answers come about, clean and contaminated.

What a test finds depends on how a model's answers vary from wording to wording, which nobody knows before the audit.
So error rates, power and approval chances are given for each of these families, from answers that are the same in
every wording to answers that are a coin of their own each time. Every statistic that is published with Proctor was
calibrated on them (`scripts/calibrate_evidence.py`), and `proctor audit plan` names the one that it assumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from proctor.evidence.answers import BoolArray, FloatArray, IntArray

#: Chance that a memorised canonical wording is answered right.
RECALL: Final = 0.98
#: A consistent answerer's slip, either way.
NOISE: Final = 0.01
#: Share of items that a consistent answerer or a guesser knows.
KNOWN: Final = 0.75
#: Chance that a guess among four options is right.
GUESS: Final = 0.25
#: Concentration of the reworded chance around the canonical one where rewordings share an item's luck: of a pair of
#: rewordings, a third of the variance is shared.
SHARED_LUCK: Final = 2.0


class Dependence(StrEnum):
    """How an item's reworded answers hang together, given the item's chance."""

    INDEPENDENT = "independent"
    SHARED_LUCK = "shared_luck"
    """All rewordings of an item have one chance, drawn around the canonical one: Beta(2θ, 2(1 − θ))."""
    TOGETHER = "together"
    """All rewordings of an item are right, or all wrong."""


class Simulated(NamedTuple):
    """Answers of simulated audits, one a row, one column an item."""

    canonical: BoolArray
    """Shape (audits, items)."""
    right: IntArray
    """Right ones among the reworded answers, shape (audits, items)."""
    leaked: BoolArray
    """Planted truth, shape (audits, items)."""


class Family(NamedTuple):
    """A way in which answers come about. An item's chance is Beta(a, b), or that of a known or an unknown item."""

    name: str
    title: str
    beta: tuple[float, float] | None = None
    unknown_chance: float | None = None
    """Chance of an item that the model does not know, in families of known and unknown items; these leak there."""
    dependence: Dependence = Dependence.INDEPENDENT

    @property
    def accuracy(self) -> float:
        """Mean accuracy of the clean model."""
        if self.beta is not None:
            return self.beta[0] / sum(self.beta)
        assert self.unknown_chance is not None
        return KNOWN * (1 - NOISE) + (1 - KNOWN) * self.unknown_chance

    def inflation(self, leaked_share: float, *, cost: float = 0.0) -> float:
        """True score inflation D, as a fraction, with this share of all items leaked and this cost of a rewording."""
        otherwise = self.accuracy if self.unknown_chance is None else self.unknown_chance
        return leaked_share * (RECALL - otherwise) + cost

    def draw(
        self,
        rng: np.random.Generator,
        *,
        audits: int,
        items: int,
        variants: int,
        leaked_share: float = 0.0,
        cost: float = 0.0,
    ) -> Simulated:
        """Simulate audits of models of this family.

        Args:
            rng: source of randomness.
            audits: number of simulated audits.
            items: items of each.
            variants: rewordings of each item.
            leaked_share: expected share of all items whose canonical wording was memorised (right with RECALL).
            cost: accuracy (a fraction) that a rewording costs a clean model, for it is harder; in proportion to an
                item's chance, so that the mean falls by just this.

        Raises:
            ValueError: where more items leak than can, or a rewording costs more than the accuracy.
        """
        if not 0 <= cost <= self.accuracy:
            raise ValueError(f"a rewording cannot cost {cost!r} of an accuracy of {self.accuracy:g}")
        can_leak = 1.0 if self.unknown_chance is None else 1 - KNOWN
        if not 0 <= leaked_share <= can_leak:
            raise ValueError(f"a share of {leaked_share!r} leaked is not between 0 and {can_leak:g}")
        shape = (audits, items)
        if self.beta is not None:
            chance: FloatArray = rng.beta(*self.beta, size=shape)
            may_leak: BoolArray = np.ones(shape, dtype=np.bool_)
        else:
            assert self.unknown_chance is not None
            may_leak = rng.random(shape) >= KNOWN
            chance = np.where(may_leak, self.unknown_chance, 1 - NOISE)
        leaked = may_leak & (rng.random(shape) < leaked_share / can_leak)
        canonical = rng.random(shape) < np.where(leaked, RECALL, chance)
        return Simulated(canonical, self._reworded(rng, chance * (1 - cost / self.accuracy), variants), leaked)

    def _reworded(self, rng: np.random.Generator, chance: FloatArray, variants: int) -> IntArray:
        if self.dependence is Dependence.TOGETHER:
            return variants * (rng.random(chance.shape) < chance).astype(np.int64)
        if self.dependence is Dependence.SHARED_LUCK:
            # Beta's parameters must be above 0; a chance of exactly 0 or 1 stays there for all that anyone can see.
            inside = np.clip(chance, 1e-9, 1 - 1e-9)
            chance = rng.beta(SHARED_LUCK * inside, SHARED_LUCK * (1 - inside))
        right: IntArray = rng.binomial(variants, chance)
        return right


def _by_name(*families: Family) -> Mapping[str, Family]:
    return MappingProxyType({family.name: family for family in families})


FAMILIES: Final = _by_name(
    Family("consistent", "consistent answerers (75 % known, 1 % noise)", unknown_chance=NOISE),
    Family("guessers", "guessers (75 % known, the rest guessed among four)", unknown_chance=GUESS),
    Family("beta_2_1", "every answer a coin of its own, Beta(2, 1)", beta=(2.0, 1.0)),
    Family("beta_1_1", "every answer a coin of its own, Beta(1, 1)", beta=(1.0, 1.0)),
    Family("beta_4_1", "every answer a coin of its own, Beta(4, 1)", beta=(4.0, 1.0)),
    Family("beta_half_quarter", "near-deterministic coins, Beta(0.5, 0.25)", beta=(0.5, 0.25)),
    Family(
        "shared_luck",
        "rewordings that share an item's luck, Beta(1, 1)",
        beta=(1.0, 1.0),
        dependence=Dependence.SHARED_LUCK,
    ),
    Family("together", "rewordings that flip together, Beta(1, 1)", beta=(1.0, 1.0), dependence=Dependence.TOGETHER),
)
