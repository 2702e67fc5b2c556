"""The compiled part of a scan: documents become words, words n-grams, and n-grams are looked up in the items' index.

A word's key is FNV-1a over the code points of its form, mixed; an n-gram's is the polynomial of its words' keys,
which rolls on by one word in two multiplications, mixed again. Keys have 64 bits: that a foreign n-gram has the key of
one of 10^7 indexed ones happens once in 10^12, and what is reported is compared by its words (`spans`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proctor.exposure.letters import Letters

_FNV_BASIS: Final = np.uint64(0xCBF29CE484222325)
_FNV_PRIME: Final = np.uint64(0x100000001B3)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_SPACE: Final = 0x20
_ONE: Final = np.uint64(1)
#: A byte that UTF-8 does not have: between two columns of a row, over which no n-gram reaches.
BARRIER: Final = 0xFF
#: The word that stands for it, which no text has.
_BARRIER_KEY: Final = np.uint64(0)


class IndexArrays(NamedTuple):
    """What is looked up. G n-grams, U units (a part of an item), P places of n-grams in units."""

    n: int
    """Words an n-gram."""
    filter_shift: int
    filter_bits: NDArray[np.uint64]
    """A bit an n-gram, at the key's highest bits: what is not there is in most cases found to be absent here."""
    table_keys: NDArray[np.uint64]
    """(power of two,) keys at the place that their lowest bits say, or the next free one; 0 is free."""
    table_grams: NDArray[np.int32]
    place_starts: NDArray[np.int64]
    """(G + 1,) where the places of each n-gram begin."""
    place_units: NDArray[np.int32]
    place_before: NDArray[np.int32]
    """(P,) which place the n-gram one word earlier in the unit has here; -1 for the unit's first."""
    weights: NDArray[np.int64]
    """(G,) inverse document frequency over the items, in units of 2^-20."""
    whole_keys: NDArray[np.uint64]
    """Sorted keys of all words of a unit, for documents that are a unit and nothing else."""
    whole_units: NDArray[np.int32]


class Found(NamedTuple):
    """What a scan has found so far; of each unit its best document, the first of equal ones."""

    weight: NDArray[np.int64]
    """(U,) summed weights of the unit's n-grams in its best document."""
    distinct: NDArray[np.int32]
    """(U,) how many of its n-grams stand there, each counted once."""
    run: NDArray[np.int32]
    """(U,) its longest run of n-grams one after the other there."""
    longest: NDArray[np.int32]
    """(U,) the longest run in any document."""
    whole: NDArray[np.int64]
    """(U,) how many documents are this unit and nothing else."""
    documents_with: NDArray[np.int64]
    """(G,) in how many documents each n-gram stands."""


class Scratch(NamedTuple):
    """Room for one document's work; what is left from the one before does no harm."""

    gram_document: NDArray[np.int64]
    unit_document: NDArray[np.int64]
    unit_weight: NDArray[np.int64]
    unit_distinct: NDArray[np.int32]
    unit_longest: NDArray[np.int32]
    unit_first: NDArray[np.int64]
    unit_last: NDArray[np.int64]
    unit_run_first: NDArray[np.int64]
    unit_run_last: NDArray[np.int64]
    reached: NDArray[np.int64]
    """(P,) at which n-gram of the corpus each place of the index was met last."""
    run: NDArray[np.int32]
    """(P,) how long the run was that ended there."""
    touched: NDArray[np.int32]


class Better(NamedTuple):
    """Units that found a better document, in the order in which they did."""

    unit: NDArray[np.int32]
    document: NDArray[np.int64]
    """Number of the document in its batch."""
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    """Bytes of the document between which all of the unit's n-grams stand, from `first` on."""
    run_first: NDArray[np.int64]
    run_last: NDArray[np.int64]
    """Bytes between which its longest run stands, the first of equally long ones."""


@njit(cache=True, nogil=True, inline="always")
def _mix(key: np.uint64) -> np.uint64:
    key = (key ^ (key >> np.uint64(30))) * _MIX_1
    key = (key ^ (key >> np.uint64(27))) * _MIX_2
    return key ^ (key >> np.uint64(31))


@njit(cache=True, nogil=True, inline="always")
def _decode(data: NDArray[np.uint8], at: int, end: int) -> tuple[int, int]:
    """The code point at a byte that is not ASCII, and its length; what is not UTF-8 is a space."""
    lead = data[at]
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC2 or lead > 0xF4 or at + size > end:
        return _SPACE, 1
    code = lead & (0x7F >> size)
    for step in range(1, size):
        byte = data[at + step]
        if byte & 0xC0 != 0x80:
            return _SPACE, 1
        code = (code << 6) | (byte & 0x3F)
    return (code, size) if code < 0x110000 else (_SPACE, 1)


