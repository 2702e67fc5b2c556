"""What a field of the suite says of itself to a person, beside its docstring and its examples."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """Stands in a field's `Annotated`. What the field is for is its docstring, and examples in JSON are its `examples`:
    the first is what `suite init` writes, the last what a message shows."""

    example: str = ""
    """What to write, for messages, where an example in JSON does not say it."""
    alphabet: str = ""
    """The characters that belong there, where a pattern says them."""
    inside: tuple[tuple[str, str], ...] = ()
    """(field, what it is for) in a section whose class has other words for it elsewhere."""
