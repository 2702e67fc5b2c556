"""Reference models whose answers to a benchmark and to fresh items are at hand."""

from __future__ import annotations

from proctor.domain.base import Frozen


class ReferenceModel(Frozen):
    """What one of them answered. An item that is in neither list it did not answer."""

    name: str
    right: tuple[str, ...]
    """Ids of the items that it answered rightly, in code point order."""
    wrong: tuple[str, ...]


class Panel(Frozen):
    """Reference models by name, in code point order."""

    models: tuple[ReferenceModel, ...]
