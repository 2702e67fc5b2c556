"""What a model answered to each item of an audit, as it lies in a row: columns of small numbers, compressed.

The ids are a row of their own, which all audits of the same items share: a thousand audits of 1,000 items take a few
megabytes so, and no item is a row.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import StoreError
from proctor.domain.measure import ItemCounts

# Imported where it is used: every service opens the record store, and few read these columns.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: 100 rewordings are the most that a suite asks; two bytes leave room.
_COLUMN: Final = "<u2"
#: Item lists that a process keeps decoded.
_KEPT_LISTS: Final = 64
#: A suite asks a million items at most, whose ids have 256 characters.
_MAX_BYTES: Final = 1 << 30


class ItemColumns(NamedTuple):
    """The columns of `ItemCounts`, as arrays."""

    item_ids: tuple[str, ...]
    canonical: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    total: npt.NDArray[np.int64]


class PackedItems(NamedTuple):
    """The same as it is stored."""

    item_list: str
    """Digest of the ids."""
    ids: bytes
    counts: bytes


def pack(items: ItemCounts) -> PackedItems:
    """The form in which items are stored."""
    import numpy as np

    ids = json.dumps(items.item_ids, separators=(",", ":")).encode()
    columns: tuple[Sequence[int], ...] = (items.canonical, items.right, items.total)
    counts = b"".join(np.asarray(column, dtype=_COLUMN).tobytes() for column in columns)
    return PackedItems(bytes_digest(ids), zlib.compress(ids), zlib.compress(counts))


def unpack(packed: PackedItems) -> ItemColumns:
    """What was packed.

    Raises:
        StoreError: when it was changed in the store.
    """
    import numpy as np

    try:
        ids = _ids(packed.item_list, packed.ids)
        flat = np.frombuffer(_inflated(packed.counts), dtype=_COLUMN)
        canonical, right, total = flat.reshape(3, len(ids)).astype(np.int64)
    except (ValueError, zlib.error) as error:
        raise StoreError(f"the items {packed.item_list[:80]} cannot be read: {error}") from None
    return ItemColumns(ids, canonical, right, total)


@lru_cache(maxsize=_KEPT_LISTS)
def _ids(digest: str, packed: bytes) -> tuple[str, ...]:
    text = _inflated(packed)
    if bytes_digest(text) != digest:
        raise ValueError("their ids are not those of the digest")
    return tuple(map(str, json.loads(text)))


def _inflated(packed: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    text = decompressor.decompress(packed, _MAX_BYTES)
    if not decompressor.eof:
        raise ValueError("they are cut off, or more than an audit has")
    return text
