"""What the commands that draw share: their charts in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError
from proctor.runtime.files import write_atomic


def write_charts(charts: Mapping[str, str], folder: Path) -> None:
    """Write the documents under their names, and say each on standard error.

    Raises:
        BadInputError: where the folder cannot be made or written to.
    """
    for name, drawn in charts.items():
        try:
            write_atomic(folder / name, drawn.encode(), private=False)
        except OSError as error:
            raise BadInputError(f"--plot {folder / name} cannot be written: {error.strerror or error}") from None
        say(f"drawn: {folder / name}", err=True)
