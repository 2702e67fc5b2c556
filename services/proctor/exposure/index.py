"""The items' n-grams, by their keys: made once, kept in files that every scanning process maps into its memory."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.exposure import kernel
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.kernel import IndexArrays
from proctor.exposure.letters import Letters, letters
from proctor.text.overlap_words import NORMALISATION

#: Weights are whole numbers of this part of one, so that sums do not hang on their order.
WEIGHT_UNIT: Final = 1 << 20
#: Bits of the filter an n-gram, at least: one absent n-gram in this many is looked up in vain.
_FILTER_BITS: Final = 16
_MIN_FILTER_BITS: Final = 1 << 12
_DESCRIPTION: Final = "index.json"


class Unit(NamedTuple):
    """A part of an item."""

    item: int
    """The item's place among the items."""
    part: Part
    words: int
    grams: int
    """Distinct n-grams; 0 where it is too short to have one."""
    weight: int
    """The weights of these, summed."""


class Index(NamedTuple):
    """What is looked for, with what is looked up."""

    units: tuple[Unit, ...]
    arrays: IndexArrays
    letters: Letters
    digest: str
    """SHA-256 over the normalisation, n and the items' texts."""


def build_index(
    items: Sequence[ScannedItem], n: int, *, weighted: bool = False, prepare: Callable[[str], str] = str
) -> Index:
    """Index items by the n-grams of their parts.

    Args:
        items: what to look for.
        n: words an n-gram, at least 1.
        weighted: whether an n-gram weighs ln((N + 1) / d), where d of the N items have it: what every item says (a
            template's words) weighs next to nothing then. Otherwise all weigh the same.
        prepare: what is done to texts before they become words.
    """
    table = letters()
    digest = hashlib.sha256(json.dumps([NORMALISATION, n, weighted]).encode())
    units: list[tuple[int, Part, int, NDArray[np.uint64]]] = []
    whole: list[int] = []
    for place, item in enumerate(items):
        for part, text in item.parts.items():
            encoded = prepare(text).encode("utf-8", "replace")
            digest.update(json.dumps([place, part.value]).encode())
            digest.update(hashlib.sha256(encoded).digest())
            keys, count = words_of(encoded, table)
            grams = np.empty(max(count, 1), dtype=np.uint64)
            grams = grams[: kernel.gram_keys(keys, count, n, grams)]
            units.append((place, part, count, grams))
            whole.append(int(kernel.whole_key(keys, 0, count)) if count else 0)
    arrays = _arrays(units, n, whole, len(items), weighted=weighted)
    described = []
    for number, (place, part, count, _) in enumerate(units):
        mine = np.unique(arrays.unit_grams[arrays.unit_starts[number] : arrays.unit_starts[number + 1]])
        weight = int(arrays.looked_up.weights[mine].sum())
        described.append(Unit(place, part, count, len(mine), weight))
    return Index(tuple(described), arrays.looked_up, table, "sha256:" + digest.hexdigest())


def words_of(encoded: bytes, table: Letters) -> tuple[NDArray[np.uint64], int]:
    """The keys of a text's words, and how many they are."""
    room = len(encoded) + 1
    keys = np.empty(room, dtype=np.uint64)
    firsts, lasts = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    data = np.frombuffer(encoded or b" ", dtype=np.uint8)
    return keys, kernel.read_words(data, 0, len(encoded), table, keys, firsts, lasts)


class _Arrays(NamedTuple):
    looked_up: IndexArrays
    unit_starts: NDArray[np.int64]
    unit_grams: NDArray[np.int64]


