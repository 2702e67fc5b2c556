"""Write the table of values in charts/proctor/README.md from the comments in values.yaml.

A comment that begins with `# -- ` describes the value below it. A section's values are described one by one, or the
section as a whole: then its default stands in one row. What stands outside of the two markers is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from helm_python.chart import values_from_yaml

CHART: Final = Path(__file__).resolve().parents[1] / "charts" / "proctor"
PAGE: Final = CHART / "README.md"
BEGIN: Final = "<!-- values: written by python scripts/write_chart_readme.py -->"
END: Final = "<!-- end of values -->"
_MARK: Final = "# -- "
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>[\w.-]+):(?: |$)")
#: A longer default is said in the file.
_LONGEST: Final = 100

Path_ = tuple[str, ...]
_NOTHING: Final = object()


class Value(NamedTuple):
    """A row of the table."""

    path: Path_
    type: str
    default: Any
    meaning: str


def comments(text: str) -> dict[Path_, str]:
    """What `values.yaml` says of each of its keys, by the key's path; a key without a comment has an empty one."""
    found: dict[Path_, str] = {}
    open_keys: list[tuple[int, str]] = []
    said: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            if stripped.startswith(_MARK):
                said = [stripped.removeprefix(_MARK)]
            elif said:
                said.append(stripped.lstrip("# "))
            continue
        if match := _KEY.match(line):
            indent = len(match["indent"])
            # Keys of a list's items are part of the list's value.
            while open_keys and open_keys[-1][0] >= indent:
                open_keys.pop()
            inside_a_list = stripped.startswith("- ")
            if not inside_a_list:
                open_keys.append((indent, match["key"]))
                found[tuple(key for _, key in open_keys)] = " ".join(said)
        said = []
    return found


def rows(values: Mapping[str, Any], said: Mapping[Path_, str], schema: Mapping[str, Any]) -> Iterator[Value]:
    """The table's rows, in the order of the file."""
    for path, meaning in said.items():
        value: Any = values
        below = schema
        for key in path:
            value = value.get(key, _NOTHING) if isinstance(value, dict) else _NOTHING
            below = resolved(below, schema).get("properties", {}).get(key, {})
        # Keys in a list's items and in texts of several lines are no values of their own.
        if meaning and value is not _NOTHING:
            yield Value(path, type_of(below, schema, value), value, meaning)


def unsaid(values: Mapping[str, Any], said: Mapping[Path_, str], at: Path_ = ()) -> Iterator[Path_]:
    """Values that no comment describes: neither theirs, nor one of a section whose values have none of their own."""
    for key, value in values.items():
        path = (*at, key)
        if isinstance(value, dict) and value:
            own = [below for below in said if len(below) > len(path) and below[: len(path)] == path and said[below]]
            if own or not said.get(path):
                yield from unsaid(value, said, path)
        elif not said.get(path):
            yield path


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, with what it refers to."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Any = root
    for part in str(reference).removeprefix("#/").split("/"):
        found = found[part]
    return {**resolved(found, root), **{key: value for key, value in schema.items() if key != "$ref"}}


def type_of(schema: Mapping[str, Any], root: Mapping[str, Any], value: Any) -> str:
    """A value's type in words: what the schema says, else what the default is."""
    schema = resolved(schema, root)
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one).strip(chr(34))}`" for one in schema["enum"])
    said = schema.get("type")
    if said is not None:
        return " or ".join([said] if isinstance(said, str) else said)
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "any")


def table(text: str, schema: Mapping[str, Any]) -> str:
    """The table of values."""
    lines = ["| value | type | default | what it says |", "|---|---|---|---|"]
    for row in rows(values_from_yaml(text), comments(text), schema):
        name, meaning = ".".join(row.path), row.meaning.replace("|", "\\|")
        lines.append(f"| `{name}` | {row.type} | {_default(row.default)} | {meaning} |")
    return "\n".join(lines)


def _default(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
    return f"`{text}`" if len(text) <= _LONGEST else "see values.yaml"


def page(current: str) -> str:
    """The page with the table as it should be.

    Raises:
        ValueError: the page has not both markers.
    """
    head, begin, rest = current.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} needs the lines {BEGIN} and {END}")
    text = (CHART / "values.yaml").read_text("utf-8")
    schema: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    return f"{head}{begin}\n\n{table(text, schema)}\n\n{end}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
