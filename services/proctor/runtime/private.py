"""Keeping what Proctor stores from everybody but its owner, whatever the umask, and tightening what is found loose.

A home holds prompts, answers, keys of a stack and everything that a decision rests on, on machines that others use
too. New files are made private where they are made (`proctor.runtime.files`), and processes that run other people's
code in a home (servers, workers) have a umask on top. What earlier versions left loose, or somebody opened, is
tightened when a home is opened.

Standard library only: the supervisor imports it, and must stay light.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

#: For the whole life of a process that only ever writes what is its owner's.
PRIVATE_UMASK: Final = 0o077
PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
#: A home's own folders, and theirs, are always gone into. Below them a folder that is private was made by a version
#: that makes everything private: the objects in each of 256 folders of the artifact store, three files for a report.
_ALWAYS_SEEN: Final = 2
_SIDE_FILES: Final = ("", "-wal", "-shm", "-journal")


def work_privately() -> None:
    """Have every file that this process or a child of it makes be its owner's alone. For a process's start."""
    os.umask(PRIVATE_UMASK)


def make_folder(folder: Path) -> None:
    """Make a private folder, and the folders above it that are missing; one that is there stays as it is."""
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(exist_ok=True, mode=PRIVATE_FOLDER)


def prepare_database(path: Path) -> None:
    """Have a database file of SQLite's be private before SQLite opens it: the files beside it get its permissions."""
    make_folder(path.parent)
    # One that is there may be open in this process, whose locks on it end with any descriptor of it that is closed.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
    for end in _SIDE_FILES:
        with suppress(OSError), _opened(f"{path}{end}") as descriptor:
            _close_to_others(descriptor)


def tighten(folder: Path, *, seen: int = _ALWAYS_SEEN) -> None:
    """Take from everybody else what a folder, and what is in it, lets them do. Does nothing where it is missing.

    Links are not followed, and what belongs to another user is left to him. The folder itself comes first: nobody
    comes in by a new way while the rest is gone through.

    Args:
        folder: e.g. a home.
        seen: how many levels of folders are gone into although they are private.
    """
    with suppress(OSError), _opened(folder.resolve(), os.O_DIRECTORY) as descriptor:
        _tighten(descriptor, seen)


def tighten_stores(home: Path, artifacts: str) -> None:
    """Tighten a home, and the folder of artifacts where that is elsewhere. For a command or process that opens them.

    Args:
        home: the home's folder, which may be missing.
        artifacts: as in the settings; what is no folder is left alone.
    """
    tighten(home)
    if "://" not in artifacts and not Path(artifacts).is_relative_to(home):
        tighten(Path(artifacts), seen=1)


def _tighten(folder: int, seen: int) -> None:
    if seen > 0:
        _close_to_others(folder)
    with os.scandir(folder) as entries:
        for entry in entries:
            # One that went meanwhile, or cannot be opened, keeps no other from being seen to.
            with suppress(OSError):
                _tighten_entry(folder, entry, seen - 1)
    # Only now: a walk that was interrupted comes to it again.
    _close_to_others(folder)


def _tighten_entry(folder: int, entry: os.DirEntry[str], seen: int) -> None:
    found = entry.stat(follow_symlinks=False)
    if found.st_uid != os.geteuid():
        return
    if stat.S_ISDIR(found.st_mode) and (seen > 0 or _is_loose(found)):
        with _opened(entry.name, os.O_DIRECTORY, folder) as descriptor:
            _tighten(descriptor, seen)
    elif stat.S_ISREG(found.st_mode) and _is_loose(found):
        with _opened(entry.name, 0, folder) as descriptor:
            _close_to_others(descriptor)


def _is_loose(found: os.stat_result) -> bool:
    return bool(stat.S_IMODE(found.st_mode) & PRIVATE_UMASK)


def _close_to_others(descriptor: int) -> None:
    found = os.fstat(descriptor)
    if _is_loose(found) and found.st_uid == os.geteuid():
        # By this name, because a descriptor with O_PATH takes no fchmod.
        Path(f"/proc/self/fd/{descriptor}").chmod(stat.S_IMODE(found.st_mode) & ~PRIVATE_UMASK)


@contextmanager
def _opened(path: str | Path, flags: int = 0, folder: int | None = None) -> Iterator[int]:
    # By descriptor and never through a link: in a folder that was open to others, a name may become another file's.
    # Files are not really opened (O_PATH): closing one would end this process' locks on it, SQLite's among them.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_RDONLY if flags & os.O_DIRECTORY else os.O_PATH)
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
