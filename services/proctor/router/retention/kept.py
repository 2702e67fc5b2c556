"""The set of digests that are to stay, in a fixed number of bytes however many they are."""

from __future__ import annotations

from typing import Final

#: Bits of the filter: 32 MiB. With ten million digests in it, one object in 2,500 stays that could go.
_BITS: Final = 1 << 28
#: Places of one digest. Each is a part of it: a SHA-256 needs no further hashing.
_PLACES: Final = 4


class KeptDigests:
    """A Bloom filter: it never forgets a digest that was added, and now and then takes another for one.

    So it errs on the side that keeps an object.
    """

    def __init__(self, *, bits: int = _BITS) -> None:
        """An empty set. `bits` is a power of two, of at most 2³²."""
        self._mask = bits - 1
        self._bytes = bytearray(bits // 8)

    def add(self, digest: str) -> None:
        """Have a digest (`sha256:…`) in the set."""
        for place in self._places(digest):
            self._bytes[place >> 3] |= 1 << (place & 7)

    def __contains__(self, digest: str) -> bool:
        return all(self._bytes[place >> 3] >> (place & 7) & 1 for place in self._places(digest))

    def _places(self, digest: str) -> list[int]:
        number = int(digest[-64:], 16)
        return [number >> 64 * part & self._mask for part in range(_PLACES)]
