"""The folder through which a chaos run speaks to the processes that it torments, and in which they say what they did.

Orders are files, because a file can be taken by exactly one process (one `unlink` succeeds) and outlives all of them.
What happened is one line of JSON an event, appended with one write: lines of several processes never mix. The checker
reads none of it; it is what figures such as recovery times are made of.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


class Control:
    """Orders to workers, and their log of events."""

    def __init__(self, folder: Path) -> None:
        self._orders = folder / "orders"
        self._orders.mkdir(parents=True, exist_ok=True)
        self._events = folder / "events.jsonl"

    def order(self, name: str, value: str = "1") -> None:
        """Leave an order, for whoever takes it or looks at it."""
        temporary = self._orders / f".{name}.{os.getpid()}"
        temporary.write_text(value)
        temporary.replace(self._orders / name)

    def standing(self, name: str) -> str | None:
        """The value of an order that stands, without taking it."""
        try:
            return (self._orders / name).read_text()
        except FileNotFoundError:
            return None

    def take(self, name: str) -> bool:
        """Take an order; True for exactly one process."""
        try:
            (self._orders / name).unlink()
        except FileNotFoundError:
            return False
        return True

    def withdraw(self, name: str) -> None:
        """Take an order back, if it still stands."""
        with suppress(FileNotFoundError):
            (self._orders / name).unlink()

    def log(self, event: str, **details: Any) -> None:
        """Append an event. The clock is the system's monotonic one, which all processes of a machine share."""
        row = {"event": event, "at": time.monotonic(), "pid": os.getpid(), **details}
        descriptor = os.open(self._events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(row).encode() + b"\n")
        finally:
            os.close(descriptor)

    def events(self) -> list[dict[str, Any]]:
        """Everything that was logged, in order."""
        try:
            return [json.loads(line) for line in self._events.read_text().splitlines()]
        except FileNotFoundError:
            return []
