"""The base of every model that crosses a boundary: immutable, closed, strict about units."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable model that refuses keys it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        protected_namespaces=(),
        allow_inf_nan=False,
    )

    def plain(self) -> dict[str, Any]:
        """The model as JSON-ready data, under the names of its JSON form."""
        return self.model_dump(mode="json", by_alias=True)


class Section(Frozen):
    """A part of the suite, whose fields are shown to users with what their docstrings say of them.

    Not of every model: pydantic reads and parses a module's source for each class in it, which was a fifth of a second
    of every process' start.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)
