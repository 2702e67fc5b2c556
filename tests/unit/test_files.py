"""A file is there as a whole or not at all, and is on disk when the writing of it returns."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.runtime.files import sync_folder, write_atomic


@pytest.mark.parametrize("size", [0, 1, 3 << 20])
def test_a_file_is_written_as_a_whole_into_folders_that_are_made(tmp_path: Path, size: int) -> None:
    path = tmp_path / "deep" / "er" / "file"
    write_atomic(path, b"x" * size)
    assert path.read_bytes() == b"x" * size
    assert os.listdir(path.parent) == ["file"]


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for data in (b"long before", b"now"):
        write_atomic(tmp_path / "file", data)
    assert (tmp_path / "file").read_bytes() == b"now"


@pytest.mark.parametrize(("private", "umask", "mode"), [(False, 0o022, 0o644), (False, 0o077, 0o600), (True, 0, 0o600)])
def test_a_file_is_for_those_whom_the_umask_lets_unless_it_is_private(
    tmp_path: Path, private: bool, umask: int, mode: int
) -> None:
    before = os.umask(umask)
    try:
        write_atomic(tmp_path / "file", b"x", private=private)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomic(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", _failing(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        write_atomic(tmp_path / "file", b"new")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_the_bytes_are_on_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "bytes")
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        steps.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    write_atomic(tmp_path / "file", b"x")
    assert steps == ["bytes", "name", "folder"]
    write_atomic(tmp_path / "new" / "file", b"x")
    assert steps[3:] == ["folder", "bytes", "name", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_a_file_system_that_cannot_sync_a_folder_is_lived_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "fsync", _failing(code))
    sync_folder(tmp_path)


def test_a_disk_that_fails_is_not_lived_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", _failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        sync_folder(tmp_path)


def _failing(code: int) -> Callable[[int], None]:
    def fail(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    return fail
