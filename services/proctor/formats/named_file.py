"""A file that a suite or an option names, read whole: what is parsed afterwards has no more bytes than may be read."""

from __future__ import annotations

from pathlib import Path

from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.formats.meter import MAX_BYTES


def read_named_file(path: Path, named_by: str = "", *, most: int = MAX_BYTES, mend: str = "split it") -> bytes:
    """The bytes of a file.

    Args:
        path: the file.
        named_by: the field or option that names it, for messages; empty where the file itself was given.
        most: bytes that are read.
        mend: what to do with a larger one.

    Raises:
        BadInputError: when it cannot be read, or is larger than any file of its kind may be.
    """
    name = f"{named_by}: {visible(str(path))}" if named_by else visible(str(path))
    try:
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise BadInputError(f"{name} cannot be read: {error.strerror}; check the path") from None
    if len(data) > most:
        raise BadInputError(f"{name} is larger than {most >> 20} MiB: {mend}")
    return data
