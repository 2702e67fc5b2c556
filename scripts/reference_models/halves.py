"""The benchmark in two halves of one distribution: one that leaks, reworded, and a pool that is held out."""

from __future__ import annotations

from typing import NamedTuple

from reference_models.facts import World


class Halves(NamedTuple):
    """Places of items in their world: every other known, leaked and never seen item goes to either half."""

    benchmark: tuple[int, ...]
    fresh: tuple[int, ...]
    seen: tuple[int, ...]
    """The leaked items of the benchmark's half, from rewordings of which the third model has learned."""

    @classmethod
    def of(cls, world: World) -> Halves:
        """Cut a world in two."""
        groups = (world.known, world.leaked, world.unseen)
        first, second = ([place for group in groups for place in group[start::2]] for start in (0, 1))
        return cls(tuple(sorted(first)), tuple(sorted(second)), tuple(world.leaked[::2]))
