"""What comes back of a program that a model wrote: between whoever runs it and whoever judges it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol


class Fault(StrEnum):
    """Why a program gave no results, or not all of them."""

    NOT_LOADED = "the code cannot be loaded, or does not define the function"
    CPU = "it used up its processor time"
    WALL = "it did not end in time"
    OUTPUT = "it gave back more than is read"
    ENDED = "it ended before it was through"
    TOO_LONG = "the code is longer than is run"


class Failed(NamedTuple):
    """Stands for a call that raised."""

    error: str


class Ran(NamedTuple):
    """What came back of a program."""

    values: tuple[Any, ...]
    """What each call gave, in their order, as plain JSON, or `Failed`. Fewer than the calls where it ended before."""
    fault: Fault | None = None


class RunProgram(Protocol):
    """Runs what a model wrote, locked away."""

    def __call__(self, code: str, entry: str, calls: Sequence[Sequence[Any]], /) -> Ran:
        """What the calls of the function `entry` gave.

        Raises:
            CodeExecutionError: where nothing can be run here; never for what the code did.
        """
        ...
