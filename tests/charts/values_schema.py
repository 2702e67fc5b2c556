"""The schema of the chart's values, and what it says against some of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema.validators import validator_for

from tests.charts.rendering import CHART, parse


@cache
def schema() -> dict[str, Any]:
    """Of the chart's values."""
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    return found


@cache
def values() -> dict[str, Any]:
    """The chart's defaults."""
    return parse((CHART / "values.yaml").read_text("utf-8"))


@cache
def validator() -> Any:
    return validator_for(schema())(schema())


def faults(given_values: Mapping[str, Any]) -> list[str]:
    """What the schema says against the defaults with some values over them, as Helm merges them."""
    found = validator().iter_errors(merged(values(), given_values))
    return [f"{'.'.join(map(str, one.absolute_path))}: {one.message[:200]}" for one in found]


def refused(some: Mapping[str, Any]) -> bool:
    """Whether the schema refuses some values over the defaults of their sections, without a look at the others."""
    return not validator().is_valid({key: merged(values(), {key: value})[key] for key, value in some.items()})


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values with others over them."""
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def resolved(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part of the schema, with what it refers to."""
    reference = part.get("$ref")
    if reference is None:
        return part
    found: Any = schema()
    for key in str(reference).removeprefix("#/").split("/"):
        found = found[key]
    return {**resolved(found), **{key: value for key, value in part.items() if key != "$ref"}}
