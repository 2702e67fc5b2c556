"""What the report says of the rewordings: how many were admitted and turned away, and which each item got."""

from __future__ import annotations

import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.manifest import VariantSet
from proctor.scorer.report.document import (
    MAX_ITEMS_LISTED,
    MAX_LISTED_TEXT_CHARACTERS,
    MAX_REWORDINGS_LISTED,
    ItemVariants,
    LeftOut,
    ListedVariant,
    Spread,
    VariantsSummary,
    excerpt,
)

VariantsByItem = Mapping[str, Sequence[Variant]]


class Rewordings(NamedTuple):
    """What one pass over an audit's variants leaves of them: counts and measurements, and the variants to show."""

    by_strategy: Counter[str]
    item_ids: frozenset[str]
    """The items that have a variant."""
    semantic_distances: Sequence[float]
    token_overlaps: Sequence[float]
    edit_distances: Sequence[float]
    containments: Sequence[float]
    """Of the variants of which it was measured."""
    shown: VariantsByItem
    """The variants of the items that are to be shown, each item's weakest level first."""


def gather_rewordings(variants: Iterable[Variant], shown: Collection[str]) -> Rewordings:
    """Go through all variants once, and keep those of the items `shown`.

    They stand by content, not by arrival: a warm library hands variants out in another order than a cold one makes
    them.
    """
    by_strategy, item_ids, kept = Counter[str](), set[str](), defaultdict[str, list[Variant]](list)
    distances, overlaps, edits, containments = (array("d") for _ in range(4))
    for variant in variants:
        by_strategy[variant.strategy] += 1
        item_ids.add(variant.item_id)
        measured = variant.measurements
        distances.append(measured.semantic_distance)
        overlaps.append(measured.token_overlap)
        edits.append(measured.edit_distance)
        if measured.containment is not None:
            containments.append(measured.containment)
        if variant.item_id in shown:
            kept[variant.item_id].append(variant)
    ordered = {
        item_id: sorted(group, key=lambda variant: (variant.level, variant.strategy, variant.variant_id))
        for item_id, group in kept.items()
    }
    return Rewordings(by_strategy, frozenset(item_ids), distances, overlaps, edits, containments, ordered)


def variants_summary(
    strategy: str,
    items: Sequence[Item],
    made: VariantSet,
    rewordings: Rewordings,
    left_out: tuple[LeftOut, ...],
) -> VariantsSummary:
    """Lay out what the perturbation service made of the selected items.

    Args:
        items: the selected items, in the order in which they were drawn.
        made: what is known beside the variants; they themselves are not looked at.
        rewordings: the variants, with those of the first MAX_ITEMS_LISTED items among the shown.
        left_out: the items that took no part in the perturbation evidence.
    """
    listed = _listed(items, rewordings.shown, made.rejections)
    return VariantsSummary(
        strategy=strategy,
        encoder=made.encoder,
        admitted=rewordings.by_strategy.total(),
        admitted_by_strategy=dict(rewordings.by_strategy),
        items_with_variants=len(rewordings.item_ids),
        rejected=dict(Counter(rejection.reason for rejection in made.rejections)),
        semantic_distance=_spread(rewordings.semantic_distances),
        token_overlap=_spread(rewordings.token_overlaps),
        edit_distance=_spread(rewordings.edit_distances),
        containment=_spread(rewordings.containments),
        items_left_out=left_out,
        items=listed,
        items_not_listed=len(items) - len(listed),
        answering_check=made.check,
    )


def _listed(
    items: Sequence[Item], by_item: VariantsByItem, rejections: Iterable[Rejection]
) -> tuple[ItemVariants, ...]:
    """The first items, each with all of its variants, until a limit is reached."""
    rejected: dict[str, Counter[str]] = defaultdict(Counter)
    for rejection in rejections:
        rejected[rejection.item_id][rejection.reason] += 1
    rows: list[ItemVariants] = []
    room = MAX_REWORDINGS_LISTED
    for item in items[:MAX_ITEMS_LISTED]:
        variants = by_item.get(item.item_id, ())
        room -= len(variants)
        # An item is listed whole or not at all: part of its variants would read as all of them.
        if room < 0:
            break
        rows.append(
            ItemVariants(
                item_id=item.item_id,
                question=excerpt(item.question, max_characters=MAX_LISTED_TEXT_CHARACTERS),
                variants=tuple(_row(variant) for variant in variants),
                rejected=dict(rejected.get(item.item_id, ())),
            )
        )
    return tuple(rows)


def _row(variant: Variant) -> ListedVariant:
    return ListedVariant(
        variant_id=variant.variant_id,
        strategy=variant.strategy,
        level=variant.level,
        measurements=variant.measurements,
        labels=variant.labels,
        question=excerpt(variant.question, max_characters=MAX_LISTED_TEXT_CHARACTERS),
    )


def _spread(values: Iterable[float]) -> Spread | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(low=ordered[0], median=statistics.median(ordered), high=ordered[-1])
