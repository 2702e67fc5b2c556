"""Fresh items of a suite, read beside its benchmark and held against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.problems import visible
from proctor.domain.suite import DatasetSection, Suite
from proctor.domain.suite_fresh import FreshSection
from proctor.formats.items import load_items, select_items
from proctor.text.sameness import question_digest

_NAMED = 3


class FreshItems(NamedTuple):
    """The fresh items that are asked."""

    items: tuple[Item, ...]
    available: int
    """How many the file holds."""
    notes: tuple[str, ...]
    """What a person should know of them."""


def load_fresh(suite: Suite, base: Path, benchmark: Sequence[Item]) -> FreshItems | None:
    """Read the fresh items that a suite names; None where it names none.

    Args:
        suite: names them.
        base: the folder to which a relative path is relative, the suite file's.
        benchmark: every item of the benchmark, of which none may be among them.

    Raises:
        BadInputError: when they cannot be read, or share an id or a question with the benchmark.
    """
    if suite.fresh is None:
        return None
    section = _as_dataset(suite.fresh, suite.dataset)
    try:
        # The file is named: neither the bundle nor the hub is looked into.
        loaded = load_items(section, base, base)
    except BadInputError as error:
        # The words of a reader of benchmarks, about another section.
        raise BadInputError(str(error).replace("dataset_config.", "fresh_config.")) from None
    _hold_apart(loaded.items, benchmark)
    items = select_items(loaded.items, section)
    notes = loaded.notes(section)
    return FreshItems(items, len(loaded.items), tuple(f"fresh_config: {note}" for note in notes))


def _as_dataset(fresh: FreshSection, dataset: DatasetSection) -> DatasetSection:
    return DatasetSection(
        # An item without an id is named after this and its place, which must not be a name in the benchmark.
        benchmark_name=f"{dataset.benchmark_name[:122]}-fresh",
        path=fresh.path,
        sample_size=fresh.sample_size,
        sampling_seed=dataset.sampling_seed,
        selection=dataset.selection,
        id_field=fresh.id_field or dataset.id_field,
        question_field=fresh.question_field or dataset.question_field,
        choices_field=fresh.choices_field or dataset.choices_field,
        target_field=fresh.target_field or dataset.target_field,
    )


def _hold_apart(fresh: Sequence[Item], benchmark: Sequence[Item]) -> None:
    """Raises BadInputError where a fresh item has an id of the benchmark's, or asks what it asks."""
    ids = {item.item_id for item in benchmark}
    asked = {question_digest(item.question, item.choices) for item in benchmark}
    both = [item.item_id for item in fresh if item.item_id in ids]
    if both:
        raise BadInputError(
            f"fresh_config.path: {_listed(both)} {'is an id' if len(both) == 1 else 'are ids'} of the benchmark's, and "
            "items are told apart by their ids; give the fresh ones ids of their own"
        )
    same = [item.item_id for item in fresh if question_digest(item.question, item.choices) in asked]
    if same:
        raise BadInputError(
            f"fresh_config.path: {_listed(same)} {'asks' if len(same) == 1 else 'ask'} what the benchmark asks, so "
            "that it is not fresh; leave it out"
        )


def _listed(ids: Sequence[str]) -> str:
    shown = ", ".join(visible(one)[:80] for one in ids[:_NAMED])
    return shown + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
