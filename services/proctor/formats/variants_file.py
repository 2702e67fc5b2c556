"""The export of a variant library: one JSONL file that another team can read, review and pin.

The first line is a header, each further one a variant (or, where they were asked for, a rejection) with the item it
rewords and what its library key is made of. Lines are canonical JSON (RFC 8785) sorted by item, so the same library
gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Rejection
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.meter import MAX_ROW_BYTES
from proctor.formats.rows import Row, jsonl_rows
from proctor.formats.variant_lines import SCHEMA, Entry, Header, Line, RejectionLine, VariantLine, VariantsFile

#: Also of a version to come, so that it is refused as such and not taken for something else.
_MARK: Final = f'"schema":"{SCHEMA.partition("/")[0]}/'.encode()
_LINE: Final[TypeAdapter[Line]] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


def is_variants_file(start: bytes) -> bool:
    """Whether a file that begins so is an export of variants, by the header's mark in its first line."""
    return _MARK in start.partition(b"\n")[0].replace(b" ", b"")


def write_variants(header: Header, entries: Iterable[Entry], *, with_rejections: bool) -> bytes:
    """The bytes of an export. The header's counts and digest are set here; items without a line are left out.

    Raises:
        BadInputError: where a line is longer than what is read back.
    """
    lines: list[bytes] = []
    items = variants = rejections = 0
    for entry in sorted(entries, key=lambda one: one.item.item_id):
        turned_away = entry.rejections if with_rejections else ()
        items += bool(entry.variants or turned_away)
        variants += len(entry.variants)
        rejections += len(turned_away)
        lines.extend(_written(line) for line in _lines(entry, turned_away))
    body = b"".join(lines)
    counted = {
        "items": items,
        "variants": variants,
        "rejections": rejections if with_rejections else None,
        "lines_digest": bytes_digest(body),
    }
    return canonical_json(header.model_copy(update=counted).plain()) + b"\n" + body


def parse_variants(data: bytes, source: str) -> VariantsFile:
    """Read an export.

    Raises:
        BadInputError: with up to ten faults, each with its line; or because the lines are not those of the header.
    """
    faults = Faults(source)
    header: Header | None = None
    entries: list[Entry] = []
    try:
        rows = jsonl_rows(io.BytesIO(data), faults)
        header = _header(next(rows, None), source, faults)
        entries.extend(_entries(rows, faults))
    except TooManyFaults:
        pass
    if faults or header is None:
        faults.refuse()
    _check_totals(header, entries, data, source)
    return VariantsFile(source, header, tuple(entries), bytes_digest(data))


def _lines(entry: Entry, rejections: Sequence[Rejection]) -> Iterator[Line]:
    common: dict[str, Any] = {
        "item": entry.item, "key": entry.key, "data": entry.data, "distances": entry.distances
    }  # fmt: skip
    for place, variant in enumerate(entry.variants):
        yield VariantLine(place=place, variant=variant, **common)
    for place, rejection in enumerate(rejections):
        yield RejectionLine(place=place, rejection=rejection, **common)


def _written(line: Line) -> bytes:
    written = canonical_json(line.plain()) + b"\n"
    if len(written) > MAX_ROW_BYTES:
        raise BadInputError(
            f"the item {shown(line.item.item_id)} takes a line of {len(written):,} bytes with its variant, and lines "
            f"longer than {MAX_ROW_BYTES:,} are not read back: leave this item out of the suite"
        )
    return written


def _header(row: Row | None, source: str, faults: Faults) -> Header | None:
    if faults:
        # The first line is damaged, so this row is another one.
        return None
    if row is None:
        raise BadInputError(f"{source} is empty; `proctor variants export` writes such a file")
    if row.values.get("schema") != SCHEMA:
        raise BadInputError(
            f"{source}:{row.position}: no export of variants: the schema is {shown(row.values.get('schema'))}, not "
            f"{SCHEMA!r}; `proctor variants export` writes such a file"
        )
    try:
        return Header.model_validate(row.values)
    except ValidationError as error:
        faults.add(row.position, _first(error))
        return None


