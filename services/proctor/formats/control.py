"""Control items of a suite, read beside its benchmark and its fresh items, and held against both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.formats.beside import ItemsBeside, listed, load_beside


def load_control(suite: Suite, base: Path, benchmark: Sequence[Item], fresh: Sequence[Item] = ()) -> ItemsBeside | None:
    """Read the control items that a suite names; None where it names none.

    Args:
        suite: names them.
        base: the folder to which a relative path is relative, the suite file's.
        benchmark: every item of the benchmark, of which none may be among them.
        fresh: the fresh items that are asked. One may be a control item too, and is then the same under its id.

    Raises:
        BadInputError: when they cannot be read, share an id or a question with the benchmark, or an id with another
            fresh item.
    """
    section = suite.control
    if section is None:
        return None
    loaded = load_beside(section, "control_config", suite.dataset, base, benchmark, cluster_field=section.cluster_field)
    by_id = {item.item_id: item for item in fresh}
    other = [
        item.item_id
        for item in loaded.items
        if (same := by_id.get(item.item_id)) is not None and same.content_hash != item.content_hash
    ]
    if other:
        raise BadInputError(
            f"control_config.path: {listed(other)} {'is the id' if len(other) == 1 else 'are ids'} of other fresh "
            "items, and items are told apart by their ids; give the control ones ids of their own"
        )
    return loaded
