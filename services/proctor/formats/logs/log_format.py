"""What a format of logs is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proctor.domain.run_log import RunLog
from proctor.formats.logs.log_file import LogFile


@dataclass(frozen=True)
class LogFormat:
    """One tool's logs: how they are known by their content, and what they say."""

    fits: Callable[[LogFile], bool]
    """Whether a file is of this format, as far as its beginning tells. BadInputError of the file says that it cannot
    be told."""
    read: Callable[[LogFile], Sequence[RunLog]]
    """The runs of a file that fits, one for each filter, scorer or metric, the log's own primary one first. Raises
    BadInputError with file and line at the first row that is not what it should be."""
    ungraded: Callable[[LogFile], RunLog] | None = None
    """What was asked and answered, whatever the log makes of it; by default the first of `read`. For a tool whose logs
    may have no grades. Raises as `read`."""
