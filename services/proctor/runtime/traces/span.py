"""What a span says, and what stands in its place where none is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Protocol, TypeAlias

Value: TypeAlias = str | int | float | bool | None
Attributes: TypeAlias = Mapping[str, Value]


class Kind(Enum):
    """Which side of an exchange a span is of, in OpenTelemetry's words."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    """A span that has begun."""

    def set(self, attributes: Attributes) -> None:
        """Say more of it; what is None says nothing."""

    def failed(self, kind: str) -> None:
        """Say that it failed, in one word of ours: messages of errors quote prompts and answers."""


class _Nothing:
    """In a span's place where none is recorded."""

    def set(self, attributes: Attributes) -> None:
        """Nothing is said."""

    def failed(self, kind: str) -> None:
        """Nothing is said."""


NOTHING: Final = _Nothing()
