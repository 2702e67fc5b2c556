"""Reports of tests, as workers send them."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def travelling(value: T) -> T:
    """The same of JSON's kinds of values, with lone surrogates in their strings escaped: they have no UTF-8."""
    escaped: object = value
    if isinstance(value, str):
        escaped = value.encode("utf-8", "backslashreplace").decode("utf-8")
    elif isinstance(value, dict):
        escaped = {travelling(key): travelling(part) for key, part in value.items()}
    elif isinstance(value, list | tuple):
        escaped = type(value)(map(travelling, value))
    return escaped  # type: ignore[return-value]  # of the same kind
