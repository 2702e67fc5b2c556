"""Ready rewordings of a benchmark's items, as JSONL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.formats.faults import shown
from proctor.formats.fields import positional_id
from proctor.formats.rows import Row, parsed_rows
from proctor.text.normalise import has_lone_surrogate, normalise

#: Pairs of an item and a rewording. A row is given to every item that asks its original, and a file in which all rows
#: and all items say the same would make the product of both.
MAX_MATCHES: Final = 1_000_000
_QUESTION_FIELDS: Final = ("rephrased", "reworded", "rewording", "question")


@dataclass(frozen=True)
class Rewording:
    """One row of the file: a reworded question and what it says of where it belongs."""

    line: int
    question: str
    """Empty where the row holds none, which is a rejection and not a fault: generators leave some rows empty."""
    choices: tuple[str, ...] | None = None
    item_id: str | None = None
    index: int | None = None
    """Place of the item in the benchmark's file, from 0."""
    original: str | None = None
    kind: str | None = None
    """Of a question that was changed on purpose: what was done to it."""


@dataclass(frozen=True)
class Unmatched:
    """A rewording that belongs to none of the items, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class MatchedRewordings:
    """Rewordings by the identifier of their item, in file order, and those that belong to none."""

    by_item: dict[str, tuple[Rewording, ...]]
    unmatched: tuple[Unmatched, ...]


def parse_rewordings(data: bytes, source: str) -> tuple[Rewording, ...]:
    """Read rows of `{"item_id" | "index" | "original", "question" | "rephrased", optional "choices"}`.

    Raises:
        BadInputError: with up to ten faults, each with line and value; also when there is no row.
    """
    rewordings = parsed_rows(data, source, _rewording)
    if not rewordings:
        raise BadInputError(f"{source} holds no rewordings")
    return tuple(rewordings)


def match_rewordings(rewordings: Iterable[Rewording], items: Sequence[Item], benchmark: str) -> MatchedRewordings:
    """Give each rewording to its item.

    By `item_id`; else by the text of `original`, normalised (to every item that asks exactly this); else by
    `index`, which names items without an identifier of their own. Where a row gives an original and a place and
    the item there asks something else, the row belongs to none: a shifted file must not lend an item the
    rewording of its neighbour.

    Raises:
        BadInputError: when there are more than `MAX_MATCHES` pairs.
    """
    by_id = {item.item_id: item for item in items}
    by_text: dict[str, list[Item]] = {}
    for item in items:
        by_text.setdefault(normalise(item.question), []).append(item)
    matched: dict[str, list[Rewording]] = {}
    unmatched: list[Unmatched] = []
    matches = 0
    for rewording in rewordings:
        found, reason = _belongs_to(rewording, by_id, by_text, benchmark)
        matches += len(found)
        if matches > MAX_MATCHES:
            raise BadInputError(
                f"the rewordings up to line {rewording.line} belong to more than {MAX_MATCHES:,} items in all: their "
                "original is what many items ask; name the item of each by item_id"
            )
        for item in found:
            matched.setdefault(item.item_id, []).append(rewording)
        if not found:
            unmatched.append(Unmatched(rewording.line, reason))
    return MatchedRewordings({key: tuple(value) for key, value in matched.items()}, tuple(unmatched))


def _belongs_to(
    rewording: Rewording, by_id: dict[str, Item], by_text: dict[str, list[Item]], benchmark: str
) -> tuple[list[Item], str]:
    original = None if rewording.original is None else normalise(rewording.original)
    place = rewording.item_id
    if place is None and rewording.index is not None:
        place = positional_id(benchmark, rewording.index)
    item = None if place is None else by_id.get(place)
    if item is not None and original in (None, normalise(item.question)):
        return [item], ""
    if original is not None and rewording.item_id is None and (found := by_text.get(original)):
        return found, ""
    if item is not None:
        return [], f"its original {shown(rewording.original)} is not what the item {place!r} asks"
    return [], f"no item has the identifier {place!r}" if original is None else "no item asks its original question"


def _rewording(row: Row) -> Rewording:
    values = row.values
    field = next((name for name in _QUESTION_FIELDS if name in values), None)
    if field is None:
        raise ValueError(f"has no field {' or '.join(_QUESTION_FIELDS)} (fields: {', '.join(values)[:200]})")
    item_id, index = values.get("item_id"), values.get("index")
    original = _optional_text("original", values.get("original"))
    if index is not None and (isinstance(index, bool) or not isinstance(index, int) or index < 0):
        raise ValueError(f"index is {shown(index)}; an integer from 0 is needed")
    if item_id is not None and (isinstance(item_id, bool) or not isinstance(item_id, str | int)):
        raise ValueError(f"item_id is {shown(item_id)}; text or an integer is needed")
    if item_id is None and index is None and original is None:
        raise ValueError("says not what it rewords: add item_id, index or original")
    return Rewording(
        line=row.position,
        question=_optional_text(field, values[field]) or "",
        choices=_choices(values.get("choices")),
        item_id=None if item_id is None else str(item_id),
        index=index,
        original=original,
        kind=_optional_text("kind", values.get("kind")),
    )


def _optional_text(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{field} is {shown(value)}; text is needed")
    if has_lone_surrogate(value):
        raise ValueError(f"{field} is {shown(value)}, which is not valid Unicode")
    return value


def _choices(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(option, str) for option in value):
        raise ValueError(f"choices is {shown(value)}; a list of texts is needed")
    if any(has_lone_surrogate(option) for option in value):
        raise ValueError(f"choices is {shown(value)}, which is not valid Unicode")
    return tuple(value)
