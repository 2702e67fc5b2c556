"""Which services of the local stack are away while somebody waits for its work, and when they are back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from proctor.cli.terminal import say
from proctor.domain.errors import StackError, StoreError

if TYPE_CHECKING:
    from proctor.localstack.stack import LocalStack

T = TypeVar("T")

#: How often a stack is asked about its services.
_EVERY_S: Final = 2.0
#: A store that a supervisor starts again is back within its longest delay between restarts, and then reads its file.
_PATIENCE_S: Final = 60.0
_RETRY_S: Final = 0.5


def running_stack(home: Path) -> LocalStack | None:
    """The stack that runs in a home, if one does."""
    from proctor.localstack.stack import LocalStack

    try:
        return LocalStack.attach(home)
    except StackError:
        return None


class Attendant:
    """Says on standard error which services of a stack are away. Without a stack it has nothing to say."""

    def __init__(self, stack: LocalStack | None) -> None:
        self._stack = stack
        self._away: dict[str, str] = {}
        self._next_s = 0.0

    def say_away(self) -> None:
        """Say it of every service of which it has changed."""
        if self._stack is None:
            return
        from proctor.localstack.service import ServiceState

        ready = ServiceState.READY
        away = {
            row.name: f"{row.state}: {row.detail}".rstrip(": ") for row in self._stack.status() if row.state != ready
        }
        for name, why in away.items():
            if name not in self._away:
                say(f"{name} is away ({why})", err=True)
        for name in self._away.keys() - away.keys():
            say(f"{name} is back", err=True)
        self._away = away

    def check(self) -> None:
        """The same every few seconds, for whoever waits.

        Raises:
            StackError: a service is given up, or the supervisor has died; with the tail of its log.
        """
        if self._stack is not None and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + _EVERY_S
            self.say_away()
            self._stack.check()

    def patiently(self, look: Callable[[], T]) -> T:
        """What a look at the stores gives, as soon as they answer: those of a stack are started again when they die.

        Raises:
            StoreError: when they do not answer for a minute, or are of no stack.
            StackError: as `check`.
        """
        began_s = time.monotonic()
        while True:
            try:
                return look()
            except StoreError:
                if self._stack is None or time.monotonic() - began_s > _PATIENCE_S:
                    raise
            self.check()
            time.sleep(_RETRY_S)