@njit(cache=True, nogil=True)
def read_words(
    data: NDArray[np.uint8],
    begin: int,
    end: int,
    letters: Letters,
    keys: NDArray[np.uint64],
    firsts: NDArray[np.int64],
    lasts: NDArray[np.int64],
) -> int:
    """Read the words of UTF-8 text.

    Args:
        data: the text.
        begin: its first byte.
        end: the byte after it.
        letters: forms of characters.
        keys: (at least end - begin + 1,) is given each word's key.
        firsts: as long, is given where each word begins, in bytes from `begin`.
        lasts: as long, is given where each ends.

    Returns:
        How many words there are.
    """
    starts, forms = letters
    count = 0
    inside = False
    key = _FNV_BASIS
    at = begin
    while at < end:
        byte = data[at]
        if byte < 0x80:
            form = forms[byte]
            if form != _SPACE:
                if not inside:
                    inside = True
                    key = _FNV_BASIS
                    firsts[count] = at - begin
                key = (key ^ np.uint64(form)) * _FNV_PRIME
                at += 1
                continue
            if inside:
                inside = False
                keys[count] = _mix(key)
                lasts[count] = at - begin
                count += 1
            at += 1
            continue
        if byte == BARRIER:
            if inside:
                inside = False
                keys[count] = _mix(key)
                lasts[count] = at - begin
                count += 1
            keys[count] = _BARRIER_KEY
            firsts[count] = at - begin
            at += 1
            lasts[count] = at - begin
            count += 1
            continue
        code, size = _decode(data, at, end)
        for place in range(starts[code], starts[code + 1]):
            form = forms[place]
            if form == _SPACE:
                if inside:
                    inside = False
                    keys[count] = _mix(key)
                    # A word that ends within a character's form (a half is 1 2) ends with the character.
                    lasts[count] = at - begin if place == starts[code] else at + size - begin
                    count += 1
            else:
                if not inside:
                    inside = True
                    key = _FNV_BASIS
                    firsts[count] = at - begin
                key = (key ^ np.uint64(form)) * _FNV_PRIME
        at += size
    if inside:
        keys[count] = _mix(key)
        lasts[count] = end - begin
        count += 1
    return count


@njit(cache=True, nogil=True)
def whole_key(keys: NDArray[np.uint64], begin: int, end: int) -> np.uint64:
    """The key of these words together."""
    key = np.uint64(end - begin)
    for place in range(begin, end):
        key = key * _BASE + keys[place]
    return _mix(key)


@njit(cache=True, nogil=True)
def _count_whole(keys: NDArray[np.uint64], words: int, index: IndexArrays, found: Found) -> None:
    """Count units that a document, or a column of it, is and nothing else."""
    begin = 0
    for place in range(words + 1):
        if place < words and keys[place] != _BARRIER_KEY:
            continue
        if place > begin:
            key = whole_key(keys, begin, place)
            at = np.searchsorted(index.whole_keys, key)
            while at < len(index.whole_keys) and index.whole_keys[at] == key:
                found.whole[index.whole_units[at]] += 1
                at += 1
        begin = place + 1


@njit(cache=True, nogil=True)
def gram_keys(keys: NDArray[np.uint64], count: int, n: int, grams: NDArray[np.uint64]) -> int:
    """Give `grams` the key of every n words one after the other; how many there are."""
    if count < n:
        return 0
    highest = _ONE
    for _ in range(n - 1):
        highest = highest * _BASE
    rolling = np.uint64(0)
    for place in range(n):
        rolling = rolling * _BASE + keys[place]
    for place in range(count - n + 1):
        if place:
            rolling = (rolling - keys[place - 1] * highest) * _BASE + keys[place + n - 1]
        key = _mix(rolling)
        # 0 says in the table that a place is free.
        grams[place] = key if key else _ONE
    return count - n + 1


@njit(cache=True, nogil=True)
def fill_table(keys: NDArray[np.uint64], table_keys: NDArray[np.uint64], table_grams: NDArray[np.int32]) -> None:
    """Put distinct keys into an empty table, each with its number."""
    mask = np.uint64(len(table_keys) - 1)
    for number in range(len(keys)):
        slot = keys[number] & mask
        while table_keys[slot]:
            slot = (slot + _ONE) & mask
        table_keys[slot] = keys[number]
        table_grams[slot] = number


