"""What the validator found, in words for the person who wrote the suite. The validator's own phrases stay inside."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen

from proctor.domain.problems import Fault, Path, Problem, path_text, quoted, value_at
from proctor.domain.suite import Suite
from proctor.domain.suite_fields import Place, fields_of, place_at, places_by_name
from proctor.domain.suite_rules import CROSS_FIELD, cross_field_fault
from proctor.domain.url import shown as url_shown

#: Longer names are no slip of the keyboard, and comparing them is slow.
_COMPARABLE_CHARACTERS = 64
_KINDS: Mapping[str, str] = {
    "string_type": "text in double quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "model_type": "an object",
    "dict_type": "an object",
}
_RANGE = {"greater_than", "greater_than_equal", "less_than", "less_than_equal"}


def fault_of(error: Mapping[str, Any], tree: Mapping[str, Any], *, compare: bool = True) -> Fault:
    """Put one validation error (pydantic's `errors()`) on a suite's plain data into words.

    Args:
        error: the error.
        tree: the data.
        compare: whether a key that is unknown is compared with those that it may have been meant to be.
    """
    path: Path = tuple(error["loc"])
    kind: str = error["type"]
    if kind in CROSS_FIELD:
        return cross_field_fault(CROSS_FIELD[kind], tree)
    place = place_at(path)
    value = value_at(tree, path)
    context = error.get("ctx") or {}
    if kind == "missing":
        shown, message, mend = "", *_missing(path, place)
    elif kind == "extra_forbidden":
        shown, message, mend = quoted(value), *_unknown(path, compare=compare)
    elif kind in _KINDS:
        shown, message, mend = quoted(value), *_wrong_kind(_KINDS[kind], value, place)
    elif kind in _RANGE:
        shown, message, mend = quoted(value), *_out_of_range(value, place)
    elif kind == "literal_error":
        shown, message, mend = quoted(value), *_not_offered(value, _choices(place))
    elif kind == "unknown_part":
        shown, message, mend = quoted(value), *_not_offered(context.get("part", value), context["choices"])
        if "part" in context:
            message = f"has {quoted(context['part'])}, which {message}"
    elif kind == "string_pattern_mismatch":
        words = (place.words.alphabet if place is not None else "") or "other characters"
        shown, message, mend = quoted(value), "has characters that do not belong here", f"use {words}"
    elif kind in ("string_too_short", "too_short"):
        shown, message, mend = quoted(value), "is empty", _fill(place)
    elif kind in ("string_too_long", "too_long"):
        unit = "entries" if kind == "too_long" else "characters"
        most = _limit(place, MaxLen, "max_length")
        shown, message, mend = quoted(value), f"has {len(value)} {unit}", f"keep it to {most}"
    elif kind == "mutable_version":
        shown, message, mend = quoted(value), error["msg"], _pin(value, context)
    elif kind == "endpoint_url":
        shown, message, mend = url_shown(str(value)), error["msg"], str(context["mend"])
    elif "mend" in context:
        shown, message, mend = quoted(value), error["msg"], str(context["mend"])
    else:
        shown, message, mend = quoted(value), "cannot be used here", _fill(place)
    return Fault(path, Problem(path_text(path), shown, message, mend), (path,))


def _missing(path: Path, place: Place | None) -> tuple[str, str]:
    meaning = f" ({place.meaning.rstrip('.')})" if place is not None else ""
    example = place.example if place is not None else None
    return f"is missing{meaning}", f'add "{path[-1]}": {example or "a value"}'


def meant_key(path: Path) -> Path | None:
    """The field that an unknown key was probably meant to be, in the same section."""
    key = str(path[-1])
    close = difflib.get_close_matches(key, _siblings(path), n=1) if len(key) <= _COMPARABLE_CHARACTERS else []
    return (*path[:-1], close[0]) if close else None


def _siblings(path: Path) -> list[str]:
    section = place_at(path[:-1])
    model = section.section if section is not None else Suite
    return list(fields_of(model)) if model is not None else []


def _unknown(path: Path, *, compare: bool) -> tuple[str, str]:
    key = str(path[-1])
    meant = meant_key(path) if compare else None
    if meant is not None:
        return "is an unknown key", f"did you mean {meant[-1]}?"
    if len(key) <= _COMPARABLE_CHARACTERS:
        place = places_by_name().get(key)
        if place is not None:
            home = ".".join(place.path[:-1])
            return "is an unknown key", f"it belongs in {home}" if home else "it belongs at the top level"
    return "is an unknown key", f"remove it; known here: {', '.join(_siblings(path))}"


def _wrong_kind(wanted: str, value: Any, place: Place | None) -> tuple[str, str]:
    message = f"is {_kind_of(value)} where {wanted} belongs"
    if value is None:
        if place is not None and not place.field.is_required():
            return message, f"leave the key out to get its default, {place.default_words}"
        return message, _fill(place)
    if wanted in ("a whole number", "a number") and isinstance(value, str):
        number = _as_number(value, whole=wanted == "a whole number")
        if number is not None:
            return message, f"write {number} without quotes"
    if wanted == "a whole number" and isinstance(value, float) and value.is_integer():
        return message, f"write {int(value)}"
    if wanted.startswith("text") and place is not None and place.example is not None:
        return message, _fill(place)
    if wanted == "a list" and isinstance(value, str):
        return message, f"write [{quoted(value)}]"
    return message, f"write {wanted}"


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int):
        return "a whole number"
    if isinstance(value, float):
        return "a fractional number"
    return "a list" if isinstance(value, list) else "an object"


def _as_number(text: str, *, whole: bool) -> str | None:
    try:
        return str(int(text)) if whole else repr(float(text))
    except ValueError:
        return None


def _bounds(place: Place | None) -> tuple[float | None, bool, float | None, bool]:
    low: float | None = None
    high: float | None = None
    low_in = high_in = True
    for entry in place.field.metadata if place is not None else ():
        if isinstance(entry, (Gt, Ge)):
            low_in = isinstance(entry, Ge)
            low = float(str(entry.ge if isinstance(entry, Ge) else entry.gt))
        if isinstance(entry, (Lt, Le)):
            high_in = isinstance(entry, Le)
            high = float(str(entry.le if isinstance(entry, Le) else entry.lt))
    return low, low_in, high, high_in


def _within(value: float, place: Place | None) -> bool:
    low, low_in, high, high_in = _bounds(place)
    above = low is None or value > low or (low_in and value == low)
    return above and (high is None or value < high or (high_in and value == high))


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def range_words(place: Place | None) -> str:
    """The allowed range of a number: `above 0 and below 1`, `from 0 to 100`."""
    low, low_in, high, high_in = _bounds(place)
    if low is not None and high is not None and low_in and high_in:
        return f"from {_number(low)} to {_number(high)}"
    parts = []
    if low is not None:
        parts.append(f"{_number(low)} or more" if low_in else f"above {_number(low)}")
    if high is not None:
        parts.append(f"at most {_number(high)}" if high_in else f"below {_number(high)}")
    return " and ".join(parts)


def _out_of_range(value: Any, place: Place | None) -> tuple[str, str]:
    message = f"is out of range: it must be {range_words(place)}"
    high = _bounds(place)[2]
    if isinstance(value, (int, float)) and high is not None and high <= 1.0 < value and _within(value / 100, place):
        return message, f"write {value / 100:g} for {value:g} %: this is a fraction, not a percentage"
    if isinstance(value, (int, float)) and high == 100.0 and value > high:
        return message, "this is a percentage"
    if place is not None and not place.field.is_required():
        return message, f"its default is {place.default_words}"
    return message, f"write a number {range_words(place)}"


def _not_offered(value: Any, choices: Sequence[str]) -> tuple[str, str]:
    shown = ", ".join(quoted(choice) for choice in choices)
    if isinstance(value, str) and len(value) <= _COMPARABLE_CHARACTERS:
        close = difflib.get_close_matches(value.lower(), choices, n=1)
        if close:
            return f"is none of {shown}", f'did you mean "{close[0]}"?'
    return f"is none of {shown}" if len(
        choices
    ) > 1 else f"is not {shown}", f'write "{choices[0]}"' if choices else "remove it"


def _choices(place: Place | None) -> list[str]:
    return [] if place is None else _literals(place.field.annotation)


def _literals(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for part in get_args(annotation) for choice in _literals(part)]


def _pin(value: Any, context: Mapping[str, Any]) -> str:
    if isinstance(value, str):
        digits = value.lower().removeprefix("sha256:").strip()
        if 12 <= len(digits) <= 64 and set(digits) <= set("0123456789abcdef"):
            return f'write "sha256:{digits}"'
    return str(context.get("mend", "pin the weights by content"))


def _limit(place: Place | None, kind: type, attribute: str) -> str:
    for entry in place.field.metadata if place is not None else ():
        if isinstance(entry, kind):
            return str(getattr(entry, attribute))
    return "fewer"


def _fill(place: Place | None) -> str:
    if place is None:
        return "remove it"
    if not place.field.is_required():
        return f"leave the key out to get its default, {place.default_words}"
    return f"write {place.example or place.meaning}"
