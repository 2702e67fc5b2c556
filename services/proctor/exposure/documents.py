"""The documents of a piece of a corpus, in batches of bytes; what cannot be read is counted, with its line."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from proctor.domain.errors import BadInputError
from proctor.exposure.corpus_file import CorpusFile, Piece, Unreadable
from proctor.exposure.kernel import BARRIER
from proctor.exposure.remote.opening import opened
from proctor.formats.faults import shown

#: What is read at a time. A batch holds the documents that end in it.
_CHUNK_BYTES: Final = 4 << 20
#: A longer line is no document.
MAX_LINE_BYTES: Final = 64 << 20
#: Plain text is one document a file, or this much of it at a time,
MAX_TEXT_BYTES: Final = 16 << 20
#: of which so much stands in the next one as well, so that what lies on a cut is found.
_OVERLAP_BYTES: Final = 64 << 10
_PARQUET_ROWS: Final = 4096
#: Between the columns of a row. No text that is decoded has half a surrogate pair.
_BETWEEN: Final = "\udcff"
#: Columns that hold a document's text, by the custom of published corpora.
TEXT_COLUMNS: Final = ("text", "content")


class Skipped(NamedTuple):
    """Something that was not read."""

    position: int
    """Its line or row, from 1; in plain text its byte."""
    reason: str


class Batch(NamedTuple):
    """Some documents, one after the other."""

    data: NDArray[np.uint8]
    bounds: NDArray[np.int64]
    """(D + 1,) where each begins in `data`."""
    positions: NDArray[np.int64]
    """(D,) each one's line or row in the piece, from 1; in plain text its first byte in the file."""
    skipped: tuple[Skipped, ...]
    read_bytes: int
    """How far the piece's file has been read, in its own (packed) bytes, from the piece's begin."""
    lines: int
    """Lines that the piece had up to here."""


