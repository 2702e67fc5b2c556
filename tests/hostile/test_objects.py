"""The artifact store: what cannot be read again is not written, and what is damaged takes bounded memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import TooLargeError
from proctor.runtime.artifacts import packing
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.location import S3Location
from proctor.runtime.artifacts.packing import object_name
from proctor.runtime.artifacts.s3 import S3Artifacts
from proctor.runtime.artifacts.store import ArtifactStore
from tests.hostile.limited import run_limited

_GET = """
import sys
from pathlib import Path
from proctor.domain.errors import StoreError
from proctor.runtime.artifacts.local import LocalArtifacts
try:
    LocalArtifacts(Path(sys.argv[1])).get(sys.argv[2])
except StoreError as error:
    print(error)
"""
Opened = Callable[[Path, pytest.MonkeyPatch], ArtifactStore]


def folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    return LocalArtifacts(place)


def bucket(place: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    # Nobody listens there: what is refused must not be sent.
    return S3Artifacts(S3Location("evidence", "", "http://127.0.0.1:9"), retries=0)


@pytest.mark.parametrize("opened", [folder, bucket])
def test_what_cannot_be_read_again_is_not_written(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_OBJECT_BYTES", 1000)
    with pytest.raises(TooLargeError, match=r"1,001 bytes is not stored.*sample_size"):
        opened(tmp_path / "store", monkeypatch).put(bytes(1001))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("data", [bytes(1 << 16), os.urandom(1 << 16)], ids=["compressible", "not compressible"])
def test_what_is_as_large_as_may_be_is_read_again(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_OBJECT_BYTES", len(data))
    store = LocalArtifacts(tmp_path)
    assert store.get(store.put(data)) == data


def test_a_file_in_an_objects_place_is_not_read_to_its_end(tmp_path: Path) -> None:
    digest = bytes_digest(b"content")
    path = tmp_path / object_name(digest)
    path.parent.mkdir(parents=True)
    with path.open("wb") as stream:
        stream.truncate(1 << 40)
    ended = run_limited(_GET, str(tmp_path), digest)
    assert ended.returncode == 0, ended.stderr
    assert "is damaged: it has more than" in ended.stdout


def test_an_object_that_inflates_to_a_gibibyte_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    digest = bytes_digest(b"content")
    path = tmp_path / object_name(digest)
    path.parent.mkdir(parents=True)
    bomb = zlib.compressobj(1)
    head = bomb.compress(bytes(1 << 20)) + bomb.flush(zlib.Z_FULL_FLUSH)
    # A block that refers to nothing before it can be repeated.
    block = bomb.compress(bytes(1 << 20)) + bomb.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(head + block * 1023)
    ended = run_limited(_GET, str(tmp_path), digest)
    assert ended.returncode == 0, ended.stderr
    assert "holds other content than its digest says" in ended.stdout
