"""`values.schema.json` takes every value set, refuses every misspelt key, and knows the keys that values.yaml has."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.charts.rendering import CHART, value_set, value_set_names
from tests.charts.values_schema import faults, resolved, schema, values

Path_ = tuple[str, ...]
#: Keys of these are the user's own or Kubernetes': labels, annotations, selectors, resources, variables.
_OPEN_NAMES = frozenset(
    {
        "commonLabels", "labels", "annotations", "podAnnotations", "serviceAccountAnnotations", "grpcAnnotations",
        "nodeSelector", "affinity", "environment", "resources", "digests", "suites", "file", "ceilings",
        "privateBenchmarks", "namespaceSelector", "podSelector", "matchLabels", "requests", "limits", "suite",
        "global", "parameters", "matchExpressions",
    }
)  # fmt: skip


#: Objects of Kubernetes', and suites, which Proctor itself validates.
_OPEN = frozenset(
    {
        "values.definitions.free",
        "values.definitions.objects.items",
        "values.properties.gateway.properties.triggers.properties.suites.additionalProperties",
    }
)


def closed_paths(part: Mapping[str, Any], at: Path_ = ()) -> Iterator[Path_]:
    """Every path of keys that a value may have by the schema, lists left out."""
    for key, below in resolved(part).get("properties", {}).items():
        yield (*at, key)
        yield from closed_paths(below, (*at, key))


def objects(part: Any, at: str = "values") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema of an object in the schema, with where it is."""
    if isinstance(part, Mapping):
        if part.get("type") == "object" or "properties" in part:
            yield at, part
        for key, below in part.items():
            if key not in ("default", "examples", "enum", "const"):
                yield from objects(below, f"{at}.{key}")
    elif isinstance(part, list):
        for place, below in enumerate(part):
            yield from objects(below, f"{at}[{place}]")


def key_paths(part: Mapping[str, Any], at: Path_ = ()) -> Iterator[Path_]:
    for key, below in part.items():
        yield (*at, key)
        if isinstance(below, Mapping) and key not in _OPEN_NAMES:
            yield from key_paths(below, (*at, key))


PATHS = sorted(key_paths(values())) if (CHART / "values.yaml").is_file() else []


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())
    assert schema()["$schema"].startswith(("https://json-schema.org/draft/2020-12", "http://json-schema.org/draft-07"))


def test_the_schema_takes_the_defaults() -> None:
    assert faults({}) == []


@pytest.mark.parametrize("name", value_set_names())
def test_the_schema_takes_a_value_set(name: str) -> None:
    assert faults(value_set(name).values) == []


def test_schema_and_values_name_the_same_keys() -> None:
    in_schema = {path for path in closed_paths(schema()) if not _OPEN_NAMES & set(path[:-1])} - {("global",)}
    assert {"schema alone": _dotted(in_schema - set(PATHS)), "values alone": _dotted(set(PATHS) - in_schema)} == {
        "schema alone": [],
        "values alone": [],
    }


def _dotted(paths: set[Path_]) -> list[str]:
    return sorted(map(".".join, paths))


def test_every_object_of_the_schema_is_closed_or_one_of_the_user_s_own() -> None:
    left_open = {
        at
        for at, one in objects(schema())
        if one.get("additionalProperties") is not False
        and not _is_map(one)
        and at.rpartition(".")[2] not in _OPEN_NAMES
        # What a condition adds to an object that is closed elsewhere.
        and not re.search(r"\.(if|then|else|allOf|anyOf|oneOf|not)\b", at)
    }
    assert left_open - _OPEN == set()


def _is_map(part: Mapping[str, Any]) -> bool:
    """An object of one kind of values, whatever their keys; it says so."""
    return isinstance(part.get("additionalProperties"), Mapping) and "properties" not in part


@settings(max_examples=150)
@given(path=st.sampled_from(PATHS or [("none",)]), data=st.data())
def test_a_misspelt_key_is_refused_wherever_it_stands(path: Path_, data: st.DataObject) -> None:
    misspelt = data.draw(misspellings(path[-1]))
    value: Any = values()
    for key in path:
        value = value[key]
    beside: Any = values()
    for key in path[:-1]:
        beside = beside[key]
    if misspelt in beside:
        return
    wrong: Any = {misspelt: copy.deepcopy(value)}
    for key in reversed(path[:-1]):
        wrong = {key: wrong}
    assert faults(wrong) != [], ".".join((*path[:-1], misspelt))


@st.composite
def misspellings(draw: st.DrawFn, key: str) -> str:
    """A key with a letter too few, too many, another or elsewhere, or in another case."""
    at = draw(st.integers(0, len(key) - 1))
    wrong = [
        key[:at] + key[at + 1 :],
        key[:at] + key[at] + key[at:],
        key[:at] + "x" + key[at + 1 :],
        key[:at] + key[at].swapcase() + key[at + 1 :],
        key[: max(at - 1, 0)] + key[at] + key[max(at - 1, 0) : at] + key[at + 1 :],
        f"{key}s",
        key.replace("-", "_"),
    ]
    return draw(st.sampled_from([one for one in wrong if one and one != key]))


def test_a_value_of_another_type_is_refused() -> None:
    taken = []
    for path in PATHS:
        # No value may be a list of lists.
        wrong: Any = [[1]]
        for key in reversed(path):
            wrong = {key: wrong}
        if not faults(wrong):
            taken.append(".".join(path))
    assert taken == []


def test_helm_refuses_what_the_schema_refuses() -> None:
    from helm_python.chart import Chart
    from helm_python.errors import HelmError

    with Chart.load(CHART) as chart, pytest.raises(HelmError, match="replica"):
        chart.validate_schema({"router": {"replica": 3}})
