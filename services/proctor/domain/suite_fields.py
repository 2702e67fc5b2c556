"""What each field of a suite says of itself, and where it stands: for messages, the schema and the example."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from proctor.domain.field_words import Words
from proctor.domain.problems import Path, quoted
from proctor.domain.suite import Suite


class Place(NamedTuple):
    """A field of the suite: its path without list positions, its definition and, for a section, its class."""

    path: tuple[str, ...]
    field: FieldInfo
    section: type[BaseModel] | None
    meant: str = ""
    """What it is for in this section, where its class says it otherwise."""

    @property
    def dotted(self) -> str:
        """The path as in `scoring_config.significance_alpha`."""
        return ".".join(self.path)

    @property
    def is_section(self) -> bool:
        """Whether fields stand in it by name, and not in a list."""
        return self.section is not None and not _is_list(self.field.annotation)

    @property
    def meaning(self) -> str:
        """One sentence on what the field is for."""
        if self.section is not None and self.is_section:
            return first_sentence(self.section.__doc__ or "")
        return self.meant or " ".join((self.field.description or "").split())

    @property
    def words(self) -> Words:
        """What else the field says of itself."""
        return next((entry for entry in self.field.metadata if isinstance(entry, Words)), Words())

    @property
    def example(self) -> str | None:
        """What a message says to write; None where nothing is said but what the field is for."""
        examples = self.field.examples
        return self.words.example or (quoted(examples[-1]) if examples else None)

    @property
    def fields(self) -> Mapping[str, Place]:
        """The fields of a section by the names of their JSON form; none of a field that is no section."""
        return {} if self.section is None else fields_of(self.section, self.path, self.words.inside)

    @property
    def default_words(self) -> str:
        """The default as a person would write it."""
        value = self.field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            return "a section of defaults"
        return "none" if value is None else quoted(list(value) if isinstance(value, tuple) else value)


def _models_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in typing.get_args(annotation) if (found := _models_in(part)) is not None), None)


def _is_list(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (tuple, list)


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(text.split("\n\n")[0].split())


@cache
def fields_of(
    model: type[BaseModel], path: tuple[str, ...] = (), meant: tuple[tuple[str, str], ...] = ()
) -> Mapping[str, Place]:
    """The fields of a section by the names of their JSON form; `meant` are words for some of them here."""
    meanings = dict(meant)
    return {
        (field.alias or name): Place(
            (*path, field.alias or name), field, _models_in(field.annotation), meanings.get(name, "")
        )
        for name, field in model.model_fields.items()
    }


def place_at(path: Path) -> Place | None:
    """The field at a path of the suite; list positions are passed over. None where the suite has no such field."""
    found: Place | None = None
    for part in (part for part in path if isinstance(part, str)):
        found = (fields_of(Suite) if found is None else found.fields).get(part)
        if found is None:
            return None
    return found


def all_places() -> Iterator[Place]:
    """Every field of the suite, sections before what stands in them."""
    pending = list(fields_of(Suite).values())
    while pending:
        place = pending.pop(0)
        yield place
        pending = list(place.fields.values()) + pending


@cache
def places_by_name() -> Mapping[str, Place]:
    """The first field of each name, wherever it stands."""
    places: dict[str, Place] = {}
    for place in all_places():
        places.setdefault(place.path[-1], place)
    return places
