"""The variants of an index at once, which the product reads a chunk at a time."""

from __future__ import annotations

from proctor.domain.manifest import VariantSet
from proctor.runtime.artifacts.chunks import StoredVariants
from proctor.runtime.artifacts.store import ArtifactStore


def get_variants(store: ArtifactStore, digest: str) -> VariantSet:
    """All variants of a VariantIndex, in the order of the items."""
    stored = StoredVariants(store, digest)
    return stored.summary().model_copy(update={"variants": tuple(stored)})
