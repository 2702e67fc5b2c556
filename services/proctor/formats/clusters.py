"""Which cluster each item is in: by a column of the file, or by what items share; and what they share where neither
is named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proctor.domain.errors import BadInputError
from proctor.domain.evidence import ItemGroups
from proctor.domain.item import Item
from proctor.domain.shared_context import SHARED_CONTEXT
from proctor.domain.suite import DatasetSection
from proctor.formats.faults import shown


def clustered_items(items: Sequence[Item], section: DatasetSection, source: str) -> tuple[Item, ...]:
    """All items of a benchmark, each with its cluster.

    Raises:
        BadInputError: where the suite names a column in which not one row has a value.
    """
    field = section.cluster_field
    if field is None:
        return tuple(items)
    if field != SHARED_CONTEXT:
        if all(item.cluster is None for item in items):
            raise BadInputError(
                f"{source}: no row has a value in the column {shown(field)}, which dataset_config.cluster_field names; "
                f'name the column of what items share, or write "{SHARED_CONTEXT}" to have it found'
            )
        return tuple(items)
    clusters = {place: items[group[0]].item_id for group in _groups(items) for place in group}
    return tuple(
        item.model_copy(update={"cluster": clusters[place]}) if place in clusters else item
        for place, item in enumerate(items)
    )


def unnamed_groups(items: Iterable[Item], section: DatasetSection) -> ItemGroups | None:
    """What items share though the suite names no clusters; None where nothing was found, or it names them."""
    if section.cluster_field is not None:
        return None
    return ItemGroups.of([len(group) for group in _groups(items)])


def related_text(groups: ItemGroups) -> str:
    """That items are related and the figures do not know it, and what to do: sentences."""
    which = f"{groups.n_groups:,} group{'s' if groups.n_groups > 1 else ''}, the largest of {groups.largest:,}"
    return (
        f"{groups.n_items:,} items share a passage, a table or a template with others ({which}), and are taken for "
        "independent: p-values are then too small and intervals too narrow. Name the column of what they share in "
        f'dataset_config.cluster_field, or write "{SHARED_CONTEXT}" there to take these groups as clusters.'
    )


def related_notes(items: Iterable[Item], section: DatasetSection) -> tuple[str, ...]:
    """The same of the items that are asked, as a note; nothing where there is nothing to say."""
    groups = unnamed_groups(items, section)
    return () if groups is None else (related_text(groups).rstrip("."),)


def _groups(items: Iterable[Item]) -> tuple[tuple[int, ...], ...]:
    # Brings numpy along, which who only reads a suite's items need not wait for.
    from proctor.text.shared_context import Wording, related_items

    return related_items(Wording(item.question, item.choices) for item in items)
