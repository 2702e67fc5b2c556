"""An item on its way to its variants: what was tried, what came of it, and what the model must still be asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.trial import Trial
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.library.store import Outcome
from proctor.perturbation.strategies.compose import Proposal
from proctor.perturbation.strategies.model.replies import MODEL_FAILED, REPEATED


class Attempts:
    """The attempts at one item, taken as many at a time as variants are missing.

    Args:
        item: the item.
        proposals: its attempts in order, none of which is made before it is taken.
        wanted: variants that are enough.
    """

    def __init__(self, item: Item, proposals: Iterator[Proposal], wanted: int) -> None:
        self.item = item
        self.variants: list[Variant] = []
        self.rejections: list[Rejection] = []
        self.distances: list[float] = []
        self.needed: list[Trial] = []
        self._proposals = proposals
        self._wanted = wanted
        self._tried = 0
        self._exhausted = False

    def take(self) -> list[Candidate | Rejection]:
        """The next attempts, as many as variants are missing; none when the model must be asked for one of them first.

        An item waits as a whole, so that its candidates are weighed in their order however the answers come in. Once
        all of them only repeat what was said before, nothing new is expected, and no further one is asked for.
        """
        missing = self._wanted - len(self.variants)
        taken = list(islice(self._proposals, missing))
        self._tried += len(taken)
        repeated = all(isinstance(one, Rejection) and one.reason == REPEATED for one in taken)
        self._exhausted = len(taken) < missing or repeated
        self.needed = [one for one in taken if isinstance(one, Trial)]
        return [] if self.needed else [one for one in taken if not isinstance(one, Trial)]

    @property
    def goes_on(self) -> bool:
        """Whether variants are missing, attempts left, and nothing has to be asked first."""
        return len(self.variants) < self._wanted and not self._exhausted and not self.needed

    @property
    def came_to_nothing(self) -> bool:
        """Whether there was not one attempt to make."""
        return self._tried == 0

    @property
    def settled(self) -> bool:
        """Whether the outcome is the item's for good: a model's failure passes, and must not be kept in its place."""
        failed = any(rejection.reason == MODEL_FAILED for rejection in self.rejections)
        return not failed or len(self.variants) >= self._wanted

    @property
    def outcome(self) -> Outcome:
        """What has come of the item."""
        return Outcome(
            variants=tuple(self.variants), rejections=tuple(self.rejections), distances=tuple(self.distances)
        )
