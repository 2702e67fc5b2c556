"""Ready rewordings from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from proctor.domain.canonical import json_digest
from proctor.domain.item import Item
from proctor.formats.rewordings import MatchedRewordings, Rewording
from proctor.perturbation.candidate import Draft, Rewrite
from proctor.perturbation.strategies.base import Strategy


class Imported(Strategy):
    """The file's rewordings of an item, in file order."""

    name = "imported"
    #: A file from anywhere promises nothing.
    preserves: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, rewordings: MatchedRewordings) -> None:
        self._rewordings = rewordings

    def data_digest(self, item: Item) -> str:
        """Digest of this item's rewordings, so that a longer file leaves what is in the library valid."""
        rows = self._rewordings.by_item.get(item.item_id, ())
        return f"imported/1 {json_digest([[row.question, row.choices] for row in rows])}"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite]:
        """The item's rewordings; the seed has no part in it."""
        return [self._ask(row) for row in self._rewordings.by_item.get(item.item_id, ())[:limit]]

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """The file does not reword this item."""
        return "no_rewording", "the file of rewordings has none of this item"

    def _ask(self, row: Rewording) -> Rewrite:
        def apply(draft: Draft) -> Draft:
            choices = draft.choices if row.choices is None else row.choices
            return replace(draft, question=row.question, choices=choices).noting("imported", line=row.line)

        return apply