def columns_by_file(files: Sequence[CorpusFile], wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """`text_columns` of each file, by its path.

    Raises:
        BadInputError: as `text_columns` does.
    """
    known: dict[str, tuple[str, ...]] = {}
    for file in files:
        if file.columns_of not in known:
            known[file.columns_of] = text_columns(file, wanted)
    return {file.path: known[file.columns_of] for file in files}


def text_columns(file: CorpusFile, wanted: Sequence[str]) -> tuple[str, ...]:
    """Which columns of a file hold the documents' text.

    Args:
        file: JSON lines or Parquet.
        wanted: what the person named; where that is nothing, `TEXT_COLUMNS`, or every column of text.

    Raises:
        BadInputError: when the first row that can be read has none of them.
    """
    columns = _columns(file)
    if columns is None or file.kind == "text":
        return tuple(wanted)
    if wanted:
        missing = [name for name in wanted if name not in columns]
    else:
        usual = [name for name in TEXT_COLUMNS if columns.get(name)]
        wanted = usual[:1] or [name for name, is_text in columns.items() if is_text]
        missing = []
    if missing or not wanted:
        what = f"no column {shown(missing[0])}" if missing else "no column of text"
        has = ", ".join(shown(name) for name in list(columns)[:12])
        raise BadInputError(f"{file.path} has {what}, only {has}: name the right one with --text-column")
    return tuple(wanted)


def _columns(file: CorpusFile) -> dict[str, bool] | None:
    """The columns of the first row, and whether each holds text; None where no row can be read."""
    if file.kind == "parquet":
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        try:
            with _for_parquet(file) as source:
                schema = parquet.read_schema(source)
        except (arrow.ArrowException, OSError, Unreadable) as error:
            raise BadInputError(f"{file.path} cannot be read as Parquet: {shown(str(error))}") from None
        text = (arrow.types.is_string, arrow.types.is_large_string)
        return {field.name: any(is_text(field.type) for is_text in text) for field in schema}
    try:
        first = _Opened(file)
    except Unreadable as error:
        raise BadInputError(f"{file.path} cannot be read: {error}") from None
    with first as stream:
        for _ in range(100):
            try:
                line = stream.readline(MAX_LINE_BYTES)
                row = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                if not line:
                    return None
                continue
            except Unreadable:
                return None
            if isinstance(row, dict):
                return {name: isinstance(value, str) for name, value in row.items()}
    return None


def documents(piece: Piece, columns: Sequence[str]) -> Iterator[Batch]:
    """The documents of a piece, batch by batch, in their order.

    Raises:
        Unreadable: after the batches that could be read, where the file breaks off (damaged compression).
        BadInputError: when the file cannot be opened.
    """
    kind = piece.file.kind
    if kind == "parquet":
        yield from _parquet(piece.file, columns)
    elif kind == "lines":
        yield from _lines(piece, columns)
    else:
        yield from _text(piece.file)


#: What readers of packed files raise where these are damaged; libraries' own errors are put among them below.
_DAMAGED: Final = (EOFError, OSError, zlib.error)


def _zstandard() -> Any:
    """The module of Zstandard that Python has since 3.14, or its forerunner.

    Raises:
        BadInputError: when there is neither.
    """
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise BadInputError("a .zst corpus needs backports.zstd: pip install 'proctor[exposure]'")


class _Opened:
    """A corpus file, unpacked as it is read."""

    def __init__(self, file: CorpusFile) -> None:
        self._raw = opened(file)
        self._begin = 0
        self._damaged: tuple[type[Exception], ...] = _DAMAGED
        self._stream = self._unpacked(file.packing)

    def _unpacked(self, packing: str) -> Any:
        if packing == ".gz":
            try:
                from isal import igzip, igzip_lib
            except ImportError:
                return gzip.GzipFile(fileobj=self._raw)
            self._damaged = (*_DAMAGED, cast("type[Exception]", igzip_lib.IsalError))
            return igzip.IGzipFile(fileobj=self._raw)  # type: ignore[no-untyped-call]  # has no types
        if packing == ".zst":
            zstandard = _zstandard()
            self._damaged = (*_DAMAGED, zstandard.ZstdError)
            return zstandard.ZstdFile(self._raw)
        return self._raw

    @property
    def read_bytes(self) -> int:
        """How many bytes of the file itself have been read, from where reading began."""
        return self._raw.tell() - self._begin

    def seek(self, to: int) -> None:
        """Begin there, in a file that is not packed."""
        self._begin = self._raw.seek(to)

    def read(self, size: int) -> bytes:
        """The next bytes, perhaps fewer; nothing at the end.

        Raises:
            Unreadable: where the file is damaged.
        """
        try:
            data: bytes = self._stream.read(size)
        except self._damaged as error:
            raise Unreadable(str(error) or type(error).__name__) from None
        return data

    def readline(self, size: int) -> bytes:
        """A line, or its beginning; for the first few lines alone, since it reads byte after byte."""
        line = bytearray()
        while len(line) < size and not line.endswith(b"\n"):
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return bytes(line)

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()


class _Rows:
    """Reads lines of JSON into texts."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = tuple(columns)
        # Other fields are passed over without being made into anything.
        fields = [(f"field_{place}", str) for place in range(len(columns))]
        row = msgspec.defstruct("Row", fields, rename=dict(zip((name for name, _ in fields), columns, strict=True)).get)
        self._decoder = msgspec.json.Decoder(row)
        self._names = [name for name, _ in fields]

    def texts(self, chunk: bytes, line_of_first: int) -> tuple[list[str], list[int], list[Skipped], int]:
        """The texts of whole lines, the line of each, what was skipped, and how many lines there were."""
        count = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        try:
            rows = self._decoder.decode_lines(chunk)
        except (msgspec.DecodeError, UnicodeDecodeError):
            rows = []
        if len(rows) == count:
            return [self._text(row) for row in rows], list(range(line_of_first, line_of_first + count)), [], count
        return self._one_by_one(chunk, line_of_first, count)

    def _one_by_one(self, chunk: bytes, first: int, count: int) -> tuple[list[str], list[int], list[Skipped], int]:
        texts: list[str] = []
        lines: list[int] = []
        skipped: list[Skipped] = []
        for number, line in enumerate(chunk.split(b"\n")[:count], first):
            if not line.strip():
                continue
            try:
                texts.append(self._text(self._decoder.decode(line)))
                lines.append(number)
            except UnicodeDecodeError as error:
                skipped.append(Skipped(number, f"byte {error.start + 1} of the text is not UTF-8"))
            except msgspec.ValidationError as error:
                skipped.append(Skipped(number, self._why(str(error))))
            except msgspec.DecodeError as error:
                skipped.append(Skipped(number, f"not JSON: {error}"))
        return texts, lines, skipped, count

    def _why(self, message: str) -> str:
        if "missing required field" in message:
            return f"{message.replace('Object missing required field', 'no column')}"
        return f"no text in {', '.join(map(shown, self._columns))}: {message}"

    def _text(self, row: Any) -> str:
        if len(self._names) == 1:
            text: str = row.field_0
            return text
        return _BETWEEN.join(getattr(row, name) for name in self._names)


def _lines(piece: Piece, columns: Sequence[str]) -> Iterator[Batch]:
    rows = _Rows(columns)
    line = 1
    with _Opened(piece.file) as stream:
        begin = piece.begin
        if begin:
            # One byte early: where a line ends right there, the next one is this piece's first.
            stream.seek(begin - 1)
        for chunk, skipped in _whole_lines(stream, piece, line_of_first=line):
            texts, positions, more, count = rows.texts(chunk, line) if chunk else ([], [], [], len(skipped))
            line += count
            yield _batch(texts, positions, (*skipped, *more), stream.read_bytes, line - 1)


def _whole_lines(stream: _Opened, piece: Piece, *, line_of_first: int) -> Iterator[tuple[bytes, tuple[Skipped, ...]]]:
    """Chunks that end with a line, and lines that are too long, each as a chunk of nothing."""
    at = max(piece.begin - 1, 0)
    held = b""
    is_first = piece.begin > 0
    line = line_of_first
    while True:
        data = stream.read(_CHUNK_BYTES)
        at += len(data)
        chunk = held + data
        if is_first and chunk:
            _, newline, chunk = chunk.partition(b"\n")
            is_first = not newline
        past = piece.end is not None and at >= piece.end
        if past and piece.end is not None:
            chunk, ended = _cut(chunk, len(chunk) - (at - piece.end))
            if ended:
                if chunk:
                    yield chunk, ()
                return
        if not data:
            if chunk:
                yield chunk, ()
            return
        whole, newline, held = chunk.rpartition(b"\n")
        if newline:
            yield whole + newline, ()
            line += chunk.count(b"\n")
        elif len(held) > MAX_LINE_BYTES:
            while held and b"\n" not in held:
                held = stream.read(_CHUNK_BYTES)
                at += len(held)
            held = held.partition(b"\n")[2]
            yield b"", (Skipped(line, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"),)
            line += 1


def _cut(chunk: bytes, keep: int) -> tuple[bytes, bool]:
    """The chunk up to the end of the line that begins before `keep`; whether that end is in it."""
    if keep <= 0:
        return b"", True
    end = chunk.find(b"\n", keep - 1)
    return (chunk[: end + 1], True) if end >= 0 else (chunk, False)


def _text(file: CorpusFile) -> Iterator[Batch]:
    at = 0
    with _Opened(file) as stream:
        held = b""
        while True:
            data = _read_full(stream, MAX_TEXT_BYTES - len(held))
            if not data and at:
                return
            chunk = held + data
            try:
                chunk.decode("utf-8")
                skipped: tuple[Skipped, ...] = ()
            except UnicodeDecodeError as error:
                # A cut may lie within a character.
                is_cut = (at > 0 and error.start < 4) or (len(chunk) == MAX_TEXT_BYTES and error.start > len(chunk) - 4)
                skipped = () if is_cut else (Skipped(at + error.start + 1, "not UTF-8"),)
            if skipped:
                yield Batch(_bytes(b""), np.zeros(1, np.int64), np.zeros(0, np.int64), skipped, stream.read_bytes, 0)
            elif chunk.strip():
                bounds = np.array([0, len(chunk)], dtype=np.int64)
                yield Batch(_bytes(chunk), bounds, np.array([at], dtype=np.int64), (), stream.read_bytes, 0)
            if len(chunk) < MAX_TEXT_BYTES:
                return
            held = chunk[-_OVERLAP_BYTES:]
            at += len(chunk) - len(held)


def _read_full(stream: _Opened, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0 and (data := stream.read(min(size, _CHUNK_BYTES))):
        pieces.append(data)
        size -= len(data)
    return b"".join(pieces)


@contextmanager
def _for_parquet(file: CorpusFile) -> Iterator[Any]:
    """What pyarrow reads: the path of a file that is here, otherwise a stream that gives as much as is asked of it."""
    if not file.scheme:
        yield file.path
        return
    with opened(file) as raw, io.BufferedReader(cast("io.RawIOBase", raw)) as source:
        yield source


def _parquet(file: CorpusFile, columns: Sequence[str]) -> Iterator[Batch]:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    row = 1
    try:
        with _for_parquet(file) as source, parquet.ParquetFile(source) as read_from:
            groups = max(read_from.num_row_groups, 1)
            for group in range(read_from.num_row_groups):
                for batch in read_from.iter_batches(_PARQUET_ROWS, row_groups=[group], columns=list(columns)):
                    cells = [batch.column(name).to_pylist() for name in columns]
                    texts, positions, skipped = [], [], []
                    for number, values in enumerate(zip(*cells, strict=True), row):
                        if all(isinstance(value, str) for value in values):
                            texts.append(_BETWEEN.join(values))
                            positions.append(number)
                        else:
                            skipped.append(Skipped(number, f"no text in {', '.join(map(shown, columns))}"))
                    row += batch.num_rows
                    read = file.size_bytes * (group + 1) // groups
                    yield _batch(texts, positions, tuple(skipped), read, row - 1)
    except (arrow.ArrowException, OSError) as error:
        raise Unreadable(str(error)) from None


def _batch(
    texts: Sequence[str], positions: Sequence[int], skipped: tuple[Skipped, ...], read: int, lines: int
) -> Batch:
    encoded = [_encoded(text) for text in texts]
    bounds = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=bounds[1:])
    return Batch(_bytes(b"".join(encoded)), bounds, np.array(positions, dtype=np.int64), skipped, read, lines)


def _encoded(text: str) -> bytes:
    # The surrogate that stands between columns becomes the byte that stands between them; others become "?".
    if _BETWEEN in text:
        return bytes([BARRIER]).join(part.encode("utf-8", "replace") for part in text.split(_BETWEEN))
    return text.encode("utf-8", "replace")


def _bytes(data: bytes) -> NDArray[np.uint8]:
    # Compiled code is of arrays that may be written; an empty buffer has no address.
    return np.frombuffer(bytearray(data or b" "), dtype=np.uint8)
