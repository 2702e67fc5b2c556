"""The items of a benchmark, from a file or the hub, and the sample of them that a suite asks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from sys import getsizeof
from typing import Any, Final

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.hub import NO_HUB, HubAccess
from proctor.domain.item import Item
from proctor.domain.suite import DatasetSection
from proctor.formats.benchmark_files import PACKAGED_BENCHMARK, benchmark_file, places_text
from proctor.formats.clusters import clustered_items
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.fields import FieldFault, FieldMap, make_item
from proctor.formats.hub import hub_files
from proctor.formats.rows import Row, file_digest, is_typed, position_unit, read_rows

#: Memory of a benchmark's items, counted by their texts and metadata and so much for each item itself. A file's bytes
#: do not tell: one emoji makes every character of its text take four bytes, and an empty list takes sixty.
MAX_HELD_BYTES: Final = 512 << 20
_ITEM_BYTES: Final = 1_536


@dataclass(frozen=True)
class LoadedItems:
    """All items of a benchmark in file order."""

    items: tuple[Item, ...]
    digest: str
    """Of the file's bytes; of the rows' canonical JSON for a dataset of the hub."""
    source: str
    duplicates: tuple[tuple[str, ...], ...] = ()
    """Identifiers of items with the same content, group by group: allowed, but they are no independent evidence."""

    def notes(self, section: DatasetSection) -> tuple[str, ...]:
        """What a person should know of the data before the audit: a short file, items asked more than once."""
        notes = []
        if section.sample_size > len(self.items):
            notes.append(
                f"sample_size is {section.sample_size}, but {self.source} has {len(self.items)} items: all are asked"
            )
        if self.duplicates:
            ids = ", ".join(self.duplicates[0][:3])
            notes.append(
                f"{self.source} holds {len(self.duplicates)} problem{'s' if len(self.duplicates) > 1 else ''} more "
                f"than once (e.g. {ids}): repeated items are no independent evidence"
            )
        return tuple(notes)


def load_items(
    section: DatasetSection, base: Path, bundle: Path, benchmarks: Path | None = None, *, hub: HubAccess = NO_HUB
) -> LoadedItems:
    """Read the benchmark that a suite names.

    Args:
        section: the suite's dataset section.
        base: the folder to which a relative path is relative, the suite file's.
        bundle: the folder of the reference bundle.
        benchmarks: the operator's folder of benchmarks, for suites that name no file.
        hub: what the operator lets suites have of the hub; by default nothing.

    Raises:
        BadInputError: when the source is missing or larger than what is read, or with up to ten faults, each with file,
            line and value.
        ProctorError: when the hub cannot be reached.
    """
    if section.hub_id is not None:
        return _load_hub(section, hub)
    path = benchmark_file(section, base, bundle, benchmarks)
    if path is None:
        looked = f", or put it at {places_text(section, benchmarks)}" if benchmarks is not None else ""
        raise BadInputError(
            f"dataset_config.benchmark_name is {section.benchmark_name!r}, which does not come with Proctor (only "
            f"{PACKAGED_BENCHMARK!r} does): name its file in dataset_config.path, or hub_id and hub_revision{looked}"
        )
    if section.path is None and section.benchmark_name == PACKAGED_BENCHMARK:
        section = section.model_copy(
            update={
                "id_field": "item_id",
                "question_field": "question",
                "choices_field": "choices",
                "target_field": "target",
            }
        )
    faults = Faults(str(path), unit=position_unit(path))
    digest = file_digest(path)
    items = _gather(section, read_rows(path, faults), faults, str(path), typed=is_typed(path))
    return LoadedItems(items, digest, str(path), _duplicates(items))


def select_items(items: Sequence[Item], section: DatasetSection) -> tuple[Item, ...]:
    """The items to ask: the `first` ones in file order, or a `seeded` sample in the order in which it was drawn.

    The seed ranks the items by a hash of their identifiers, so the draw is the same on every platform and version,
    is uniform over subsets, and a larger sample contains the smaller one. A sample larger than the file is the
    whole file.
    """
    if section.selection == "first":
        return tuple(items[: section.sample_size])
    return tuple(sorted(items, key=lambda item: _rank(section.sampling_seed, item.item_id))[: section.sample_size])


def _rank(seed: int, item_id: str) -> bytes:
    return hashlib.sha256(canonical_json(["sample", seed, item_id])).digest()


def _load_hub(section: DatasetSection, hub: HubAccess) -> LoadedItems:
    source = f"{section.hub_id}@{section.hub_revision}/{section.split}"
    faults = Faults(source, unit="row ")
    with hub_files(section, hub) as paths:
        rows = (row for path in paths for row in read_rows(path, faults))
        counted = (row._replace(position=position) for position, row in enumerate(rows, 1))
        try:
            items = _gather(section, counted, faults, source, typed=is_typed(paths[0]))
        except BadInputError as error:
            # The names of our copies say nothing to anybody.
            text = reduce(lambda said, path: said.replace(str(path), source), paths, str(error))
            raise BadInputError(text) from None
    digest = bytes_digest(canonical_json([[item.item_id, item.content_hash] for item in items]))
    return LoadedItems(items, digest, source, _duplicates(items))


def _gather(
    section: DatasetSection, rows: Iterable[Row], faults: Faults, source: str, *, typed: bool
) -> tuple[Item, ...]:
    items: list[Item] = []
    held = 0
    with suppress(TooManyFaults):
        for item in _items(section, rows, faults, typed=typed):
            items.append(item)
            held += _held_bytes(item)
            if held > MAX_HELD_BYTES:
                raise BadInputError(
                    f"{source}: the first {len(items):,} items take {MAX_HELD_BYTES >> 20} MiB of memory, which is all "
                    "that is given to a benchmark; split the file, or leave out metadata"
                )
    if faults:
        faults.refuse()
    if not items:
        raise BadInputError(f"{source} holds no items")
    return clustered_items(items, section, source)


def _items(section: DatasetSection, rows: Iterable[Row], faults: Faults, *, typed: bool) -> Iterator[Item]:
    seen: dict[str, int] = {}
    mapping: FieldMap | None = None
    for ordinal, row in enumerate(rows):
        mapping = mapping or FieldMap.of(section, row.values, typed=typed)
        try:
            item = make_item(mapping, row.values, ordinal)
        except FieldFault as fault:
            faults.add(row.position, str(fault))
            continue
        first = seen.setdefault(item.item_id, row.position)
        if first != row.position:
            faults.add(row.position, f"the identifier {shown(item.item_id)} stands at {first} already; make it unique")
            continue
        yield item


def _held_bytes(item: Item) -> int:
    texts = (item.item_id, item.question, item.target, item.dimension, *item.choices, *filter(None, [item.cluster]))
    held = _ITEM_BYTES + sum(map(getsizeof, texts))
    pending: list[Any] = [item.metadata]
    while pending:
        value = pending.pop()
        held += getsizeof(value)
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
    return held


def _duplicates(items: Iterable[Item]) -> tuple[tuple[str, ...], ...]:
    groups: dict[str, list[str]] = {}
    for item in items:
        groups.setdefault(item.content_hash, []).append(item.item_id)
    return tuple(tuple(ids) for ids in groups.values() if len(ids) > 1)
