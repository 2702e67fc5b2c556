"""From one raw row to an item: text, options, the right answer, the identifier, each checked."""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from proctor.domain.canonical import text_id
from proctor.domain.item import MAX_CHOICES, Item
from proctor.domain.shared_context import SHARED_CONTEXT
from proctor.domain.suite import DatasetSection
from proctor.formats.faults import shown
from proctor.text.normalise import has_lone_surrogate

#: Where identifiers usually stand when the suite does not say.
_USUAL_ID_FIELDS: Final = ("item_id", "id")
_MAX_ID_CHARACTERS: Final = 256
_MAX_LABEL_CHARACTERS: Final = 64
#: GSM8K's worked solutions end in a line of this form.
_WORKED_ANSWER: Final = re.compile(r"^####[ \t]*(.*)$", re.MULTILINE)
_GROUPED_NUMBER: Final = re.compile(r"[-+]?\$?\d{1,3}(,\d{3})+(\.\d+)?")
_INDEX: Final = re.compile(r"\d{1,2}")


class FieldFault(Exception):
    """What is wrong with one row."""


@dataclass(frozen=True)
class FieldMap:
    """Which field of a row is what."""

    benchmark: str
    id_field: str | None
    question_field: str
    choices_field: str
    target_field: str
    typed: bool
    cluster_field: str | None = None

    @classmethod
    def of(cls, section: DatasetSection, first: Mapping[str, Any], *, typed: bool) -> FieldMap:
        """The suite's mapping; the identifier is looked for under its usual names when the suite names none."""
        usual = next((name for name in _USUAL_ID_FIELDS if name in first), None)
        return cls(
            section.benchmark_name,
            section.id_field or usual,
            section.question_field,
            section.choices_field,
            section.target_field,
            typed,
            section.cluster_field,
        )


def make_item(mapping: FieldMap, values: Mapping[str, Any], ordinal: int) -> Item:
    """The item of a row.

    Args:
        mapping: which field is what.
        values: the row.
        ordinal: the row's place in the file from 0, the identifier where there is no other.

    Raises:
        FieldFault: with the field, its value and the mend.
    """
    question = _text(values, mapping.question_field, "dataset_config.question_field")
    choices = _choices(values.get(mapping.choices_field), mapping)
    target = _target(values, choices, mapping)
    dimension = values.get("dimension")
    return Item(
        item_id=_identifier(values, mapping, ordinal),
        question=question,
        choices=choices,
        target=target,
        dimension=dimension if isinstance(dimension, str) and not has_lone_surrogate(dimension) else "",
        cluster=_cluster(values, mapping.cluster_field),
        metadata=_metadata(values.get("metadata")),
    )


def positional_id(benchmark: str, ordinal: int) -> str:
    """The identifier of an item that has none: its place in the file, from 0."""
    return f"{benchmark}-{ordinal:05d}"


def _identifier(values: Mapping[str, Any], mapping: FieldMap, ordinal: int) -> str:
    if mapping.id_field is None:
        return positional_id(mapping.benchmark, ordinal)
    if mapping.id_field not in values:
        raise FieldFault(f"has no field {mapping.id_field!r}, which identifies the other items; add it")
    value = values[mapping.id_field]
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldFault(f"{mapping.id_field} is {shown(value)}; an identifier is text or an integer")
    identifier = str(value)
    if not identifier.strip() or len(identifier) > _MAX_ID_CHARACTERS or not identifier.isprintable():
        raise FieldFault(
            f"{mapping.id_field} is {shown(value)}; an identifier has 1 to {_MAX_ID_CHARACTERS} printable characters"
        )
    return identifier


