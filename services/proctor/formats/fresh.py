"""Fresh items of a suite, read beside its benchmark and held against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proctor.domain.item import Item
from proctor.domain.suite import Suite
from proctor.formats.beside import ItemsBeside, load_beside


def load_fresh(suite: Suite, base: Path, benchmark: Sequence[Item]) -> ItemsBeside | None:
    """Read the fresh items that a suite names; None where it names none. Arguments and errors as of `load_beside`."""
    return None if suite.fresh is None else load_beside(suite.fresh, "fresh_config", suite.dataset, base, benchmark)
