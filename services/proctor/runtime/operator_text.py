"""What an operator says in a variable: the text itself, or `@` and the path of a file that holds it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError

#: A list of 200,000 digests is 15 MB; more is the wrong file.
MAX_FILE_BYTES: Final = 32 << 20


class OperatorText(NamedTuple):
    """What a variable comes to."""

    text: str
    source: str
    """Where it stands, for messages."""
    file: str = ""
    """The file's path from the root, which says the same in whatever folder a child process starts; empty for none."""


def operator_text(variable: str, value: str) -> OperatorText:
    """Read a variable's text, or the file that it names.

    Raises:
        BadInputError: when the file cannot be read.
    """
    if not value.startswith("@"):
        return OperatorText(value, variable)
    file = Path(value[1:])
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
        if len(content) > MAX_FILE_BYTES:
            reason = f"it is larger than {MAX_FILE_BYTES >> 20} MiB"
        else:
            return OperatorText(content.decode("utf-8-sig"), f"{file} ({variable})", str(file.absolute()))
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError:
        reason = "it is not UTF-8"
    raise BadInputError(
        f"{variable} names the file {value[1:]!r}, which cannot be read: {reason}; mend the path behind the @, or "
        "write the JSON itself"
    )
