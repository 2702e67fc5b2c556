"""How the worker slots of a deployment are shared between the pools that have work. Pure.

A message occupies a slot for as long as its servers take, and what waits in the queue occupies the next that comes
free. So it is bounded what a pool may have outstanding, and of a slow one nothing waits while another has work: a quick
one would wait behind it.
"""

from __future__ import annotations

from collections.abc import Mapping


def shares(slots: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """Slots of each pool: as many for each, but no more than it wants; what it leaves goes to the others.

    Each has one at least, however few there are. What cannot be divided evenly goes to the first by name, so that all
    routers divide alike.

    Args:
        slots: worker slots that live.
        wanted: pool → packs that it has outstanding or could have, at least one.
    """
    shared = dict.fromkeys(sorted(wanted), 1)
    left = slots - len(shared)
    while left > 0 and (thirsty := [pool for pool, share in shared.items() if share < wanted[pool]]):
        # All rise together, until the first has what it wants; in the end it is not enough for each of them.
        rise = min(left // len(thirsty), *(wanted[pool] - shared[pool] for pool in thirsty))
        for pool in thirsty[: None if rise else left]:
            shared[pool] += rise or 1
            left -= rise or 1
    return shared


def outstanding(slots: int, pool: str, others: Mapping[str, int], *, quick: bool) -> int:
    """Packs that a pool may have outstanding.

    Alone it may use every slot. Where a pack is known to take no longer than it should, another waits behind each, so
    that no slot idles. Otherwise none does, but for a worker's single slot: whoever comes later then waits for no more
    than what is under way. Beside others it has its share, and nothing waits.

    Args:
        slots: worker slots that live; without any that announced itself there is one.
        others: pools that have work too → packs that they want.
        quick: whether a pack is known to take no longer than it should.
    """
    slots = max(1, slots)
    if not others:
        return 2 * slots if quick else max(2, slots)
    return shares(slots, {**others, pool: slots})[pool]
