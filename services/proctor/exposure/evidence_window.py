"""What of a document is kept as evidence: around the longest run that it has in common with an item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proctor.exposure.documents import Batch
from proctor.exposure.index import Unit
from proctor.exposure.kernel import Better
from proctor.exposure.scanned import Window

#: How much of a document is kept beside what was found in it: a label further off is none of the item's.
AROUND_BYTES: Final = 2_000
#: How much is kept in all at most,
WINDOW_BYTES: Final = 20_000
#: or so much a word of the part that was looked for, where that is longer: a run of words has about six bytes each.
_BYTES_A_WORD: Final = 32


def window(first: int, last: int, run_first: int, run_last: int, most: int) -> tuple[int, int]:
    """The bytes that are kept: all that was found and what is around it, or as much around the longest run.

    Args:
        first: where what was found begins.
        last: where it ends.
        run_first: where its longest run begins.
        run_last: where that ends.
        most: bytes to keep.

    Returns:
        Its begin and end; the begin may be before the document's, and the end past it.
    """
    begin, end = first - AROUND_BYTES, last + AROUND_BYTES
    if end - begin <= most:
        return begin, end
    # What is left beside the run, half of it before; what either side does not need is the other's.
    beside = max(most - (run_last - run_first), 0)
    begin = max(begin, run_first - beside // 2)
    end = min(end, begin + most)
    return max(first - AROUND_BYTES, min(begin, end - most)), end


def keep(windows: dict[int, Window], better: Better, improved: int, batch: Batch, units: Sequence[Unit]) -> None:
    """Keep what each unit's new best document says where the unit was found."""
    for place in range(improved):
        number, unit = int(better.document[place]), int(better.unit[place])
        begin, end = int(batch.bounds[number]), int(batch.bounds[number + 1])
        first, last = window(
            int(better.first[place]),
            int(better.last[place]),
            int(better.run_first[place]),
            int(better.run_last[place]),
            max(WINDOW_BYTES, _BYTES_A_WORD * units[unit].words),
        )
        first, last = max(0, first), min(end - begin, last)
        windows[unit] = Window(
            position=int(batch.positions[number]),
            offset_bytes=first,
            text=batch.data[begin + first : begin + last].tobytes(),
        )
