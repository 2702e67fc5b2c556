"""The same options in another order. The target follows, because it is held as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from proctor.domain.item import Item
from proctor.perturbation.candidate import Draft, Rewrite, seeded_rank
from proctor.perturbation.strategies.base import EVERYTHING, Strategy


class OptionShuffle(Strategy):
    """Orders drawn uniformly and without replacement from all orders but the canonical one.

    Together with a canonical order that was itself drawn at random, the orders of an item are exchangeable.
    """

    name = "option_shuffle"
    preserves = EVERYTHING

    def data_digest(self, item: Item) -> str:
        """The method's version; it draws on no data but the item."""
        return "option_shuffle/1"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite]:
        """Other orders of the item's options."""
        return [_reorder(order) for order in self.orders(item, seed=seed, limit=limit)]

    def orders(self, item: Item, *, seed: int, limit: int) -> list[tuple[str, ...]]:
        """At most `limit` orders, each different from the canonical one and from the others."""
        if len(item.choices) < 2:
            return []
        available = _distinct_orders(item.choices) - 1
        wanted = min(limit, available)
        seen = {item.choices}
        orders: list[tuple[str, ...]] = []
        key = item.content_hash
        for draw in count():
            if len(orders) == wanted:
                break
            order = _permuted(item.choices, int.from_bytes(seeded_rank("option_shuffle", seed, key, draw)))
            if order not in seen:
                seen.add(order)
                orders.append(order)
        return orders

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Only multiple-choice items have options to shuffle."""
        return "no_options", "the item has no options to shuffle"


def _reorder(order: tuple[str, ...]) -> Rewrite:
    def apply(draft: Draft) -> Draft:
        return replace(draft, choices=order)

    return apply


def _distinct_orders(choices: Sequence[str]) -> int:
    """Number of different orders; options with the same text are interchangeable."""
    orders = math.factorial(len(choices))
    for option in set(choices):
        orders //= math.factorial(choices.count(option))
    return orders


def _permuted(choices: Sequence[str], number: int) -> tuple[str, ...]:
    """The permutation of a number, by its factorial digits. 256 random bits are uniform over 26! orders to 2**-168."""
    left = list(choices)
    order = []
    for size in range(len(left), 0, -1):
        number, index = divmod(number, size)
        order.append(left.pop(index))
    return tuple(order)
