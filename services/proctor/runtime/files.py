"""Writing files so that a reader never sees half of one, and none is lost that was written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from proctor.runtime.private import PRIVATE_FILE, PRIVATE_FOLDER

#: A file system that cannot sync a folder, or an owner who keeps it from being read: there is no more to be done.
_CANNOT_BE_SYNCED: Final = frozenset({errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


def write_atomic(path: Path, data: bytes, *, private: bool = True) -> None:
    """Write `data` to `path` through a temporary file beside it and one rename.

    The bytes are on disk before the rename, so a crash leaves the old file or the new one, and the name is before this
    returns. A private file is for its owner alone, whatever the umask, and so are the folders made for it. One that is
    not, such as an export whose name a person gave, has the permissions that an ordinary new file has.
    """
    write_pieces(path, (data,), private=private)


def write_pieces(path: Path, pieces: Iterable[bytes], *, private: bool = True) -> int:
    """Write pieces one after the other as `write_atomic` writes one; how many they were. None is kept in memory."""
    # tempfile's own files are private and have to be opened up afterwards, by an umask that one cannot read safely.
    folder = path.parent
    temporary = folder / f".{path.name}.{secrets.token_hex(8)}"
    mode, folder_mode = (PRIVATE_FILE, PRIVATE_FOLDER) if private else (0o666, 0o777)
    try:
        descriptor = _created(temporary, mode)
    except FileNotFoundError:
        _make_folder(folder, folder_mode)
        descriptor = _created(temporary, mode)
    try:
        count = 0
        with os.fdopen(descriptor, "wb") as stream:
            for count, piece in enumerate(pieces, 1):  # noqa: B007, it is what is returned
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_folder(folder)
    return count


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, as far as its file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_BE_SYNCED:
            raise


def _created(path: Path, mode: int) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)


def _make_folder(folder: Path, mode: int) -> None:
    if not folder.parent.is_dir():
        _make_folder(folder.parent, mode)
    folder.mkdir(exist_ok=True, mode=mode)
    sync_folder(folder.parent)
