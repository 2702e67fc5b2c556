"""Items and variants of an audit in the artifact store, in chunks that are read one at a time.

An audit of a million trials is planned and graded chunk by chunk, so that the memory of the services that do it stays
what one chunk takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, overload

from proctor.domain.item import Item, Variant
from proctor.domain.manifest import (
    CHUNK_ITEMS,
    ItemIndex,
    ItemSet,
    VariantChunk,
    VariantIndex,
    VariantSet,
    rewordings_digest,
)
from proctor.runtime.artifacts.store import ArtifactStore, get_model, model_bytes, put_model

#: Items of a chunk as JSON, at most, or one item: 1,024 of a kilobyte. Who plans a chunk has with it up to a hundred
#: rewordings of each of its items, or what ninety routers wrote about them, and in memory a text takes up to four times
#: its bytes.
CHUNK_BYTES: Final = 1 << 20


def put_items(store: ArtifactStore, items: ItemSet) -> str:
    """Store items in chunks, and return the digest of their ItemIndex."""
    return put_item_chunks(store, _chunks(items.items))


def put_item_chunks(store: ArtifactStore, chunks: Iterable[Sequence[Item]]) -> str:
    """As `put_items`, of chunks that come one after another. Each is to have CHUNK_ITEMS items, but the last.

    Those of more than CHUNK_BYTES are cut in two, and their halves too where they have to be.
    """
    n_items, digests = 0, list[str]()
    for chunk in chunks:
        n_items += len(chunk)
        digests += [store.put(data) for data in _fitting(tuple(chunk))]
    return put_model(store, ItemIndex(n_items=n_items, chunks=tuple(digests)))


def _fitting(items: tuple[Item, ...]) -> Iterator[bytes]:
    """ItemSets of at most CHUNK_BYTES as they are stored, or of a single item."""
    data = model_bytes(ItemSet(items=items))
    if len(data) <= CHUNK_BYTES or len(items) < 2:
        yield data
        return
    middle = len(items) // 2
    yield from _fitting(items[:middle])
    yield from _fitting(items[middle:])


def _chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + CHUNK_ITEMS] for start in range(0, len(items), CHUNK_ITEMS))


class StoredItems(Sequence[Item]):
    """The items of an ItemIndex, in order, of which one chunk is in memory at a time.

    Meant to be gone through: to look one up reads the chunks before it.
    """

    def __init__(self, store: ArtifactStore, digest: str) -> None:
        """Read the index under this digest; the chunks are read when they are come to, each time anew."""
        self._store = store
        self._index = get_model(store, digest, ItemIndex)

    def __len__(self) -> int:
        return self._index.n_items

    def __iter__(self) -> Iterator[Item]:
        for chunk in self._index.chunks:
            yield from get_model(self._store, chunk, ItemSet).items

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, place: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(place, slice):
            first, last, step = place.indices(len(self))
            if step > 0:
                return tuple(islice(self, first, last, step))
            return tuple(self)[place]
        wanted = range(len(self))[place]
        return next(islice(self, wanted, None))


def each_item(store: ArtifactStore, digest: str) -> Iterator[Item]:
    """The items of an ItemIndex in order, a chunk in memory at a time."""
    return iter(StoredItems(store, digest))


def get_items(store: ArtifactStore, digest: str) -> ItemSet:
    """All items of an ItemIndex."""
    return ItemSet(items=tuple(each_item(store, digest)))


def put_variants(store: ArtifactStore, items: str, made: VariantSet) -> str:
    """Store variants beside the items that they reword, and return the digest of their VariantIndex.

    Args:
        items: digest of the ItemIndex; variants of other items are left out.
        made: the variants, in any order; those of an item keep theirs.
    """
    by_item: dict[str, list[Variant]] = {}
    for variant in made.variants:
        by_item.setdefault(variant.item_id, []).append(variant)
    chunks = (
        [variant for item in get_model(store, chunk, ItemSet).items for variant in by_item.get(item.item_id, ())]
        for chunk in get_model(store, items, ItemIndex).chunks
    )
    return put_variant_chunks(store, chunks, made.model_copy(update={"variants": ()}))


def put_variant_chunks(store: ArtifactStore, chunks: Iterable[Sequence[Variant]], summary: VariantSet) -> str:
    """As `put_variants`, of chunks that come one after another, aligned with those of the items.

    Args:
        chunks: of each chunk of items the variants, in the items' order.
        summary: what is known of all of them, without the variants.
    """
    digests, item_ids, variant_ids = list[str](), set[str](), list[str]()
    for chunk in chunks:
        digests.append(put_model(store, VariantChunk(variants=tuple(chunk))))
        item_ids.update(variant.item_id for variant in chunk)
        variant_ids += [variant.variant_id for variant in chunk]
    return put_model(
        store,
        VariantIndex(
            n_variants=len(variant_ids),
            n_items_with_variants=len(item_ids),
            chunks=tuple(digests),
            summary=put_model(store, summary),
            rewordings_digest=rewordings_digest(variant_ids),
        ),
    )


class StoredVariants:
    """The variants of a VariantIndex in the order of their items, of which one chunk is in memory at a time."""

    def __init__(self, store: ArtifactStore, digest: str) -> None:
        """Read the index under this digest; the chunks are read when they are come to, each time anew."""
        self._store = store
        self.index = get_model(store, digest, VariantIndex)

    def __iter__(self) -> Iterator[Variant]:
        for chunk in self.index.chunks:
            yield from get_model(self._store, chunk, VariantChunk).variants

    def summary(self) -> VariantSet:
        """What is known beside the variants: a VariantSet without any."""
        return get_model(self._store, self.index.summary, VariantSet)


def joined_variants(store: ArtifactStore, digests: Sequence[str]) -> str:
    """Store one VariantIndex of the variants of several, whose items are different, in their order."""
    indexes = [StoredVariants(store, digest) for digest in digests]
    summaries = [index.summary() for index in indexes]
    summary = summaries[0].model_copy(
        update={
            "rejections": tuple(rejection for one in summaries for rejection in one.rejections),
            "from_library": sum(one.from_library for one in summaries),
        }
    )
    return put_model(
        store,
        VariantIndex(
            n_variants=sum(one.index.n_variants for one in indexes),
            n_items_with_variants=sum(one.index.n_items_with_variants for one in indexes),
            chunks=tuple(chunk for one in indexes for chunk in one.index.chunks),
            summary=put_model(store, summary),
            rewordings_digest=rewordings_digest(variant.variant_id for one in indexes for variant in one),
        ),
    )
