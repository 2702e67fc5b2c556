"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

# Reading the umask means setting it: once, while there is one thread.
_UMASK = os.umask(0)
os.umask(_UMASK)


def write_atomic(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write `data` to `path` through a temporary file beside it and one rename.

    The bytes are on disk before the rename, so a crash leaves the old file or the new one. A private file is for its
    owner alone; any other has the permissions that an ordinary new file has.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if not private:
                # mkstemp's files are for their owner alone, but a report may be read under another user's id.
                os.fchmod(stream.fileno(), 0o666 & ~_UMASK)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
