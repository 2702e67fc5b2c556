"""How much one file may hold, counted while it is read: what a file says of itself is not believed."""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from proctor.domain.errors import BadInputError

#: A row beyond this is a mistake (a whole file in one line), not a benchmark problem.
MAX_ROW_BYTES: Final = 1 << 20
#: Lines or rows of a file, empty ones too. An item takes 1.6 KB of memory however short it is, so this many take half
#: a gibibyte; the largest benchmark in use, MMLU with its training questions, has 116,000.
MAX_ROWS: Final = 300_000
#: Bytes of all rows, as JSON where the file itself is compressed. The largest benchmark in use takes a fifth.
MAX_BYTES: Final = 256 << 20
#: How many bytes of rows one byte of a compressed file may give. A column that says the same in every row reaches a
#: few hundred; a file that is made to burst reaches a million.
MAX_INFLATION: Final = 1000
#: Up to here a small file may inflate as it likes.
_FREE_BYTES: Final = 16 << 20


class Limits(NamedTuple):
    """Bounds of one file."""

    row_bytes: int = MAX_ROW_BYTES
    rows: int = MAX_ROWS
    total_bytes: int = MAX_BYTES


ITEM_ROWS: Final = Limits()
#: Rows of a log hold what was asked, answered and measured, token by token.
LOG_ROWS: Final = Limits(row_bytes=16 << 20, total_bytes=1 << 28)


class Meter:
    """Counts the rows of one file and their bytes as they come.

    Args:
        source: the file, for messages.
        limits: what it may hold.
        compressed_bytes: the file's size where its rows come out of a compressed form; None where they are the file.
    """

    def __init__(self, source: str, limits: Limits = ITEM_ROWS, *, compressed_bytes: int | None = None) -> None:
        self._source = source
        self._limits = limits
        self._rows = 0
        self._bytes = 0
        self._inflated = limits.total_bytes
        if compressed_bytes is not None:
            self._inflated = min(limits.total_bytes, max(_FREE_BYTES, MAX_INFLATION * compressed_bytes))

    def count(self, size: int) -> None:
        """Count a row of this many bytes.

        Raises:
            BadInputError: when it is one row or byte too many.
        """
        self._rows += 1
        self._bytes += size
        if self._rows > self._limits.rows:
            self._refuse(f"has more than {self._limits.rows:,} rows, which are not read; split the file")
        if self._bytes > self._limits.total_bytes:
            self._refuse(f"holds more than {self._limits.total_bytes >> 20} MiB of rows; split the file")
        if self._bytes > self._inflated:
            self._refuse(
                f"unpacks to more than {MAX_INFLATION} times its size ({self._inflated >> 20} MiB so far), which no "
                "benchmark does; write the rows as JSONL if they are what they should be"
            )

    def _refuse(self, text: str) -> NoReturn:
        raise BadInputError(f"{self._source} {text}")
