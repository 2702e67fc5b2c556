"""What the report says of the rewordings: how many were admitted and turned away, and which each item got."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.manifest import VariantSet
from proctor.scorer.report import (
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


def variants_by_item(variants: Iterable[Variant]) -> VariantsByItem:
    """Each item's variants, weakest level first.

    They stand by content, not by arrival: a warm library hands variants out in another order than a cold one makes
    them.
    """
    grouped: dict[str, list[Variant]] = defaultdict(list)
    for variant in variants:
        grouped[variant.item_id].append(variant)
    return {
        item_id: sorted(group, key=lambda variant: (variant.level, variant.strategy, variant.variant_id))
        for item_id, group in grouped.items()
    }


def variants_summary(
    strategy: str,
    items: Sequence[Item],
    made: VariantSet,
    by_item: VariantsByItem,
    left_out: tuple[LeftOut, ...],
) -> VariantsSummary:
    """Lay out what the perturbation service made of the selected items.

    Args:
        items: the selected items, in the order in which they were drawn.
        by_item: `made.variants`, as `variants_by_item` groups them.
        left_out: the items that took no part in the perturbation evidence.
    """
    measured = [variant.measurements for variant in made.variants]
    listed = _listed(items, by_item, made.rejections)
    return VariantsSummary(
        strategy=strategy,
        encoder=made.encoder,
        admitted=len(made.variants),
        admitted_by_strategy=dict(Counter(variant.strategy for variant in made.variants)),
        items_with_variants=len(by_item),
        rejected=dict(Counter(rejection.reason for rejection in made.rejections)),
        semantic_distance=_spread(m.semantic_distance for m in measured),
        token_overlap=_spread(m.token_overlap for m in measured),
        edit_distance=_spread(m.edit_distance for m in measured),
        containment=_spread(_containments(measured)),
        items_left_out=left_out,
        items=listed,
        items_not_listed=len(items) - len(listed),
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


def _containments(measured: Iterable[Measurements]) -> Iterable[float]:
    return (m.containment for m in measured if m.containment is not None)


def _spread(values: Iterable[float]) -> Spread | None:
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(low=ordered[0], median=statistics.median(ordered), high=ordered[-1])
