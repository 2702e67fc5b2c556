"""What an artifact store holds, object by object, and taking out what is old: the part of it that forgets.

An object's age is the time since it was last put, not since it was first written. Whoever puts what is there already
has it for as long as whoever wrote it: `put` refreshes an object that has come to REFRESH_AFTER, and an object that was
refreshed after a sweep had chosen it is not taken out. In a folder, putting and taking out are kept apart by a lock on
the object's folder, so there is no moment between the look and the deed. In a bucket there are no locks: what is put
between the answer to a page's listing and that page's deletion, some milliseconds, is lost if it was not put for weeks
before; its audit then fails with that cause.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from proctor.runtime.artifacts.names import is_object_name
from proctor.runtime.private import make_folder

#: From this age on, an object that is put again is as new. Well below any period of retention.
REFRESH_AFTER: Final = timedelta(days=1)
#: Objects that are looked at and taken out together: in a folder, so long is another's `put` held up.
BATCH: Final = 256
#: What a writer that died in the middle left behind (`.NAME.RANDOM`); no writer takes so long.
_LEFT_BEHIND: Final = re.compile(r"\.[0-9a-f]{64}\.z\.[0-9a-f]{16}")
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")


class StoredObject(NamedTuple):
    """One object, or what was left of one that never became whole."""

    name: str
    """Below the store's root, e.g. `2c/2cf2….z`."""
    n_bytes: int
    """That it takes, compressed."""
    last_put: datetime
    whole: bool = True


class ForgettingStore(Protocol):
    """An artifact store that can be gone through, and from which objects can be taken out."""

    def get(self, digest: str) -> bytes:
        """See `ArtifactStore`."""
        ...

    def holds(self, digest: str) -> bool:
        """Whether an object is there. Raises StoreError when that cannot be told."""
        ...

    def objects(self) -> Iterator[Sequence[StoredObject]]:
        """Every object, in batches. Raises StoreError when the store cannot be listed."""
        ...

    def take_out(self, objects: Sequence[StoredObject], put_before: datetime) -> Sequence[StoredObject]:
        """Delete objects of one batch, and return them, but for those that were put at or after a time."""
        ...


@contextmanager
def locked_folder(folder: Path, *, alone: bool) -> Iterator[None]:
    """Keep whoever puts objects into a folder and whoever takes them out apart.

    Args:
        folder: made where it is missing.
        alone: to take out; any number may put at a time.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        descriptor = os.open(folder, flags)
    except FileNotFoundError:
        make_folder(folder)
        descriptor = os.open(folder, flags)
    try:
        # A file system without locks of folders (NFS) has only the look at the age left.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def refreshed(path: Path) -> bool:
    """Whether an object is there, and is as new from now on; False where it has to be written."""
    try:
        age_s = time.time() - path.stat().st_mtime
        if age_s > REFRESH_AFTER.total_seconds():
            os.utime(path)
    except (FileNotFoundError, PermissionError):
        # What belongs to another user cannot be made newer, but can be replaced.
        return False
    return True


def objects_in(root: Path) -> Iterator[Sequence[StoredObject]]:
    """The objects of a folder, a fan-out folder after the other. What is not of the store's making is left out."""
    try:
        folders = sorted(path.name for path in root.iterdir() if _FOLDER.fullmatch(path.name))
    except FileNotFoundError:
        return
    for folder in folders:
        batch: list[StoredObject] = []
        with suppress(NotADirectoryError), os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}/{entry.name}"
                whole = is_object_name(name)
                if whole or _LEFT_BEHIND.fullmatch(entry.name):
                    with suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        put = datetime.fromtimestamp(found.st_mtime, UTC)
                        batch.append(StoredObject(name, found.st_size, put, whole))
                if len(batch) >= BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch


def take_out_of(root: Path, objects: Sequence[StoredObject], put_before: datetime) -> list[StoredObject]:
    """Delete objects of one batch, and return them, but for those that were put at or after a time."""
    if not objects:
        return []
    gone: list[StoredObject] = []
    with locked_folder((root / objects[0].name).parent, alone=True):
        for one in objects:
            path = root / one.name
            with suppress(FileNotFoundError):
                # It may have been put again since it was listed.
                if path.stat().st_mtime < put_before.timestamp():
                    path.unlink()
                    gone.append(one)
    return gone