@njit(cache=True, nogil=True)
def scan(
    data: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    begin: int,
    ordinal: int,
    bytes_before: int,
    letters: Letters,
    index: IndexArrays,
    found: Found,
    scratch: Scratch,
    better: Better,
) -> tuple[int, int]:
    """Look the documents of a batch up, until they are done or `better` may not hold what the next one brings.

    Args:
        data: the documents' UTF-8, one after the other.
        bounds: (D + 1,) where each begins; it ends where the next one does.
        begin: the first document to look up.
        ordinal: how many documents came before this batch.
        bytes_before: how many bytes they had.
        letters: forms of characters.
        index: what is looked for.
        found: is kept up.
        scratch: room.
        better: is given the units with a better document; at least U long.

    Returns:
        The document to go on with, and how many units are in `better`.
    """
    longest = int(np.diff(bounds[begin:]).max())
    keys = np.empty(longest + 1, dtype=np.uint64)
    firsts = np.empty(longest + 1, dtype=np.int64)
    lasts = np.empty(longest + 1, dtype=np.int64)
    grams = np.empty(longest + 1, dtype=np.uint64)
    hits = np.empty(longest + 1, dtype=np.int64)
    count_better = 0
    n = index.n
    shift = np.uint64(index.filter_shift)
    mask = np.uint64(len(index.table_keys) - 1)
    units = len(found.weight)
    for number in range(begin, len(bounds) - 1):
        if count_better + units > len(better.unit):
            return number, count_better
        words = read_words(data, bounds[number], bounds[number + 1], letters, keys, firsts, lasts)
        document = ordinal + number
        # Where its n-grams are counted from, so that no two documents' stand side by side: there are fewer than bytes.
        serial = bytes_before + bounds[number] + document
        _count_whole(keys, words, index, found)
        count = gram_keys(keys, words, n, grams)
        # Three passes over the document, and not one: the reads of each pass do not wait for each other.
        hit_count = np.int64(0)
        for place in range(count):
            bit = grams[place] >> shift
            hits[hit_count] = place
            hit_count += np.int64((index.filter_bits[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & _ONE)
        touched = 0
        for hit in range(hit_count):
            place = hits[hit]
            key = grams[place]
            slot = key & mask
            while index.table_keys[slot] and index.table_keys[slot] != key:
                slot = (slot + _ONE) & mask
            if not index.table_keys[slot]:
                continue
            gram = index.table_grams[slot]
            is_new = scratch.gram_document[gram] != document
            if is_new:
                scratch.gram_document[gram] = document
                found.documents_with[gram] += 1
            counted = -1
            # Backwards: an n-gram that follows itself in a unit is read before it is written.
            for entry in range(index.place_starts[gram + 1] - 1, index.place_starts[gram] - 1, -1):
                unit = index.place_units[entry]
                if scratch.unit_document[unit] != document:
                    scratch.unit_document[unit] = document
                    scratch.unit_weight[unit] = 0
                    scratch.unit_distinct[unit] = 0
                    scratch.unit_longest[unit] = 0
                    scratch.unit_first[unit] = firsts[place]
                    scratch.touched[touched] = unit
                    touched += 1
                scratch.unit_last[unit] = lasts[place + n - 1]
                # Places of one n-gram are sorted by unit: a second one in the same unit counts once.
                if is_new and unit != counted:
                    scratch.unit_weight[unit] += index.weights[gram]
                    scratch.unit_distinct[unit] += 1
                    counted = unit
                before = index.place_before[entry]
                run = 1
                if before >= 0 and scratch.reached[before] == serial + place - 1:
                    run = scratch.run[before] + 1
                scratch.reached[entry] = serial + place
                scratch.run[entry] = run
                if run > scratch.unit_longest[unit]:
                    scratch.unit_longest[unit] = run
                    scratch.unit_run_first[unit] = firsts[place - run + 1]
                    scratch.unit_run_last[unit] = lasts[place + n - 1]
        for which in range(touched):
            unit = scratch.touched[which]
            weight, run = scratch.unit_weight[unit], scratch.unit_longest[unit]
            distinct = scratch.unit_distinct[unit]
            found.longest[unit] = max(found.longest[unit], run)
            if (weight, distinct, run) > (found.weight[unit], found.distinct[unit], found.run[unit]):
                found.weight[unit] = weight
                found.distinct[unit] = distinct
                found.run[unit] = run
                better.unit[count_better] = unit
                better.document[count_better] = number
                better.first[count_better] = scratch.unit_first[unit]
                better.last[count_better] = scratch.unit_last[unit]
                better.run_first[count_better] = scratch.unit_run_first[unit]
                better.run_last[count_better] = scratch.unit_run_last[unit]
                count_better += 1
    return len(bounds) - 1, count_better
