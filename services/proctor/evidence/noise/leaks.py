"""What routers give away of the answer, and how far a reader without any model gets on their messages alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from proctor.domain.evidence import RouterLeaks
from proctor.domain.routing import Condition
from proctor.evidence.clusters import clustered_share, clusters_among
from proctor.evidence.intervals import wilson


class Reading(NamedTuple):
    """What can be read off the messages of one condition's routers about one item, as texts of options."""

    stated: Sequence[str | None]
    """The option that each message states as the answer; None where it states none."""
    together: str | None
    """The option that a reader takes from all of them; None where they do not say."""


def router_leaks(
    condition: Condition,
    items: Sequence[str],
    readings: Mapping[tuple[Condition, str], Reading],
    targets: Mapping[str, str],
    level: float,
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> RouterLeaks:
    """Count what the messages of a condition state, over some items, each of which has a reading and a target.

    `clusters`: item id → its cluster, of the items that are in one.
    """
    stated = [(option, targets[item]) for item in items for option in readings[condition, item].stated]
    right = [readings[condition, item].together == targets[item] for item in items]
    groups = clusters_among(items, clusters)
    return RouterLeaks(
        arm=str(condition.arm),
        n_items=len(items),
        n_messages=len(stated),
        n_stating=sum(option is not None for option, _ in stated),
        n_right=sum(option == target for option, target in stated),
        items_given_away=sum(targets[item] in readings[condition, item].stated for item in items),
        read_off=wilson(sum(right), len(items), level)
        if groups is None
        else clustered_share(np.asarray(right, dtype=np.float64), groups, level),
    )
