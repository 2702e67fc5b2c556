"""How messages, records and documents change from one version of Proctor to the next, and how that is noticed.

While a deployment is upgraded, workers of two versions read what the others write. So a field is only ever added: with
a default, which is not written, so that an earlier version reads whatever does without the field. What an earlier
version cannot read it does not drop, but leaves to a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, get_args

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from proctor.domain.errors import NewerVersionError
from proctor.domain.problems import visible

#: Names that an error says of fields which nobody here knows, and characters of each.
_NAMED: Final = 3
_NAME_CHARACTERS: Final = 60
_SINCE: Final = "since"


def added(default: Any, *, since: int) -> Any:
    """A field that a model was given in a later version than its first. It is not written where it has its default.

    Args:
        default: what it is where an earlier version wrote.
        since: the version of the message in which it was added; of a part or a document, that of the messages with it.
    """
    return Field(default=default, exclude_if=lambda value: value == default, json_schema_extra={_SINCE: since})


def needed_version(model: BaseModel) -> int:
    """The earliest version that can say what a model says: 1, unless it has a value in a field that was added later."""
    if newest_version(type(model)) == 1:
        return 1
    versions = [1]
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if value != field.default:
            versions.append(_since(field))
        parts = value if isinstance(value, tuple) else (value,)
        versions += [needed_version(part) for part in parts if isinstance(part, BaseModel)]
    return max(versions)


@cache
def newest_version(kind: type[BaseModel]) -> int:
    """The newest version of a model that this program knows, by the fields that were added to it and to its parts."""
    versions = [1]
    for field in kind.model_fields.values():
        versions.append(_since(field))
        versions += [newest_version(part) for part in _models_in(field.annotation)]
    return max(versions)


def _since(field: FieldInfo) -> int:
    extra = field.json_schema_extra
    since = extra.get(_SINCE) if isinstance(extra, dict) else None
    return since if isinstance(since, int) else 1


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def unknown_fields(error: ValidationError) -> str:
    """Names of the fields that made a value invalid because no model here has them, for people; "" without any."""
    found = [
        ".".join(map(str, fault["loc"]))
        for fault in error.errors(include_url=False, include_context=False, include_input=False)
        if fault["type"] == "extra_forbidden"
    ]
    if not found:
        return ""
    return visible(", ".join(name[:_NAME_CHARACTERS] for name in found[:_NAMED])) + (
        f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    )


def reading(what: str, error: ValidationError) -> NewerVersionError:
    """What is to be raised for something on record that cannot be read.

    Args:
        what: its name, which begins the sentence.
        error: why it cannot be.
    """
    if names := unknown_fields(error):
        return NewerVersionError(f"{what} needs a newer Proctor: it has {names}, which this one does not know")
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = visible(".".join(map(str, fault["loc"]))[:_NAME_CHARACTERS])
    return NewerVersionError(
        f"{what} cannot be read by this Proctor, so that it needs a newer one or is damaged: "
        f"{where or 'it'}: {visible(fault['msg'])}"
    )
