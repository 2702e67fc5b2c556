"""Items and variants in chunks: what is read back is what was stored, a chunk at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item, Measurements, Rejection, Variant
from proctor.domain.manifest import CHUNK_ITEMS, ItemIndex, ItemSet, VariantChunk, VariantIndex, VariantSet
from proctor.runtime.artifacts.chunks import (
    StoredItems,
    StoredVariants,
    get_items,
    put_items,
    put_variants,
)
from proctor.runtime.artifacts.store import get_model
from tests.scored_audits import MemoryArtifacts
from tests.stored_variants import get_variants

MEASURED = Measurements(semantic_distance=0.2, token_overlap=0.1, edit_distance=0.6)


class CountingArtifacts(MemoryArtifacts):
    """Counts what is read."""

    reads = 0

    def get(self, digest: str) -> bytes:
        self.reads += 1
        return super().get(digest)


def items(n: int) -> tuple[Item, ...]:
    return tuple(Item(item_id=f"i{number}", question=f"What is {number}?", target=str(number)) for number in range(n))


def variant(item: Item, wording: int) -> Variant:
    return Variant(
        item_id=item.item_id,
        item_hash=item.content_hash,
        strategy="wordings",
        question=f"{item.question} ({wording})",
        measurements=MEASURED,
    )


@pytest.mark.parametrize("n", [0, 1, CHUNK_ITEMS, CHUNK_ITEMS + 1, 2 * CHUNK_ITEMS])
def test_items_come_back_in_their_order_whatever_their_number(n: int) -> None:
    store = MemoryArtifacts()
    digest = put_items(store, ItemSet(items=items(n)))
    index = get_model(store, digest, ItemIndex)
    assert index.n_items == n
    assert len(index.chunks) == -(-n // CHUNK_ITEMS)
    assert get_items(store, digest).items == items(n)


def test_the_same_items_have_the_same_digest() -> None:
    assert put_items(MemoryArtifacts(), ItemSet(items=items(5))) == put_items(
        MemoryArtifacts(), ItemSet(items=items(5))
    )


@given(st.integers(-7, 7), st.one_of(st.none(), st.integers(-7, 7)), st.sampled_from([None, 1, 2, -1]))
def test_stored_items_are_a_sequence_like_a_tuple(first: int, last: int | None, step: int | None) -> None:
    store, known = MemoryArtifacts(), items(5)
    stored = StoredItems(store, put_items(store, ItemSet(items=known)))
    assert len(stored) == 5
    assert tuple(stored) == known
    assert stored[first:last:step] == known[first:last:step]
    if -5 <= first < 5:
        assert stored[first] == known[first]
    else:
        with pytest.raises(IndexError):
            stored[first]


def test_the_first_items_are_found_without_reading_the_chunks_behind_them() -> None:
    store = CountingArtifacts()
    stored = StoredItems(store, put_items(store, ItemSet(items=items(3 * CHUNK_ITEMS))))
    before = store.reads
    assert len(stored[:20]) == 20
    assert store.reads == before + 1


def test_the_variants_of_a_chunk_are_those_of_the_items_chunk_in_its_place() -> None:
    store, known = MemoryArtifacts(), items(CHUNK_ITEMS + 2)
    digest = put_items(store, ItemSet(items=known))
    made = VariantSet(
        variants=tuple(variant(item, wording) for item in (known[-1], known[0], known[3]) for wording in (2, 1)),
        rejections=(Rejection(item_id="i1", reason="too_far"),),
        encoder="e",
        from_library=4,
    )
    index = get_model(store, put_variants(store, digest, made), VariantIndex)
    chunks = [get_model(store, chunk, VariantChunk).variants for chunk in index.chunks]
    assert [[one.item_id for one in chunk] for chunk in chunks] == [["i0", "i0", "i3", "i3"], ["i1025", "i1025"]]
    assert (index.n_variants, index.n_items_with_variants) == (6, 3)
    assert index.rewordings_digest == made.rewordings_digest


def test_variants_come_back_with_everything_that_is_known_beside_them() -> None:
    store, known = MemoryArtifacts(), items(3)
    made = VariantSet(
        variants=(variant(known[0], 1), variant(known[2], 1)),
        rejections=(Rejection(item_id="i1", reason="too_far"),),
        encoder="e",
        from_library=1,
    )
    digest = put_variants(store, put_items(store, ItemSet(items=known)), made)
    assert get_variants(store, digest) == made
    stored = StoredVariants(store, digest)
    assert tuple(stored) == tuple(stored) == made.variants
    assert stored.summary() == made.model_copy(update={"variants": ()})
