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
_DRAWN_EVERY_S: Final = 0.1


@contextmanager
def scan_progress() -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line now and then elsewhere; both after two seconds."""
    begun_s = told_s = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

        # Drawn when something is told, and not by a thread: a scan may fork, and must be alone then.
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bars:
            task = bars.add_task("", total=None)

            def draw(read: int, total: int) -> None:
                nonlocal told_s
                if time.monotonic() - told_s > _DRAWN_EVERY_S:
                    told_s = time.monotonic()
                    bars.update(task, completed=read, total=total, refresh=True)

            yield draw
        return

    def tell(read: int, total: int) -> None:
        nonlocal told_s
        now_s = time.monotonic()
        if now_s - begun_s > _QUIET_S and now_s - told_s > (_LINE_EVERY_S if told_s > begun_s else _QUIET_S):
            told_s = now_s
            pace = read / (now_s - begun_s) / 1e6
            say(f"read {read / 1e6:,.0f} of {total / 1e6:,.0f} MB, {pace:.0f} MB/s", err=True)

    yield tell
