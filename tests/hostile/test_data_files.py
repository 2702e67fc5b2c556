"""Files of items that burst, lie about their size, or have no end: rows and bytes are counted while they are read."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import zipfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import DatasetSection
from proctor.formats import items as items_module
from proctor.formats import rewordings
from proctor.formats.faults import Faults, TooManyFaults
from proctor.formats.gate_calibration import MAX_BYTES, parse_gate_calibration
from proctor.formats.items import load_items
from proctor.formats.logs import archive
from proctor.formats.logs.lighteval_details import _literal
from proctor.formats.logs.reading import read_log
from proctor.formats.meter import ITEM_ROWS, MAX_ROW_BYTES, MAX_ROWS, Limits, Meter
from proctor.formats.rewordings import match_rewordings, parse_rewordings
from proctor.formats.rows import Row, jsonl_rows, read_rows
from proctor.formats.variants_file import parse_variants
from tests.hostile.clock import quick
from tests.hostile.limited import run_limited

LOAD = """
import sys
from pathlib import Path
from proctor.domain.errors import BadInputError
from proctor.domain.suite import DatasetSection
from proctor.formats.items import load_items
try:
    loaded = load_items(DatasetSection(benchmark_name="b", path=sys.argv[1]), Path("/"), Path("/"))
    print("read", len(loaded.items))
except BadInputError as error:
    print("refused", error)