def _entries(rows: Iterator[Row], faults: Faults) -> Iterator[Entry]:
    last = ""
    for _, group in groupby(_parsed(rows, faults), key=lambda pair: pair[1].item.item_id):
        lines = list(group)
        position, first = lines[0]
        item_id = first.item.item_id
        if item_id <= last:
            faults.add(position, f"the item {shown(item_id)} comes after {shown(last)}: lines are sorted by item")
            continue
        last = item_id
        fault = next(((at, what) for at, line in lines if (what := _misfit(first, line))), None)
        if fault is None and not faults:
            # Where a line could not be read, a gap is no news.
            fault = _gap(lines)
        if fault is not None:
            faults.add(*fault)
            continue
        yield Entry(
            position,
            first.item,
            first.key,
            first.data,
            first.distances,
            tuple(line.variant for _, line in lines if isinstance(line, VariantLine)),
            tuple(line.rejection for _, line in lines if isinstance(line, RejectionLine)),
        )


def _parsed(rows: Iterator[Row], faults: Faults) -> Iterator[tuple[int, Line]]:
    for row in rows:
        try:
            line = _LINE.validate_python(row.values)
            # Of what stands there: the model would write an infinity as null.
            canonical_json(row.values)
        except ValidationError as error:
            faults.add(row.position, _first(error))
        except (ValueError, RecursionError) as error:
            faults.add(row.position, f"holds what canonical JSON cannot: {error}")
        else:
            yield row.position, line


def _misfit(first: Line, line: Line) -> str | None:
    """What is wrong with a line beside the first one of its item."""
    item = line.item
    for name in ("item", "key", "data", "distances"):
        if getattr(line, name) != getattr(first, name):
            return f"its {name} is not that of the first line of {shown(item.item_id)}"
    if isinstance(line, RejectionLine):
        return None if line.rejection.item_id == item.item_id else _other_item(line.rejection.item_id, item)
    if line.variant.item_id != item.item_id:
        return _other_item(line.variant.item_id, item)
    if line.variant.item_hash != item.content_hash:
        return f"the variant's item_hash is not that of the item {shown(item.item_id)}"
    return None


def _other_item(item_id: str, item: Item) -> str:
    return f"belongs to {shown(item_id)} and stands on a line of {shown(item.item_id)}"


def _gap(lines: Sequence[tuple[int, Line]]) -> tuple[int, str] | None:
    """A line that is missing, stands twice or out of order."""
    kinds = [line.kind for _, line in lines]
    expected = [*range(kinds.count("variant")), *range(kinds.count("rejection"))]
    if kinds != sorted(kinds, reverse=True):
        return lines[0][0], "variants come before rejections of the same item"
    for place, (position, line) in zip(expected, lines, strict=True):
        if line.place != place:
            return position, f"its place is {line.place}, and {place} comes next"
    seen: set[str] = set()
    for position, line in lines:
        if isinstance(line, VariantLine):
            if line.variant.variant_id in seen:
                return position, "the same variant stands there twice"
            seen.add(line.variant.variant_id)
    return None


def _check_totals(header: Header, entries: Sequence[Entry], data: bytes, source: str) -> None:
    found = {
        "items": len(entries),
        "variants": sum(len(entry.variants) for entry in entries),
        "rejections": sum(len(entry.rejections) for entry in entries),
    }
    for name, count in found.items():
        said = getattr(header, name) or 0
        if said != count:
            raise BadInputError(
                f"{source}:1: the header says {said:,} {name}, and there are {count:,}: the file was cut or changed "
                "after it was exported; ask for it again"
            )
    digest = bytes_digest(data.partition(b"\n")[2])
    if digest != header.lines_digest:
        raise BadInputError(
            f"{source}:1: lines_digest is {header.lines_digest}, and the lines have {digest}: the file was changed "
            "after it was exported; ask for it again"
        )


def _first(error: ValidationError) -> str:
    """The first fault of a line, and how many more there are."""
    faults = error.errors(include_url=False)
    where = ".".join(str(part) for part in faults[0]["loc"]) or "line"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    given = "" if faults[0]["type"] in ("missing", "extra_forbidden") else f", not {shown(faults[0]['input'])}"
    return f"{shown(where)[1:-1]}: {faults[0]['msg']}{given}{more}"
