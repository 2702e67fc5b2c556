"""Faults of a data file, gathered so that a person can mend them all at once."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from proctor.domain.errors import BadInputError

#: Enough to see what is wrong with a file; a file of the wrong kind would list every line.
MAX_FAULTS: Final = 10
_SHOWN_CHARACTERS: Final = 80


class TooManyFaults(Exception):
    """Reading on would only repeat what is known. Caught by whoever gathers the faults."""


class Faults:
    """The faults found so far in one file."""

    def __init__(self, source: str, *, unit: str = "") -> None:
        self.source = source
        self._unit = unit
        self._lines: list[str] = []

    def add(self, position: int, text: str) -> None:
        """Note a fault at a line (or a row, in a file without lines), both counted from 1.

        Raises:
            TooManyFaults: when `MAX_FAULTS` are noted.
        """
        self._lines.append(f"{self.source}:{self._unit}{position}: {text}")
        if len(self._lines) >= MAX_FAULTS:
            raise TooManyFaults

    def __bool__(self) -> bool:
        return bool(self._lines)

    def refuse(self) -> NoReturn:
        """Raise BadInputError with every fault, one a line."""
        count = len(self._lines)
        more = f" (reading stopped at {MAX_FAULTS})" if count >= MAX_FAULTS else ""
        head = f"{self.source} has {count} fault{'s' if count > 1 else ''}{more}:"
        raise BadInputError("\n".join([head, *(f"  {line}" for line in self._lines)]))


def shown(value: Any) -> str:
    """A value as an error message quotes it: one line, ASCII escapes for what a terminal might act on, cut."""
    text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
