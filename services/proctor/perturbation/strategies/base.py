"""What a strategy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, Self

from proctor.domain.item import Item
from proctor.domain.strategies import NamedStrategy
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.candidate import Rewrite
from proctor.perturbation.strategies.model.calls import ModelRewrite
from proctor.text.invariants import CHECKS

#: All that a strategy can declare to preserve.
EVERYTHING: Final = frozenset(CHECKS) | {"options", "target"}


class Strategy(NamedStrategy, ABC):
    """A way to reword items.

    A strategy only proposes; what it proposes is admitted, or not, by the gate.
    """

    preserves: ClassVar[frozenset[str]] = frozenset()
    """What every rewrite leaves as it is: answer invariants of `text.invariants.CHECKS`, `options`, `target`.

    Options are the item's in some order; the target is still the right answer. Names that a rewrite declares in its
    provenance as renamed count as kept.
    """

    @classmethod
    def of(cls, settings: PerturbationSection) -> Self:
        """The strategy for a suite's settings.

        Raises:
            BadInputError: when the settings lack something that it needs.
        """
        return cls()

    @abstractmethod
    def data_digest(self, item: Item) -> str:
        """Version of the method and digest of the data behind this item's rewrites: part of the library's key."""

    @abstractmethod
    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite | ModelRewrite]:
        """At most `limit` alternatives, each another, in an order that the seed and the item's content decide."""

    @abstractmethod
    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Why there is no rewrite of this item: a reason code and a sentence."""