"""


def refusal(path: Path) -> str:
    """What a process with one GiB says of a file of items."""
    ended = run_limited(LOAD, str(path))
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.startswith("refused "), ended.stdout
    return ended.stdout


def repeated(path: Path, rows: int, question: str) -> int:
    """A Parquet file whose every row has the same question, which takes a few bytes however long it is."""
    import pyarrow
    from pyarrow import parquet

    def column(text: str) -> Any:
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), pyarrow.array([text]))

    table = pyarrow.table({"question": column(question), "answer": column("1")})
    options = {"compression": "zstd", "compression_level": 1, "store_schema": False, "write_statistics": False}
    parquet.write_table(table, path, row_group_size=rows, dictionary_pagesize_limit=1 << 30, **options)
    return path.stat().st_size


def test_a_parquet_file_of_some_hundred_bytes_takes_no_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    assert repeated(path, 2_600, "x" * 1_000_000) < 1000
    assert "unpacks to more than 1000 times its size" in refusal(path)


def test_a_parquet_page_that_bursts_ends_the_process_that_reads_it_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    assert repeated(path, 1, "x" * 260_000_000) < 50_000
    assert "takes more than 512 MiB" in refusal(path)


def test_a_parquet_list_without_end_is_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "items.parquet"
    row = {"question": "a", "answer": "b", "choices": ["x"] * 3_000_000}
    parquet.write_table(pyarrow.Table.from_pylist([row]), path, compression="zstd")
    with pytest.raises(BadInputError, match="row 1: the row is longer than 1048576 bytes as JSON"):
        load(path)


def load(path: Path) -> tuple[Item, ...]:
    return load_items(DatasetSection(benchmark_name="b", path=str(path)), Path("/"), Path("/")).items


def test_values_that_json_does_not_know_are_faults_of_their_row(tmp_path: Path) -> None:
    import datetime

    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "items.parquet"
    rows = [
        {"question": "a", "answer": "b", "metadata": {"day": datetime.date(2026, 1, 2), "share": 0.5}},
        {"question": "a", "answer": "b", "metadata": {"day": None, "share": float("nan")}},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    with pytest.raises(BadInputError) as caught:
        load(path)
    assert "row 1: metadata is {'day': datetime.date(2026, 1, 2), 'share': 0.5}, which is not plain JSON" in str(
        caught.value
    )
    assert "row 2: metadata is {'day': None, 'share': nan}, which is not plain JSON" in str(caught.value)


def test_the_process_that_reads_parquet_gets_no_secret_and_no_module_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "items.parquet"
    repeated(path, 3, "a")
    (tmp_path / "json.py").write_text("raise SystemExit('taken from the folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROCTOR_API_KEY", "secret")
    started: list[dict[str, str]] = []
    popen = subprocess.Popen

    def noting(*args: Any, **options: Any) -> Any:
        started.append(options["env"])
        return popen(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", noting)
    assert len(list(read_rows(path, Faults(str(path))))) == 3
    assert len(started) == 1
    assert "secret" not in started[0].values()


def test_a_reader_that_is_left_leaves_no_process(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    repeated(path, 10_000, "a" * 500)
    rows = read_rows(path, Faults(str(path)))
    next(rows)
    # Closed as the garbage collector would: the child's end is waited for, or this would warn.
    assert isinstance(rows, Generator)
    rows.close()


class Endless(io.RawIOBase):
    """The same bytes over and over, up to a size no reader may come to."""

    def __init__(self, piece: bytes, size: int) -> None:
        self._piece = piece
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), self._left) // len(self._piece) * len(self._piece)
        buffer[:size] = self._piece * (size // len(self._piece))
        self._left -= size
        return size


@pytest.mark.parametrize("line", [b"\n", b"{}\n"])
def test_a_file_of_more_lines_than_are_read_is_left(line: bytes) -> None:
    with pytest.raises(BadInputError, match=f"more than {MAX_ROWS:,} rows"), quick(8):
        for _ in jsonl_rows(io.BufferedReader(Endless(line, 1 << 30)), Faults("items.jsonl")):
            pass


def test_rows_are_counted_in_bytes_too() -> None:
    line = b'{"question": "%s"}\n' % (b"x" * 1000)
    with pytest.raises(BadInputError, match="holds more than 1 MiB of rows"):
        for _ in jsonl_rows(io.BytesIO(line * 1100), Faults("items.jsonl"), Limits(total_bytes=1 << 20)):
            pass
    meter = Meter("items.parquet", compressed_bytes=100_000)
    for _ in range(95):
        meter.count(MAX_ROW_BYTES)
    with pytest.raises(BadInputError, match="unpacks to more than 1000 times its size"):
        meter.count(MAX_ROW_BYTES)
    assert ITEM_ROWS.total_bytes == 256 << 20


@pytest.mark.parametrize(
    "content",
    [
        b'question,answer\n"' + b"x" * (MAX_ROW_BYTES + 10),
        b'question,answer\n"' + b"x\n" * MAX_ROW_BYTES,
        b"question,answer\n" + b"," * (MAX_ROW_BYTES + 10),
        b"," * (MAX_ROW_BYTES + 10),
    ],
)
def test_a_csv_row_without_end_is_not_taken_into_memory(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=r"items\.csv(:\d+: a row is longer| has 1 fault)"):
        load(path)


def test_items_are_counted_by_the_memory_that_they_take(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    # One sign of four bytes makes every other of its text take as many.
    path.write_text((json.dumps({"question": "\U0001f600" + "x" * 1_000_000, "answer": "b"}) + "\n") * 150)
    assert "take 512 MiB of memory" in refusal(path)


def test_wide_and_short_items_are_counted_by_what_they_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items_module, "MAX_HELD_BYTES", 1 << 20)
    path = tmp_path / "items.jsonl"
    path.write_text('{"question": "a", "answer": "b"}\n' * 1000)
    with pytest.raises(BadInputError, match=r"the first [56]\d\d items take 1 MiB"):
        load(path)
    # Each empty list takes sixty bytes.
    path.write_text(json.dumps({"question": "a", "answer": "b", "metadata": {"m": [[]] * 20_000}}) + "\n")
    with pytest.raises(BadInputError, match="the first 1 items take 1 MiB"):
        load(path)


def test_a_rewording_of_what_every_item_asks_does_not_make_the_product_of_both() -> None:
    items = [Item(item_id=f"i{n}", question="the same", target="t") for n in range(1500)]
    row = json.dumps({"original": "The same", "question": "other"}).encode() + b"\n"
    rows = parse_rewordings(row * 1500, "rewordings.jsonl")
    with pytest.raises(BadInputError, match="more than 1,000,000 items in all"):
        match_rewordings(rows, items, "b")
    assert rewordings.MAX_MATCHES == 1_000_000


# Archives that lie.


def eval_archive(path: Path, zeros: int, *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr("header.json", b"{}")
        with file.open("samples/1_epoch_1.json", "w", force_zip64=False) as member:
            for _ in range(zeros >> 20):
                member.write(bytes(1 << 20))
    return path.read_bytes()


def lying(data: bytes, said: int) -> bytes:
    """The archive with another size of its last member, in its directory and before the member."""
    changed = bytearray(data)
    directory = changed.rindex(b"PK\x01\x02")
    (offset,) = struct.unpack_from("<I", changed, directory + 42)
    struct.pack_into("<I", changed, directory + 24, said)
    struct.pack_into("<I", changed, offset + 22, said)
    return bytes(changed)


@pytest.mark.parametrize("said", [10, 0, 1 << 30])
def test_an_archive_that_lies_about_a_size_is_refused(tmp_path: Path, said: int) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(lying(eval_archive(path, 2 << 20), said))
    with pytest.raises(BadInputError, match=rf"says that it holds {said:,} bytes, and holds (more|2,097,152)"):
        read_log(path)


def test_an_archive_is_inflated_no_further_than_a_log_may_be(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(lying(eval_archive(path, 64 << 20), 10))
    read = "import sys; from proctor.formats.logs.reading import read_log\ntry: read_log(sys.argv[1])\n"
    read += "except Exception as error: print(type(error).__name__, error)"
    ended = run_limited(read, str(path))
    assert ended.stdout.startswith("BadInputError"), ended.stderr[-2000:]
    assert "says that it holds 10 bytes, and holds more" in ended.stdout


def test_an_archive_that_says_what_it_holds_may_not_hold_more_than_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archive.MAX_UNPACKED_BYTES == 1 << 30
    monkeypatch.setattr(archive, "MAX_UNPACKED_BYTES", 1 << 20)
    eval_archive(tmp_path / "log.eval", 2 << 20)
    with pytest.raises(BadInputError, match="unpacks to more than 1 MiB"):
        read_log(tmp_path / "log.eval")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-2] + b"\x05\x00hello",
        lambda data: b"PK\x03\x04 something before" + data,
        lambda data: data[:-22] + b"more" + data[-22:],
        lambda data: data.replace(b"PK\x03\x04", b"PK\x07\x08"),
        lambda data: data[:60] + data[-200:],
    ],
)
def test_an_archive_that_two_readers_could_read_differently_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(change(eval_archive(path, 1 << 20)))
    with pytest.raises(BadInputError) as caught:
        read_log(path)
    assert "\n" not in str(caught.value)


# Whatever bytes a reader is given, it raises its own error or none.

SEEDS = [
    b'{"question": "a", "answer": "b"}\n',
    b'{"results": [{"id": 1, "correct": true}], "meta": {}}',
    b'{"doc_id": 1, "filter": "none", "resps": [["a"]], "exact_match": 1.0, "doc": {"question": "q"}}\n',
    b'{"version": 2, "status": "success", "eval": {}, "samples": [{}]}',
    b'{"item_id": "a", "rephrased": "b"}\n',
    b'{"schema":"proctor-variants/1"}\n{"kind":"variant"}\n',
    b"id,correct,text\n1,true,a\n",
    b'{"benchmark": "b"}',
    b"PAR1....PAR1",
    b"PK\x03\x04",
]
VALUES = [
    b"null",
    b"1e999",
    b"-1",
    b"9" * 5000,
    b'"\\ud800"',
    b"[]",
    b"{}",
    b"[[[[",
    b"NaN",
    b'"' + b"a" * 300 + b'"',
    b"\xff",
]


def variations() -> Iterator[bytes]:
    """Each seed with each of its values exchanged, cut at every few bytes, doubled, and with signs that matter."""
    import re

    for seed in SEEDS:
        yield from (seed[:cut] for cut in range(0, len(seed), 7))
        yield from (seed + seed, seed.replace(b'"', b"'"), seed.replace(b",", b"\x00"), b"\xef\xbb\xbf" + seed)
        for match in re.finditer(rb'"[^"]*"(?!:)|\b\d+(?:\.\d+)?\b|true|\[[^][]*\]|\{\}', seed):
            yield from (seed[: match.start()] + value + seed[match.end() :] for value in VALUES)


def rows_of(data: bytes) -> list[Row]:
    return list(jsonl_rows(io.BytesIO(data), Faults("x")))


def test_every_reader_raises_its_own_error_or_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in variations():
        path.write_bytes(data)
        tried: list[Callable[[], Any]] = [
            partial(parse_rewordings, data, "x"),
            partial(parse_variants, data, "x"),
            partial(parse_gate_calibration, data, "x"),
            partial(rows_of, data),
        ]
        # The readers that start a process, or load another tool, have their own tests.
        if not data.startswith((b"PAR1", b"PK")) and b'"eval"' not in data:
            tried.append(lambda: read_log(path))
        for read in tried:
            try:
                read()
            except BadInputError as error:
                str(error).encode()
            except TooManyFaults:
                # Caught by whoever gathers the faults of rows.
                pass


@pytest.mark.parametrize(
    "text", ["{[]: 1}", "{{}: 1}", "[" * 9000, "-" * 9000 + "1", "'a' " * 9000, "[1" + "+1" * 9000 + "]"]
)
def test_text_that_is_no_python_value_stays_text(text: str) -> None:
    with quick():
        assert _literal(text) in (text, "a" * 9000)


def test_a_calibration_is_no_larger_than_one_is() -> None:
    with pytest.raises(BadInputError, match="larger than 256 KiB"), quick():
        parse_gate_calibration(b" " * (MAX_BYTES + 1), "calibration.json")
