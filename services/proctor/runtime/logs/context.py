"""Of what a line in the log is: the audit, stage, shard, message or request that is being worked on.

It is set where a piece of work begins, and follows it into coroutines; who hands work to a thread hands it on
(`carried`). The text format does not show it.
"""

from __future__ import annotations

import contextvars
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, ParamSpec, Protocol, TypeVar

#: What a line may be of; all of them are ids and names, and none is a text of a benchmark or a model.
FIELDS: Final = ("audit_id", "stage", "shard_id", "trial_id", "task", "message_id", "request_id")


class Identified(Protocol):
    """A trial."""

    @property
    def trial_id(self) -> str:
        """Its identifier within its audit."""


P = ParamSpec("P")
T = TypeVar("T")

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
#: The trial that is being asked. Its id is made where a line is: there are as many as prompts, and hardly any line.
trial_in_hand: Final = contextvars.ContextVar[Identified | None]("trial_in_hand", default=None)
_context: contextvars.ContextVar[Mapping[str, str]] = contextvars.ContextVar("log_context", default=_NOTHING)


@contextmanager
def saying(**fields: str | None) -> Iterator[None]:
    """Have the lines of a block be of these, too; what is None says nothing.

    Args:
        fields: of `FIELDS`.
    """
    token = _context.set({**_context.get(), **{name: said for name, said in fields.items() if said is not None}})
    try:
        yield
    finally:
        _context.reset(token)


def said_of_now() -> Mapping[str, str]:
    """What the lines are of here and now."""
    trial = trial_in_hand.get()
    return _context.get() if trial is None else {**_context.get(), "trial_id": trial.trial_id}


def pod_name() -> str:
    """Where this process runs: the name of its pod by the downward API, which is its host name else."""
    return os.environ.get("POD_NAME") or socket.gethostname()


def new_request_id() -> str:
    """What the lines of one call are told by. Drawn here: what a caller says of itself is no part of a log."""
    return secrets.token_hex(8)


def carried(function: Callable[P, T]) -> Callable[P, T]:
    """A function for another thread, whose lines there are of what they would be here."""
    context = contextvars.copy_context()

    def run(*arguments: P.args, **named: P.kwargs) -> T:
        return context.run(function, *arguments, **named)

    return run
