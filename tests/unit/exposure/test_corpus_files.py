"""What a corpus may be: packed, in columns, in plain text, damaged, empty; each is read, counted or refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from proctor.domain.errors import BadInputError, ProctorError
from proctor.exposure import documents
from proctor.exposure.corpus import corpus_files, pieces_of
from proctor.exposure.index import build_index
from proctor.exposure.policies import POLICIES
from proctor.exposure.report import ExposureReport, check_skipped
from proctor.exposure.scanning import scan_corpus
from tests.unit.exposure.scans import questions, reported

QUESTION = "how many eggs do the ducks of Janet lay in a week"
LINES = [{"text": "nothing"}, {"text": f"he asked {QUESTION}, and left"}, {"text": "nothing more"}]
JSONL = "".join(json.dumps(line) + "\n" for line in LINES).encode()


def search(pattern: Path | str, columns: tuple[str, ...] = (), most: float = 1.0) -> ExposureReport:
    items = questions([QUESTION])
    index = build_index(items, 5)
    files = corpus_files([str(pattern)])
    report = reported(items, index, scan_corpus(index, files, columns=columns), POLICIES["verbatim_item"])
    check_skipped(report, sum(file.size_bytes for file in files), most)
    return report


def parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("c.jsonl", bytes),
        ("c.jsonl.gz", gzip.compress),
        ("c.jsonl.zst", zstd.compress),
        ("c.ndjson", lambda data: data.replace(b"\n", b"\r\n")),
        ("two frames.jsonl.zst", lambda data: zstd.compress(data[:50]) + zstd.compress(data[50:])),
        ("two members.jsonl.gz", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
        ("no last line end.jsonl", bytes.rstrip),
        ("odd[1].jsonl", bytes),
        ("blank lines.jsonl", lambda data: data.replace(b"\n", b"\n\n")),
    ],
)
def test_rows_are_read_packed_or_not(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(JSONL))
    report = search(tmp_path / name)
    assert (report.n_exposed, report.total.documents, report.total.skipped) == (1, 3, 0)
    assert report.items[0].spans[0]["document"] == (3 if name.startswith("blank") else 2)


def test_parquet_is_read_by_its_columns_and_a_row_without_text_is_skipped(tmp_path: Path) -> None:
    path = parquet(tmp_path / "c.parquet", {"n": [1, 2, 3], "content": ["nothing", None, f"so: {QUESTION}"]})
    report = search(path)
    assert (report.n_exposed, report.total.documents, report.total.skipped) == (1, 2, 1)
    assert report.items[0].spans[0]["document"] == 3
    assert report.total.skipped_places[0].position == 2


def test_plain_text_is_a_document_and_what_lies_on_a_cut_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_TEXT_BYTES", 4000)
    monkeypatch.setattr(documents, "_OVERLAP_BYTES", 500)
    text = "é nothing \n" * 360 + QUESTION.replace(" ", "\n") + " é nothing" * 900
    for name, pack in (("c.txt", bytes), ("c.md.gz", gzip.compress)):
        (tmp_path / name).write_bytes(pack(text.encode()))
        report = search(tmp_path / name)
        assert (report.n_exposed, report.total.skipped) == (1, 0)
        [span] = report.items[0].spans
        at = span["document"] + span["offset"]
        assert text.encode()[at:].startswith(span["document_text"].encode())


def test_every_line_that_is_no_row_is_counted_with_its_place(tmp_path: Path) -> None:
    bad = [b'{"text": "half', b"[1]", b'{"text": 5}', b'{"other": "x"}', b'{"text": "\xff"}', b"\x00\x01"]
    (tmp_path / "c.jsonl").write_bytes(JSONL + b"\n".join(bad) + b"\n" + JSONL)
    scanned = search(tmp_path / "c.jsonl").total
    assert (scanned.documents, scanned.skipped) == (6, len(bad))
    assert [one.position for one in scanned.skipped_places] == list(range(4, 4 + len(bad)))
    reasons = " | ".join(one.reason for one in scanned.skipped_places)
    for said in ("not JSON", "no column `text`", "UTF-8", "no text in 'text'"):
        assert said in reasons


def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_CHUNK_BYTES", 64)
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 300)
    (tmp_path / "c.jsonl").write_bytes(json.dumps({"text": "x " * 2000}).encode() + b"\n" + JSONL)
    report = search(tmp_path / "c.jsonl")
    assert (report.n_exposed, report.total.documents, report.total.skipped) == (1, 3, 1)
    assert report.total.skipped_places[0].position == 1
    assert report.items[0].spans[0]["document"] == 3


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("c.jsonl.gz", gzip.compress(JSONL * 500)[:-40]),
        ("c.jsonl.gz", gzip.compress(JSONL * 500, mtime=0)[:100] + b"\xff" * 60),
        ("c.jsonl.zst", zstd.compress(b"".join(b'{"text": "%d"}\n' % n for n in range(90000)))[:-1000]),
        ("c.txt.gz", b"no gzip at all"),
    ],
)
def test_a_packed_file_that_breaks_off_is_said_and_what_came_before_is_kept(
    tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "whole.jsonl").write_bytes(JSONL)
    report = search(tmp_path / "*")
    assert report.n_exposed == 1
    [(file, why)] = report.total.broken_off
    assert file.endswith(name)
    assert why
    with pytest.raises(ProctorError, match=f"{name} breaks off"):
        search(tmp_path / name, most=0.0)


def test_other_encodings_are_skipped_and_said(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_bytes("un été à la mer, où l'on dort beaucoup".encode("latin-1"))
    with pytest.raises(ProctorError, match=r"c\.txt:4: not UTF-8"):
        search(tmp_path / "c.txt")


@pytest.mark.parametrize("data", [b"", b"\n\n", b"  "])
@pytest.mark.parametrize("name", ["c.jsonl", "c.txt"])
def test_an_empty_corpus_is_no_verdict(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ProctorError, match="nothing was searched"):
        search(tmp_path / name)


def test_a_corpus_of_which_too_much_was_skipped_gives_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(JSONL + b"half\n")
    with pytest.raises(ProctorError, match=r"25 % of the corpus could not be read, more than the 20 %(.|\n)*c.jsonl:4"):
        search(tmp_path / "c.jsonl", most=0.2)
    assert search(tmp_path / "c.jsonl", most=0.25).n_exposed == 1


def test_a_pattern_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="matches no file; nothing was searched"):
        corpus_files([str(tmp_path / "*.jsonl")])
    with pytest.raises(BadInputError, match="is a folder"):
        corpus_files([str(tmp_path)])


def test_a_column_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(JSONL)
    with pytest.raises(BadInputError, match=r"no column 'body', only 'text'(.|\n)*--text-column"):
        search(tmp_path / "c.jsonl", columns=("body",))
    (tmp_path / "numbers.jsonl").write_bytes(b'{"n": 1}\n')
    with pytest.raises(BadInputError, match="no column of text"):
        search(tmp_path / "numbers.jsonl")
    with pytest.raises(BadInputError, match="no column of text"):
        search(parquet(tmp_path / "c.parquet", {"n": [1]}))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(BadInputError, match="cannot be read as Parquet"):
        search(tmp_path / "broken.parquet")


def test_the_usual_columns_are_found_and_otherwise_all_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": "a", "text": "x", "content": QUESTION}) + "\n", "utf-8")
    assert search(tmp_path / "c.jsonl").n_exposed == 0
    assert search(tmp_path / "c.jsonl", columns=("content",)).n_exposed == 1
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": 1, "q": "x", "a": QUESTION}) + "\n", "utf-8")
    assert search(tmp_path / "c.jsonl").n_exposed == 1


def test_files_are_searched_once_each_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(JSONL)
    files = corpus_files([str(tmp_path / "*.jsonl"), str(tmp_path / "b.jsonl")])
    assert [Path(file.path).name for file in files] == ["a.jsonl", "b.jsonl"]
    assert len(pieces_of(files, 50)) == 2 * -(-len(JSONL) // 50)
