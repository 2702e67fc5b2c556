"""What a Lua script takes and gives: declared once, for the type checker and for the script itself.

A script of a package lies in its folder `lua`. Its declaration names its keys, its arguments and the columns of the
rows behind them, and from it come the names by which the script knows them:

    key.NAME    a key
    arg.NAME    an argument, as text
    FIRST       where the rows begin in ARGV
    WIDTH       how many values a row has: `for i = FIRST, #ARGV, WIDTH do local a, b = unpack(ARGV, i, i + WIDTH - 1)`

Before these comes what every script begins with (`lua/step.lua`), behind them the parts that it shares with others or
that can be read by themselves (`lua/parts`), and last the script.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, Final, Generic, NamedTuple, TypeVar

Value = str | int | float
"""What a script can be handed."""

Key = TypeVar("Key", bound=str)
Arguments = TypeVar("Arguments", bound=tuple[Value, ...])
Row = TypeVar("Row", bound=tuple[Value, ...])
Reply = TypeVar("Reply")

_STEP: Final = ("proctor.runtime.redis", "step")


class NoArguments(NamedTuple):
    """Of a script that takes keys alone, or keys and rows."""


class ShardId(NamedTuple):
    """A row that is the id of a shard, and nothing else."""

    shard_id: str


@dataclass(frozen=True, eq=False)
class Script(Generic[Key, Arguments, Row, Reply]):
    """A script, by the names of its keys (a Literal of those that its store has), and what it takes and gives.

    `Script[Literal["queue"], LeaseArguments, ShardId, list[str]]`: with Never for Row it takes no rows.
    """

    package: str
    """Whose folder `lua` holds it."""
    name: str
    """Of its file, without `.lua`."""
    keys: tuple[Key, ...]
    """In the order of KEYS. All of them are of one slot."""
    arguments: type[Arguments]
    """A NamedTuple: in the order of ARGV."""
    reply: Callable[[Any], Reply]
    """Makes what the caller gets of what Redis answered."""
    row: type[Row] | None = None
    """A NamedTuple: one row of what follows the arguments, as often as there is one."""
    parts: tuple[str, ...] = ()
    """Files of `lua/parts` that it uses, in the order in which they use each other."""

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the arguments, in their order."""
        return _fields(self.arguments)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of a row's values, in their order; none where it takes no rows."""
        return () if self.row is None else _fields(self.row)

    @cached_property
    def text(self) -> str:
        """What Redis is given."""
        own = [(self.package, f"parts/{part}") for part in self.parts] + [(self.package, self.name)]
        return "".join((_lua(*_STEP), self._names(), *(_lua(*file) for file in own)))

    @cached_property
    def digest(self) -> str:
        """By which Redis knows it once it has seen it."""
        # Redis' own, and no matter of security.
        return hashlib.sha1(self.text.encode("utf-8"), usedforsecurity=False).hexdigest()

    def _names(self) -> str:
        keys = ", ".join(f"{name} = KEYS[{place}]" for place, name in enumerate(self.keys, 1))
        arguments = ", ".join(f"{name} = ARGV[{place}]" for place, name in enumerate(self.argument_names, 1))
        first, width = len(self.argument_names) + 1, max(1, len(self.columns))
        return f"local key = {{{keys}}}\nlocal arg = {{{arguments}}}\nlocal FIRST, WIDTH = {first}, {width}\n"


def values(arguments: Iterable[Value], rows: Iterable[Iterable[Value]]) -> Iterator[Value]:
    """Arguments and rows as a script takes them, one value after another."""
    yield from arguments
    for row in rows:
        yield from row


def _fields(kind: type[tuple[Value, ...]]) -> tuple[str, ...]:
    # Of every NamedTuple, for which there is no type.
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return names


def _lua(package: str, file: str) -> str:
    return files(package).joinpath(f"lua/{file}.lua").read_text("utf-8")
