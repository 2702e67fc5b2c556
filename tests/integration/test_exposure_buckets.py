"""A corpus in a bucket: streamed by ranges of the version that was listed, resumed by its ETags, and clear errors."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError, ProctorError
from proctor.exposure.corpus import CorpusFile, corpus_files
from proctor.exposure.documents import documents
from proctor.exposure.index import build_index
from proctor.exposure.policies import POLICIES
from proctor.exposure.remote import bucket as bucket_reader
from proctor.exposure.report import ExposureReport
from proctor.exposure.scanning import scan_corpus
from tests.s3_server import CREDENTIALS, Bucket, moto_server, only_credentials
from tests.support import free_port
from tests.unit.exposure.scans import questions, reported

QUESTION = "how many eggs do the ducks of Janet lay in a week"
LINES = [{"text": "nothing"}, {"text": f"he asked {QUESTION}, and left"}, {"text": "nothing more"}]
JSONL = "".join(json.dumps(line) + "\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture(autouse=True)
def environment(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    only_credentials(monkeypatch, CREDENTIALS)
    monkeypatch.setenv("PROCTOR_S3_ENDPOINT_URL", server)
    bucket_reader.client_of.cache_clear()
    yield
    bucket_reader.client_of.cache_clear()


@pytest.fixture(scope="module")
def bucket(server: str) -> Bucket:
    bucket = Bucket(server, "corpora")
    bucket.write("web/a.jsonl", JSONL * 400)
    bucket.write("web/deep/b.jsonl.gz", gzip.compress(JSONL))
    bucket.write("web/notes.txt", f"so he said: {QUESTION}".encode())
    bucket.write("other/c.jsonl", JSONL)
    bucket.write("web/p.parquet", parquet())
    return bucket


def parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet as pq

    stream = io.BytesIO()
    pq.write_table(pyarrow.Table.from_pylist(LINES * 500), stream, row_group_size=200)
    return stream.getvalue()


def search(pattern: str, state: Path | None = None, workers: int = 1) -> ExposureReport:
    items = questions([QUESTION])
    index = build_index(items, 5)
    found = scan_corpus(index, corpus_files([pattern]), state=state, workers=workers)
    return reported(items, index, found, POLICIES["verbatim_item"])


@pytest.mark.parametrize(
    ("pattern", "file", "documents_read"),
    [
        ("s3://corpora/web/*.jsonl", "web/a.jsonl", 1200),
        ("s3://corpora/web/**/*.jsonl.gz", "web/deep/b.jsonl.gz", 3),
        ("s3://corpora/web/deep/b.jsonl.gz", "web/deep/b.jsonl.gz", 3),
        ("s3://corpora/**/c.jsonl", "other/c.jsonl", 3),
        ("s3://corpora/web/*.txt", "web/notes.txt", 1),
        ("s3://corpora/web/*.parquet", "web/p.parquet", 1500),
    ],
)
def test_objects_are_read_by_globs_whatever_their_form(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, pattern: str, file: str, documents_read: int
) -> None:
    monkeypatch.setattr(bucket_reader, "RANGE_BYTES", 1000)
    report = search(pattern)
    assert (report.n_exposed, report.total.documents, report.total.broken_off) == (1, documents_read, ())
    assert report.items[0].spans[0]["file"] == f"s3://corpora/{file}"


def test_processes_and_pieces_find_what_one_finds(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.exposure import scanning

    whole = search("s3://corpora/web/**/*.jsonl*")
    assert whole.total.documents == 1203
    monkeypatch.setattr(scanning, "pieces_of", lambda files: _in_pieces(files))
    assert search("s3://corpora/web/**/*.jsonl*", workers=2).document() == whole.document()


def _in_pieces(files: tuple[CorpusFile, ...]) -> object:
    from proctor.exposure.corpus import pieces_of

    return pieces_of(files, 20_000)


def test_what_was_searched_is_kept_by_its_etag(bucket: Bucket, tmp_path: Path) -> None:
    bucket.write("kept/a.jsonl", JSONL)
    first = search("s3://corpora/kept/*", tmp_path)
    [kept] = tmp_path.iterdir()
    before = kept.stat().st_mtime_ns
    assert search("s3://corpora/kept/*", tmp_path).document() == first.document()
    assert kept.stat().st_mtime_ns == before
    bucket.write("kept/a.jsonl", JSONL.replace(b"eggs", b"eggz"))
    assert search("s3://corpora/kept/*", tmp_path).n_exposed == 0
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("change", ["other bytes", "shorter", "gone"])
def test_an_object_that_changes_while_it_is_read_breaks_off(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(bucket_reader, "RANGE_BYTES", 4000)
    bucket.write("moving/a.jsonl", JSONL * 100)
    files = corpus_files(["s3://corpora/moving/*.jsonl"])
    if change == "gone":
        bucket.delete("moving/a.jsonl")
    else:
        bucket.write("moving/a.jsonl", JSONL.replace(b"eggs", b"eggz") * (100 if change == "other bytes" else 1))
    items = questions([QUESTION])
    index = build_index(items, 5)
    report = reported(items, index, scan_corpus(index, files, columns=("text",)), POLICIES["verbatim_item"])
    [(file, why)] = report.total.broken_off
    assert file == "s3://corpora/moving/a.jsonl"
    assert ("deleted" if change == "gone" else "changed") in why
    assert report.total.unread_bytes == files[0].size_bytes


def test_what_was_read_before_the_change_counts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from proctor.exposure import documents as reader
    from proctor.exposure.corpus_file import Piece, Unreadable

    monkeypatch.setattr(bucket_reader, "RANGE_BYTES", 4000)
    monkeypatch.setattr(reader, "_CHUNK_BYTES", 4000)
    bucket.write("later/a.jsonl", JSONL * 100)
    [file] = corpus_files(["s3://corpora/later/a.jsonl"])
    batches = documents(Piece(file), ("text",))
    assert len(next(batches).bounds) > 10
    bucket.write("later/a.jsonl", JSONL * 99)
    with pytest.raises(Unreadable, match="changed while it was read"):
        list(batches)


@pytest.mark.parametrize(
    ("pattern", "error", "said"),
    [
        ("s3://corpora/none/*.jsonl", BadInputError, "matches no file; nothing was searched"),
        ("s3://corpora/none.jsonl", BadInputError, "matches no file; nothing was searched"),
        ("s3://corpora", BadInputError, "names a bucket; name its objects"),
        ("s3://no-such-bucket/*.jsonl", ProctorError, "there is no such bucket; create it, or mend --corpus"),
        ("s3://Not_a_bucket/*.jsonl", BadInputError, "names no bucket"),
        ("s3:///x", BadInputError, "names no bucket"),
        ("gs://corpora/x", BadInputError, "a URL of another kind"),
    ],
)
def test_what_names_no_objects_is_one_clear_error(
    bucket: Bucket, pattern: str, error: type[ProctorError], said: str
) -> None:
    with pytest.raises(error, match=said):
        corpus_files([pattern])


def test_without_credentials_the_error_says_which_to_give(
    monkeypatch: pytest.MonkeyPatch, bucket: Bucket, tmp_path: Path
) -> None:
    only_credentials(monkeypatch, {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "none"), "AWS_ROLE_ARN": "arn:aws:x"})
    with pytest.raises(ProctorError, match="no credentials were found; set AWS_ACCESS_KEY_ID"):
        corpus_files(["s3://corpora/web/*.jsonl"])


def test_more_objects_than_are_listed_are_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_reader, "MAX_LISTED_OBJECTS", 2)
    with pytest.raises(BadInputError, match="more than 2 objects under 'web': name a folder further down"):
        corpus_files(["s3://corpora/web/**/*.jsonl"])


def test_a_service_that_does_not_answer_is_said(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_S3_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(ProctorError, match="the service cannot be reached; check PROCTOR_S3_ENDPOINT_URL"):
        corpus_files(["s3://corpora/web/*.jsonl"])
