"""The members of a JSON object as they were written, equal names and all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def repeated_name(members: Iterable[tuple[str, Any]]) -> str | None:
    """The first name in the order of the object that stands more than once; None where each stands once.

    In one pass: counting each name anew takes minutes for an object of some hundred thousand members.
    """
    seen, twice = dict[str, None](), set[str]()
    for name, _ in members:
        if name in seen:
            twice.add(name)
        seen[name] = None
    return next((name for name in seen if name in twice), None)
