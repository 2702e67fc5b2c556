"""A dataset of the hub as a corpus: at a commit, checked against it, where the operator lets it be read."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError, ProctorError
from proctor.exposure.corpus import corpus_files, pieces_of
from proctor.exposure.index import build_index
from proctor.exposure.policies import POLICIES
from proctor.exposure.remote import hub_corpus
from proctor.exposure.report import ExposureReport
from proctor.exposure.scanning import scan_corpus
from tests.hostile.hub_stand_in import StandInHub, endless, send, stand_in_hub
from tests.unit.exposure.scans import questions, reported

REVISION = "0123456789abcdef" * 2 + "01234567"
QUESTION = "how many eggs do the ducks of Janet lay in a week"
LINES = [{"text": "nothing"}, {"text": f"he asked {QUESTION}, and left"}, {"text": "nothing more"}]
JSONL = "".join(json.dumps(line) + "\n" for line in LINES).encode()
NAME = "owner/web"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    monkeypatch.delenv("PROCTOR_HUB_DATASETS", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with stand_in_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.files[NAME, REVISION] = {
            "README.md": b"# Web\n",
            "data/a.jsonl": JSONL,
            "data/b.jsonl.gz": gzip.compress(JSONL),
            "data/c.parquet": _parquet(),
            "notes.txt": b"nothing",
        }
        yield hub


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    stream = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(LINES), stream)
    return stream.getvalue()


def search(pattern: str, workers: int = 1, state: Path | None = None) -> ExposureReport:
    items = questions([QUESTION])
    index = build_index(items, 5)
    found = scan_corpus(index, corpus_files([pattern]), workers=workers, state=state)
    return reported(items, index, found, POLICIES["verbatim_item"])


@pytest.mark.parametrize(
    ("pattern", "documents", "first"),
    [
        (f"{NAME}@{REVISION}", 10, "data/a.jsonl"),
        (f"hf://datasets/{NAME}@{REVISION}/data/*.gz", 3, "data/b.jsonl.gz"),
        (f"hf://datasets/{NAME}@{REVISION}/**/*.parquet", 3, "data/c.parquet"),
    ],
)
def test_files_of_a_dataset_are_searched_at_a_commit(hub: StandInHub, pattern: str, documents: int, first: str) -> None:
    report = search(pattern)
    assert (report.n_exposed, report.total.documents, report.total.broken_off) == (1, documents, ())
    assert report.items[0].spans[0]["file"] == f"hf://datasets/{NAME}@{REVISION}/{first}"


def test_processes_find_what_one_finds_and_a_file_is_not_cut_into_pieces(hub: StandInHub) -> None:
    pattern = f"{NAME}@{REVISION}/data/*.jsonl*"
    assert search(pattern, workers=2).document() == search(pattern).document()
    assert len(pieces_of(corpus_files([pattern]), 50)) == 2


def test_what_was_searched_is_not_fetched_again(hub: StandInHub, tmp_path: Path) -> None:
    pattern = f"{NAME}@{REVISION}/data/*.jsonl*"
    first = search(pattern, state=tmp_path)
    hub.asked.clear()
    assert search(pattern, state=tmp_path).document() == first.document()
    # To see which columns the files have.
    assert sum("resolve" in path for path in hub.asked) == 1


def test_a_file_that_is_not_the_commit_s_is_not_searched(hub: StandInHub) -> None:
    files = corpus_files([f"{NAME}@{REVISION}/data/b.jsonl.gz"])
    hub.files[NAME, REVISION]["data/b.jsonl.gz"] = gzip.compress(JSONL.replace(b"eggs", b"eggz"))
    items = questions([QUESTION])
    index = build_index(items, 5)
    with pytest.raises(BadInputError, match=r"b\.jsonl\.gz cannot be read: the dataset 'owner/web'"):
        scan_corpus(index, files)


def test_a_later_file_that_cannot_be_had_breaks_off_and_is_counted(hub: StandInHub) -> None:
    path = f"/datasets/{NAME}/resolve/{REVISION}/data/b.jsonl.gz"
    for answer in (endless, lambda handler: send(handler, b"x"), lambda handler: send(handler, b"", status=404)):
        hub.answers[path] = answer
        report = search(f"{NAME}@{REVISION}/data/*.jsonl*")
        assert (report.n_exposed, report.total.documents) == (1, 3)
        [(file, why)] = report.total.broken_off
        assert file.endswith("b.jsonl.gz")
        assert "the dataset 'owner/web'" in why
        assert report.total.unread_bytes == len(hub.files[NAME, REVISION]["data/b.jsonl.gz"])


def test_a_file_that_is_too_large_is_not_taken(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_corpus, "MAX_FILE_BYTES", 20)
    with pytest.raises(BadInputError, match="larger than the 20 bytes"):
        corpus_files([f"{NAME}@{REVISION}/data/a.jsonl"])


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (NAME, "matches no file; nothing was searched; a dataset of the hub is owner/name@COMMIT"),
        (f"hf://datasets/{NAME}", "names no files of the hub: write hf://datasets/owner/name@COMMIT/glob"),
        (f"hf://datasets/{NAME}@main/*.jsonl", "with the 40 hex digits of a commit, because a branch can move"),
        (f"hf://datasets/../x@{REVISION}/*", "names no files of the hub"),
        (f"hf://owner/web@{REVISION}/*", "names no files of the hub"),
        (f"{NAME}@{REVISION}/*.csv", "matches no file; nothing was searched"),
        (f"owner/none@{REVISION}", "is not on the hub, or not for everybody"),
        (f"{NAME}@{'a' * 40}", "is not on the hub, or not for everybody"),
    ],
)
def test_what_names_no_dataset_is_one_clear_error(hub: StandInHub, pattern: str, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        corpus_files([pattern])


def test_the_operator_s_datasets_are_all_that_is_read(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_HUB_DATASETS", "other/*")
    with pytest.raises(BadInputError, match=r"none of those that PROCTOR_HUB_DATASETS lets be read here \(other/\*\)"):
        corpus_files([f"{NAME}@{REVISION}"])
    assert hub.asked == []


def test_a_hub_that_does_not_answer_is_said(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(ProctorError, match=r"cannot be fetched from the hub(.|\n)*name them in --corpus"):
        corpus_files([f"{NAME}@{REVISION}"])
