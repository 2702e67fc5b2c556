"""What a strategy is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from proctor.domain.item import Item
from proctor.perturbation.candidate import Rewrite
from proctor.perturbation.strategies.model.calls import ModelRewrite
from proctor.text.invariants import CHECKS

#: All that a strategy can declare to preserve.
EVERYTHING: Final = frozenset(CHECKS) | {"options", "target"}


class Strategy(Protocol):
    """A way to reword items.

    A strategy only proposes; what it proposes is admitted, or not, by the gate.
    """

    @property
    def name(self) -> str:
        """The name under which suites ask for it."""
        ...

    @property
    def preserves(self) -> frozenset[str]:
        """What every rewrite leaves as it is: answer invariants of `text.invariants.CHECKS`, `options`, `target`.

        Options are the item's in some order; the target is still the right answer. Names that a rewrite declares in
        its provenance as renamed count as kept.
        """
        ...

    def data_digest(self, item: Item) -> str:
        """Version of the method and digest of the data behind this item's rewrites: part of the library's key."""
        ...

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite | ModelRewrite]:
        """At most `limit` alternatives, each another, in an order that the seed and the item's content decide."""
        ...

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Why there is no rewrite of this item: a reason code and a sentence."""
        ...
