"""Items that a suite has asked beside its benchmark, read as the benchmark is and held against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.problems import visible
from proctor.domain.suite import DatasetSection
from proctor.domain.suite_control import ControlSection
from proctor.domain.suite_fresh import FreshSection
from proctor.formats.items import load_items, select_items
from proctor.text.sameness import question_digest

_NAMED = 3


class ItemsBeside(NamedTuple):
    """The items of such a section."""

    items: tuple[Item, ...]
    """Those that are asked."""
    available: int
    """How many the file holds."""
    notes: tuple[str, ...]
    """What a person should know of them."""


def load_beside(
    section: FreshSection | ControlSection,
    field: str,
    dataset: DatasetSection,
    base: Path,
    benchmark: Sequence[Item],
    *,
    cluster_field: str | None = None,
) -> ItemsBeside:
    """Read the items of a section.

    Args:
        section: names them.
        field: the section's name in the suite.
        dataset: the benchmark's section, of which what this one leaves out is taken.
        base: the folder to which a relative path is relative, the suite file's.
        benchmark: every item of the benchmark, of which none may be among them.
        cluster_field: the column of what they share.

    Raises:
        BadInputError: when they cannot be read, or share an id or a question with the benchmark.
    """
    kind = field.removesuffix("_config")
    as_dataset = DatasetSection(
        # An item without an id is named after this and its place, which must not be a name in the benchmark.
        benchmark_name=f"{dataset.benchmark_name[: 127 - len(kind)]}-{kind}",
        path=section.path,
        sample_size=section.sample_size,
        sampling_seed=dataset.sampling_seed,
        selection=dataset.selection,
        id_field=section.id_field or dataset.id_field,
        question_field=section.question_field or dataset.question_field,
        choices_field=section.choices_field or dataset.choices_field,
        target_field=section.target_field or dataset.target_field,
        cluster_field=cluster_field,
    )
    try:
        # The file is named: neither the bundle nor the hub is looked into.
        loaded = load_items(as_dataset, base, base)
    except BadInputError as error:
        # The words of a reader of benchmarks, about another section.
        raise BadInputError(str(error).replace("dataset_config.", f"{field}.")) from None
    _hold_apart(loaded.items, benchmark, field)
    notes = tuple(f"{field}: {note}" for note in loaded.notes(as_dataset))
    return ItemsBeside(select_items(loaded.items, as_dataset), len(loaded.items), notes)


def _hold_apart(items: Sequence[Item], benchmark: Sequence[Item], field: str) -> None:
    """Raises BadInputError where one of the items has an id of the benchmark's, or asks what it asks."""
    kind = field.removesuffix("_config")
    ids = {item.item_id for item in benchmark}
    asked = {question_digest(item.question, item.choices) for item in benchmark}
    both = [item.item_id for item in items if item.item_id in ids]
    if both:
        raise BadInputError(
            f"{field}.path: {listed(both)} {'is an id' if len(both) == 1 else 'are ids'} of the benchmark's, and "
            f"items are told apart by their ids; give the {kind} ones ids of their own"
        )
    same = [item.item_id for item in items if question_digest(item.question, item.choices) in asked]
    if same:
        raise BadInputError(
            f"{field}.path: {listed(same)} {'asks' if len(same) == 1 else 'ask'} what the benchmark asks, so "
            f"that {_NOT[field]}; leave it out"
        )


_NOT = {"fresh_config": "it is not fresh", "control_config": "it may have leaked as well, and controls nothing"}


def listed(ids: Sequence[str]) -> str:
    """The first of some identifiers, and how many more there are."""
    shown = ", ".join(visible(one)[:80] for one in ids[:_NAMED])
    return shown + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