def _arrays(
    units: Sequence[tuple[int, Part, int, NDArray[np.uint64]]],
    n: int,
    whole: Sequence[int],
    items: int,
    *,
    weighted: bool,
) -> _Arrays:
    lengths = np.array([len(grams) for *_, grams in units], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    empty = np.empty(0, dtype=np.uint64)
    keys, numbers = np.unique(np.concatenate([empty, *(grams for *_, grams in units)]), return_inverse=True)
    unit_of = np.repeat(np.arange(len(units), dtype=np.int32), lengths)
    # By n-gram, and in one n-gram by unit and position, which is the order they come in.
    order = np.argsort(numbers, kind="stable")
    place_of = np.empty(len(order) + 1, dtype=np.int32)
    place_of[order] = np.arange(len(order), dtype=np.int32)
    before = place_of[order - 1]
    before[np.isin(order, starts[:-1])] = -1
    counts = np.bincount(numbers, minlength=len(keys))
    table_keys, table_grams = _table(keys)
    whole_keys = np.array(whole, dtype=np.uint64)
    used = np.argsort(whole_keys, kind="stable")
    # A text without words is no document's text.
    used = used[whole_keys[used] > 0]
    looked_up = IndexArrays(
        n=n,
        filter_shift=64 - _filter_size(len(keys)).bit_length() + 1,
        filter_bits=_filter(keys, _filter_size(len(keys))),
        table_keys=table_keys,
        table_grams=table_grams,
        place_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        place_units=unit_of[order],
        place_before=before,
        weights=_weights(numbers, unit_of, units, len(keys), items)
        if weighted
        else np.full(len(keys), WEIGHT_UNIT, dtype=np.int64),
        whole_keys=whole_keys[used],
        whole_units=used.astype(np.int32),
    )
    return _Arrays(looked_up, starts, numbers)


def _filter_size(grams: int) -> int:
    return 1 << max(_MIN_FILTER_BITS.bit_length() - 1, math.ceil(math.log2(_FILTER_BITS * max(grams, 1))))


def _filter(keys: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    bits = keys >> np.uint64(64 - size.bit_length() + 1)
    words = np.zeros(size // 64, dtype=np.uint64)
    np.bitwise_or.at(words, (bits >> np.uint64(6)).astype(np.int64), np.uint64(1) << (bits & np.uint64(63)))
    return words


def _table(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    size = 1 << max(4, math.ceil(math.log2(2 * max(len(keys), 1))))
    table, grams = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.int32)
    kernel.fill_table(keys, table, grams)
    return table, grams


def _weights(
    numbers: NDArray[np.int64],
    unit_of: NDArray[np.int32],
    units: Sequence[tuple[int, Part, int, NDArray[np.uint64]]],
    grams: int,
    items: int,
) -> NDArray[np.int64]:
    """Inverse document frequency, a document being an item."""
    item_of = np.array([place for place, *_ in units], dtype=np.int64)[unit_of] if len(units) else unit_of
    pairs = np.unique(numbers * np.int64(max(items, 1)) + item_of)
    having = np.bincount(pairs // max(items, 1), minlength=grams)
    weights: NDArray[np.int64] = np.rint(WEIGHT_UNIT * np.log((items + 1) / np.maximum(having, 1))).astype(np.int64)
    return weights


def save_index(index: Index, folder: Path) -> None:
    """Write an index for `open_index`, an array a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in (index.arrays._asdict() | index.letters._asdict()).items():
        if isinstance(array, np.ndarray):
            np.save(folder / f"{name}.npy", array, allow_pickle=False)
    document = {
        "n": index.arrays.n,
        "filter_shift": index.arrays.filter_shift,
        "digest": index.digest,
        "units": [[unit.item, unit.part.value, unit.words, unit.grams, unit.weight] for unit in index.units],
    }
    (folder / _DESCRIPTION).write_text(json.dumps(document), "utf-8")


def open_index(folder: Path) -> Index:
    """An index that was saved; processes that open it share its pages. (`c`: nobody writes, but compiled code is of
    arrays that may be written.)"""
    document = json.loads((folder / _DESCRIPTION).read_text("utf-8"))
    loaded = {path.stem: np.load(path, mmap_mode="c", allow_pickle=False) for path in folder.glob("*.npy")}
    table = Letters(**{name: loaded.pop(name) for name in Letters._fields})
    arrays = IndexArrays(n=document["n"], filter_shift=document["filter_shift"], **loaded)
    units = tuple(Unit(item, Part(part), *rest) for item, part, *rest in document["units"])
    return Index(units, arrays, table, document["digest"])
