"""Items and variants of an audit in the artifact store, in chunks that are read one at a time.

An audit of a million trials is planned and graded chunk by chunk, so that the memory of the services that do it stays
what one chunk takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from proctor.domain.item import Item, Variant
from proctor.domain.manifest import CHUNK_ITEMS, ItemIndex, ItemSet, VariantChunk, VariantIndex, VariantSet
from proctor.runtime.artifacts import ArtifactStore, get_model, put_model


def put_items(store: ArtifactStore, items: ItemSet) -> str:
    """Store items in chunks, and return the digest of their ItemIndex."""
    starts = range(0, len(items.items), CHUNK_ITEMS)
    chunks = tuple(put_model(store, ItemSet(items=items.items[start : start + CHUNK_ITEMS])) for start in starts)
    return put_model(store, ItemIndex(n_items=len(items.items), chunks=chunks))


def each_item(store: ArtifactStore, digest: str) -> Iterator[Item]:
    """The items of an ItemIndex in order, a chunk in memory at a time."""
    for chunk in get_model(store, digest, ItemIndex).chunks:
        yield from get_model(store, chunk, ItemSet).items


def get_items(store: ArtifactStore, digest: str) -> ItemSet:
    """All items of an ItemIndex."""
    return ItemSet(items=tuple(each_item(store, digest)))


def put_variants(store: ArtifactStore, items: str, made: VariantSet) -> str:
    """Store variants beside the items that they reword, and return the digest of their VariantIndex.

    Args:
        items: digest of the ItemIndex.
        made: the variants, in any order; those of an item keep theirs.
    """
    by_item: dict[str, list[Variant]] = {}
    for variant in made.variants:
        by_item.setdefault(variant.item_id, []).append(variant)
    chunks = []
    for chunk in get_model(store, items, ItemIndex).chunks:
        of_chunk = (by_item.get(item.item_id, ()) for item in get_model(store, chunk, ItemSet).items)
        chunks.append(put_model(store, VariantChunk(variants=tuple(one for several in of_chunk for one in several))))
    return put_model(
        store,
        VariantIndex(
            n_variants=len(made.variants),
            n_items_with_variants=len(by_item),
            chunks=tuple(chunks),
            summary=put_model(store, made.model_copy(update={"variants": ()})),
            rewordings_digest=made.rewordings_digest,
        ),
    )


def get_variants(store: ArtifactStore, digest: str) -> VariantSet:
    """All variants of a VariantIndex, in the order of the items."""
    index = get_model(store, digest, VariantIndex)
    variants = tuple(one for chunk in index.chunks for one in get_model(store, chunk, VariantChunk).variants)
    return get_model(store, index.summary, VariantSet).model_copy(update={"variants": variants})
