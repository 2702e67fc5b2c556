"""In which order items are asked, and where that order is cut into looks, so that each look is a random sample."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

from proctor.domain.canonical import canonical_json
from proctor.domain.item import Item
from proctor.domain.suite_design import DesignSection


def in_clusters(items: Sequence[Item], seed: int) -> tuple[Item, ...]:
    """Items of a cluster one after the other, and the clusters in an order that the seed draws.

    Clusters are drawn, whatever their size: by their first item a large one would come early. Items without a cluster
    are one of their own. Where no item has one the order stays what it is, which is drawn already.

    Args:
        items: in the order in which they were drawn.
        seed: of the sample.
    """
    if all(item.cluster is None for item in items):
        return tuple(items)
    ranks = {item.item_id: _rank(seed, item) for item in items}
    return tuple(sorted(items, key=lambda item: ranks[item.item_id]))


def look_sizes(design: DesignSection, n_items: int) -> tuple[int, ...]:
    """How many of `n_items` each look is to have, ascending; looks without a further item are left out."""
    if not design.sequential:
        return (n_items,)
    wanted = (max(1, round(share * n_items)) for share in design.looks)
    return tuple(dict.fromkeys(wanted))


def cut_at(items: Sequence[Item], shares: Sequence[float]) -> list[tuple[Item, ...]]:
    """Cut items where each share of them ends, ascending, the last 1; a cluster is never cut.

    A cut that falls into a cluster moves to its nearer end, so that a part may be empty.
    """
    ends = [0]
    for share in shares[:-1]:
        ends.append(max(ends[-1], _nearest_end(items, round(share * len(items)))))
    ends.append(len(items))
    return [tuple(items[begin:end]) for begin, end in pairwise(ends)]


def _nearest_end(items: Sequence[Item], place: int) -> int:
    before = after = place
    while 0 < before < len(items) and _together(items[before - 1], items[before]):
        before -= 1
    while 0 < after < len(items) and _together(items[after - 1], items[after]):
        after += 1
    return before if place - before < after - place else after


def _together(one: Item, other: Item) -> bool:
    return one.cluster is not None and one.cluster == other.cluster


def _rank(seed: int, item: Item) -> tuple[bytes, bytes]:
    own = _hash(["look", seed, "item", item.item_id])
    return (own, own) if item.cluster is None else (_hash(["look", seed, "cluster", item.cluster]), own)


def _hash(key: list[object]) -> bytes:
    return hashlib.sha256(canonical_json(key)).digest()