def _cluster(values: Mapping[str, Any], field: str | None) -> str | None:
    """The cluster that a row names: text or a whole number; None where it names none, and is a cluster of its own.

    A label is a name: it is compared for equality alone. It may be any text, such as the passage itself, so a long one,
    or one with characters that a terminal might act on, is kept as its digest.
    """
    if field is None or field == SHARED_CONTEXT:
        return None
    value = values.get(field)
    if isinstance(value, float) and (math.isnan(value) or value.is_integer()):
        # A column of whole numbers with gaps, as data frames write it.
        value = None if math.isnan(value) else int(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldFault(f"{field} is {shown(value)}; a cluster is named by text or a whole number")
    label = str(value).strip()
    _refuse_surrogates(field, label)
    if len(label) > _MAX_LABEL_CHARACTERS or not label.isprintable():
        return text_id(label)
    return label or None


def _text(values: Mapping[str, Any], field: str, setting: str) -> str:
    if field not in values:
        raise FieldFault(f"has no field {field!r} (fields: {', '.join(map(str, values))[:200]}); set {setting}")
    value = values[field]
    if not isinstance(value, str):
        raise FieldFault(f"{field} is {shown(value)}; text is needed")
    if not value.strip():
        raise FieldFault(f"{field} is empty ({shown(value)})")
    _refuse_surrogates(field, value)
    return value


def _refuse_surrogates(field: str, value: str) -> None:
    if has_lone_surrogate(value):
        raise FieldFault(f"{field} is {shown(value)}, which is not valid Unicode (UTF-8 bytes or half a pair)")


def _choices(value: Any, mapping: FieldMap) -> tuple[str, ...]:
    field = mapping.choices_field
    if isinstance(value, str):
        if not value.strip():
            return ()
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise FieldFault(
                f'{field} is {shown(value)}; write the options as a JSON list, e.g. ["yes", "no"]'
            ) from None
    if value is None:
        return ()
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        # ARC and its kin: {"text": [...], "label": [...]}.
        value = value["text"]
    if not isinstance(value, list):
        raise FieldFault(f"{field} is {shown(value)}; a list of options is needed")
    options = tuple(_scalar(field, option) for option in value)
    if any(not option.strip() for option in options):
        raise FieldFault(f"{field} is {shown(value)}; an option is empty")
    if len(options) == 1 or len(options) > MAX_CHOICES:
        raise FieldFault(f"{field} has {len(options)} options; 2 to {MAX_CHOICES} can be asked for by letter")
    return options


def _target(values: Mapping[str, Any], choices: Sequence[str], mapping: FieldMap) -> str:
    field = mapping.target_field
    if field not in values:
        raise FieldFault(
            f"has no field {field!r} (fields: {', '.join(map(str, values))[:200]}); set dataset_config.target_field"
        )
    value = values[field]
    if choices:
        target = _chosen(field, value, choices, values.get(mapping.choices_field), typed=mapping.typed)
        if choices.count(target) != 1:
            raise FieldFault(f"{field} names the option {shown(target)}, which stands {choices.count(target)} times")
        return target
    text = _scalar(field, value).strip()
    worked = _WORKED_ANSWER.findall(text)
    if worked:
        text = worked[-1].strip()
    if _GROUPED_NUMBER.fullmatch(text):
        text = text.replace(",", "")
    if not text:
        raise FieldFault(f"{field} is {shown(value)}; it holds no answer")
    return text


def _chosen(field: str, value: Any, choices: Sequence[str], raw: Any, *, typed: bool) -> str:
    """The text of the right option: from an index from 0, a letter, a label, or the text itself."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _by_index(field, value, choices)
    if not isinstance(value, str):
        raise FieldFault(f"{field} is {shown(value)}; it must be an index from 0, a letter or the text of an option")
    _refuse_surrogates(field, value)
    text = value.strip()
    labels = raw.get("label") if isinstance(raw, dict) else None
    if isinstance(labels, list) and labels.count(text) == 1 and len(labels) == len(choices):
        return choices[labels.index(text)]
    readings = {value if value in choices else text} & set(choices)
    if len(text) == 1 and text.upper() in string.ascii_uppercase[: len(choices)]:
        readings.add(choices[string.ascii_uppercase.index(text.upper())])
    if _INDEX.fullmatch(text) and int(text) < len(choices) and not (typed and readings):
        readings.add(choices[int(text)])
    if len(readings) > 1:
        raise FieldFault(
            f"{field} is {shown(value)}, which is the text of one option and the place of another; "
            "write the answer as an integer index from 0 in JSONL"
        )
    if not readings:
        raise FieldFault(f"{field} is {shown(value)}, which is no option: {shown(list(choices))}")
    return readings.pop()


def _by_index(field: str, index: int, choices: Sequence[str]) -> str:
    if not 0 <= index < len(choices):
        raise FieldFault(f"{field} is {index}; the {len(choices)} options have the indices 0 to {len(choices) - 1}")
    return choices[index]


def _scalar(field: str, value: Any) -> str:
    if isinstance(value, str):
        _refuse_surrogates(field, value)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldFault(f"{field} is {shown(value)}; text or a number is needed")
    if isinstance(value, float) and not math.isfinite(value):
        raise FieldFault(f"{field} is {value}; a finite number is needed")
    return str(value)


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {}
    try:
        # What is not JSON (dates, bytes, NaN of a Parquet file) cannot travel in an item.
        plain: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
        json.dumps(plain, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FieldFault(f"metadata is {shown(value)}, which is not plain JSON: {error}") from None
    return plain
