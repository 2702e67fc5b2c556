"""How far a scan has come, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from proctor.cli.terminal import say

#: What is quicker says nothing; where there is no terminal, a line this often.
_QUIET_S: Final = 2.0
_LINE_EVERY_S: Final = 10.0


@contextmanager
def scan_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line now and then elsewhere; both after two seconds."""
    begun_s = told_s = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task("", total=None)
            yield lambda read, total: bars.update(task, completed=read, total=total)
        return

    def tell(read: int, total: int) -> None:
        nonlocal told_s
        now_s = time.monotonic()
        if now_s - begun_s > _QUIET_S and now_s - told_s > (_LINE_EVERY_S if told_s > begun_s else _QUIET_S):
            told_s = now_s
            pace = read / (now_s - begun_s) / 1e6
            say(f"read {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {pace:.0f} MB/s", err=True)

    yield tell
