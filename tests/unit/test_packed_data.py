"""The real data that the repository brings for its tests."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from pack_test_data import ARCHIVE, PACKED, packed
from tests.support import REPOSITORY, missing, packed_data


def test_the_archive_holds_what_tests_read_and_the_page_names_all_of_it() -> None:
    folder = packed_data()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == set(PACKED)
    page = (REPOSITORY / "tests" / "data" / "README.md").read_text("utf-8")
    for name in PACKED:
        assert name in page or f"{Path(name).parent}/*{Path(name).suffix}" in page
    assert len((folder / "gsm8k" / "test.jsonl").read_text("utf-8").splitlines()) == 1319


def test_the_same_data_is_packed_into_the_same_archive() -> None:
    # Unpacked, because another version of the compressor may do better.
    assert lzma.decompress(packed(packed_data())) == lzma.decompress(ARCHIVE.read_bytes())


def test_the_archive_is_of_the_data_beside_the_repository() -> None:
    beside = REPOSITORY.parent / "shared" / "data"
    if not beside.is_dir():
        missing(f"no real data at {beside}")
    for name in PACKED:
        assert (packed_data() / name).read_bytes() == (beside / name).read_bytes()


def test_data_is_looked_for_where_a_person_says_and_else_beside_the_repository_or_in_the_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests import support

    monkeypatch.setenv("PROCTOR_SHARED_DATA", str(tmp_path))
    assert support.shared_data() == tmp_path
    monkeypatch.delenv("PROCTOR_SHARED_DATA")
    monkeypatch.setattr(support, "REPOSITORY", tmp_path / "repository")
    monkeypatch.setattr(support, "packed_data", lambda: tmp_path / "unpacked")
    assert support.shared_data() == tmp_path / "unpacked"
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert support.shared_data() == tmp_path / "shared" / "data"
