"""Files of items as a suite reads them, and as they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import DatasetSection
from proctor.formats.items import load_items

SUFFIX = ".jsonl"
#: What items share: the template that made them, or what an annotated file says.
CLUSTER = "cluster"
_WRITTEN_CLUSTER = f'"{CLUSTER}": '.encode()


def written_items(items: Iterable[Item]) -> bytes:
    """JSON lines, the same bytes for the same items."""
    return "".join(f"{json.dumps(_row(item), ensure_ascii=False)}\n" for item in items).encode()


def read_items(path: Path) -> tuple[Item, ...]:
    """The items of a file that was written here.

    Raises:
        BadInputError: where it cannot be read.
    """
    try:
        # Quotation marks within a text are escaped, so that none of them looks like this.
        field = CLUSTER if path.is_file() and _WRITTEN_CLUSTER in path.read_bytes() else None
        section = DatasetSection(benchmark_name="own", path=str(path), cluster_field=field)
        return load_items(section, path.parent, path.parent).items
    except BadInputError as error:
        raise BadInputError(str(error).replace("dataset_config.", "")) from None


def read_items_or_none(path: Path) -> tuple[Item, ...]:
    """The same; none where the file is empty or not there."""
    return read_items(path) if path.is_file() and path.stat().st_size else ()


def _row(item: Item) -> dict[str, Any]:
    fields: Iterator[tuple[str, Any]] = iter(
        (
            ("item_id", item.item_id),
            ("question", item.question),
            ("choices", list(item.choices)),
            ("answer", item.target),
            ("dimension", item.dimension),
            (CLUSTER, item.cluster or ""),
            ("metadata", item.metadata),
        )
    )
    return {key: value for key, value in fields if value not in ([], "")}


def scoring_of(items: Iterable[Item]) -> str:
    """The extractor that the items name; `auto` where they name none, or several."""
    named = {item.metadata.get("scoring") for item in items}
    scoring = named.pop() if len(named) == 1 else None
    return scoring if isinstance(scoring, str) else "auto"
