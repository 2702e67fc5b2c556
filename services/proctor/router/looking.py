"""The looks of a sequential audit as the router has them: which items come before each, and what was asked by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from proctor.domain.item import Item
from proctor.domain.looks import LookItems, LooksSoFar
from proctor.domain.manifest import (
    AnsweredShard,
    AuditManifest,
    ControlAsked,
    DeadShard,
    ItemIndex,
    ItemSet,
)
from proctor.domain.suite_design import DesignSection
from proctor.evidence.sequential.item_order import cut_at, look_sizes
from proctor.router.inputs import AuditInputs
from proctor.router.stages.outcome import StageOutcome
from proctor.runtime.artifacts.chunks import joined_variants, put_items
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model


def looks_of(
    design: DesignSection,
    items: Sequence[Item],
    fresh: Sequence[Item] | None,
    control: Sequence[Item] | None,
    store: ArtifactStore,
) -> tuple[LookItems, ...]:
    """Cut an audit's items into what is asked before each look, and store that; empty for a fixed design.

    Items of a cluster stay together, so that a look may have a few more or fewer than its share. Fresh items and
    control items come in the same shares.

    Args:
        design: the suite's.
        items: of the benchmark, in the order in which they are asked.
        fresh: in order; None where none are asked.
        control: the same.
        store: where they go.
    """
    if not design.sequential:
        return ()
    parts = [part for part in cut_at(items, [size / len(items) for size in look_sizes(design, len(items))]) if part]
    shares = [size / len(items) for size in accumulate(map(len, parts))]

    def stored(others: Sequence[Item] | None) -> list[str | None]:
        if others is None:
            return [None] * len(parts)
        return [put_items(store, ItemSet(items=part)) for part in cut_at(others, shares)]

    columns = zip(parts, stored(items), stored(fresh), stored(control), strict=True)
    return tuple(
        LookItems(n_items=len(part), items=own or "", fresh=beside, control=controls)
        for part, own, beside, controls in columns
    )


class AskedSoFar(NamedTuple):
    """All that was asked of the audited model until a stage's end, by digest."""

    items: str
    variants: str
    answered: tuple[AnsweredShard, ...]
    dead: tuple[DeadShard, ...]
    fresh: str | None
    control: ControlAsked | None
    looks: LooksSoFar | None


def asked_so_far(store: ArtifactStore, inputs: AuditInputs, outcome: StageOutcome) -> AskedSoFar:
    """What the stage that has ended brought, with what the looks before it had."""
    assert inputs.variants is not None
    now, control = inputs.asked_now, None
    if now.control is not None and inputs.control_variants is not None:
        control = ControlAsked(items=now.control, variants=inputs.control_variants)
    alone = AskedSoFar(now.items, inputs.variants, outcome.answered, outcome.dead, now.fresh, control, None)
    if not inputs.looks:
        return alone
    seen = tuple(looked.seen for looked in inputs.looked)
    alone = alone._replace(looks=LooksSoFar(sizes=_sizes(inputs.looks), seen=seen))
    if not inputs.looked:
        return alone
    earlier = get_model(store, inputs.looked[-1].manifest, AuditManifest)
    return AskedSoFar(
        items=_joined_items(store, (earlier.items, now.items)),
        variants=joined_variants(store, (earlier.variants, inputs.variants)),
        answered=earlier.answered + outcome.answered,
        dead=earlier.dead + outcome.dead,
        fresh=_joined(store, earlier.fresh, now.fresh),
        control=_joined_control(store, earlier.control, control),
        looks=alone.looks,
    )


def _sizes(looks: Iterable[LookItems]) -> tuple[int, ...]:
    return tuple(accumulate(look.n_items for look in looks))


def _joined(store: ArtifactStore, earlier: str | None, now: str | None) -> str | None:
    return _joined_items(store, [one for one in (earlier, now) if one is not None]) if earlier or now else None


def _joined_items(store: ArtifactStore, digests: Sequence[str]) -> str:
    indexes = [get_model(store, digest, ItemIndex) for digest in digests]
    chunks = tuple(chunk for index in indexes for chunk in index.chunks)
    return put_model(store, ItemIndex(n_items=sum(index.n_items for index in indexes), chunks=chunks))


def _joined_control(
    store: ArtifactStore, earlier: ControlAsked | None, now: ControlAsked | None
) -> ControlAsked | None:
    both = [one for one in (earlier, now) if one is not None]
    if not both:
        return None
    items = _joined_items(store, [one.items for one in both])
    return ControlAsked(items=items, variants=joined_variants(store, [one.variants for one in both]))
