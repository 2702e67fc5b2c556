"""Documents that every part of a stage looks into: the last few of a kind stay in memory."""

from __future__ import annotations

from typing import Final, Generic

from proctor.domain.manifest import ItemIndex, ItemSet, PromptSet, RewriteSet, VariantIndex
from proctor.runtime.artifacts.store import ArtifactStore, Model, get_model


class Kept(Generic[Model]):
    """The last few documents of a kind. A digest is its document, wherever."""

    def __init__(self, kind: type[Model], most: int) -> None:
        self._kind, self._most = kind, most
        self._documents: dict[str, Model] = {}

    def __call__(self, store: ArtifactStore, digest: str) -> Model:
        """The document of a digest, from memory or from the store."""
        found = self._documents.pop(digest, None) or get_model(store, digest, self._kind)
        self._documents[digest] = found
        if len(self._documents) > self._most:
            del self._documents[next(iter(self._documents))]
        return found


item_index: Final = Kept(ItemIndex, 16)
variant_index: Final = Kept(VariantIndex, 16)
prompt_set: Final = Kept(PromptSet, 1)
rewrite_set: Final = Kept(RewriteSet, 1)


def items_of_part(store: ArtifactStore, items: str, part: int) -> ItemSet:
    """One chunk of an audit's items.

    Args:
        items: digest of the ItemIndex.
        part: which chunk, from 0.
    """
    return get_model(store, item_index(store, items).chunks[part], ItemSet)
