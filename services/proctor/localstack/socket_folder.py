"""A folder for Unix sockets: short enough for the kernel, plain enough for a URL, and for its owner alone."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

from proctor.domain.errors import StackError

#: The kernel takes 107 bytes for a socket's path; the folder leaves room for the longest name in it.
_MAX_PATH_BYTES: Final = 107
_LONGEST_NAME: Final = len("/metrics")
#: What every reader of a URL takes for the same path.
_PLAIN: Final = re.compile(r"(/[A-Za-z0-9._-]+)+", re.ASCII)


def socket_folder(home: Path, name: str) -> Path:
    """A folder of a home, made for its owner alone: HOME/run/NAME, or where that will not do one in TMPDIR.

    Raises:
        StackError: somebody else has the folder in TMPDIR, or it cannot be made.
    """
    folder = home / "run" / name
    if not (_PLAIN.fullmatch(str(folder)) and len(str(folder)) + _LONGEST_NAME <= _MAX_PATH_BYTES):
        # Named by the home: the same for every process, and nothing is left behind but this one.
        digest = hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"proctor-{os.getuid()}-{digest}"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        # In a folder that everybody may write to, the name may have been taken by somebody else.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise StackError(f"{folder} belongs to somebody else; set TMPDIR to a folder of your own")
        folder.chmod(0o700)
    except OSError as error:
        raise StackError(f"the folder {folder} for sockets cannot be made: {error.strerror}") from None
    return folder
