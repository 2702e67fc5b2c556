"""Audits shown while they run: live on a terminal, line by line elsewhere, or as JSON lines for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from proctor.cli.audits.status_lines import last_look, progress, step
from proctor.cli.terminal import clean, say
from proctor.gateway.status import AuditStatus

#: Between two lines of an audit in one state, in seconds: enough to see that it lives, and a log stays readable.
_LINE_S: Final = 10.0
#: The same for JSON lines.
_JSON_S: Final = 1.0


class _View(Protocol):
    def __call__(self, status: AuditStatus) -> None: ...


def follow(seen: Iterable[Sequence[AuditStatus]], *, output: str = "table") -> list[AuditStatus]:
    """Show audits side by side until they end, and return what they ended with.

    Args:
        seen: the audits as they are, again and again.
        output: `json` prints a JSON object a line on standard output; anything else goes to standard error.
    """
    console = Console(stderr=True)
    shown: AbstractContextManager[_View]
    if output == "json":
        shown = nullcontext(_Lines(_print_json_line, _JSON_S))
    elif console.is_terminal:
        shown = _Bars(console)
    else:
        shown = nullcontext(_Lines(_say_line, _LINE_S, _say_look))
    last: Sequence[AuditStatus] = ()
    with shown as show:
        for last in seen:
            for status in last:
                show(status)
    return list(last)


class _Bars(AbstractContextManager["_Bars"]):
    """A bar an audit, on a terminal."""

    def __init__(self, console: Console) -> None:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
        )
        self._progress = Progress(*columns, console=console)
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, status: AuditStatus) -> None:
        if status.audit_id not in self._bars:
            self._bars[status.audit_id] = self._progress.add_task(clean(status.model_id), total=None, words="")
        trials = status.trials
        # The bar says how many trials there are.
        _, _, pace = progress(status).partition(", ")
        words = [step(status), *([] if status.ended else filter(None, (pace, last_look(status))))]
        self._progress.update(
            self._bars[status.audit_id],
            total=(trials and trials.planned) or None,
            completed=trials.done + trials.dead if trials else 0,
            words=clean(", ".join(words)),
        )


class _Lines:
    """A line where an audit comes to another state, and one now and then where it goes on in the same."""

    def __init__(
        self, write: Callable[[AuditStatus, bool], None], every_s: float, tell_look: _View = lambda status: None
    ) -> None:
        self._write = write
        self._tell_look = tell_look
        self._every_s = every_s
        self._told: dict[str, tuple[AuditStatus, float]] = {}

    def __call__(self, status: AuditStatus) -> None:
        before, at_s = self._told.get(status.audit_id, (None, 0.0))
        moved = before is None or (before.state, before.paused) != (status.state, status.paused)
        looked = last_look(status)
        now = time.monotonic()
        if looked and (before is None or looked != last_look(before)):
            self._tell_look(status)
        if moved or (status != before and now - at_s >= self._every_s):
            self._told[status.audit_id] = (status, now)
            self._write(status, moved)


def _say_line(status: AuditStatus, moved: bool) -> None:
    how_far = progress(status)
    line = f"{status.model_id}: {step(status)}"
    say(line if moved or not how_far else f"{line}: {how_far}", err=True)


def _say_look(status: AuditStatus) -> None:
    say(f"{status.model_id}: {last_look(status)}", err=True)


def _print_json_line(status: AuditStatus, moved: bool) -> None:
    click.echo(json.dumps(status.plain(), ensure_ascii=True))
