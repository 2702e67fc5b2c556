"""The artifact store: compressed objects under the digest of their content.

Prompts and completions live here; messages and the ledger hold digests only. Writing the same content twice is
one object, so a shard that is answered twice costs nothing and can change nothing.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Protocol, TypeVar

from proctor.domain.base import Frozen
from proctor.domain.canonical import FULL_DIGEST, bytes_digest
from proctor.domain.errors import StoreError
from proctor.runtime.files import write_atomic

#: One object at most: a shard of 256 prompts of 1 MiB, with room to spare. Bounds what a damaged object can inflate to.
MAX_OBJECT_BYTES = 1 << 30
_LEVEL = 3

Model = TypeVar("Model", bound=Frozen)


class ArtifactStore(Protocol):
    """Content-addressed storage."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest."""
        ...

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified. Raises StoreError when missing or damaged."""
        ...


class LocalArtifacts:
    """An artifact store in a local folder, fanned out by the first two hex digits."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, digest: str) -> Path:
        if not FULL_DIGEST.fullmatch(digest):
            raise StoreError(f"{digest[:100]!r} is not the digest of an artifact")
        name = digest.removeprefix("sha256:")
        return self._root / name[:2] / f"{name}.z"

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest."""
        digest = bytes_digest(data)
        path = self._path(digest)
        if not path.exists():
            write_atomic(path, zlib.compress(data, _LEVEL))
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified against it.

        Raises:
            StoreError: when the object is missing or is not what its digest says.
        """
        path = self._path(digest)
        try:
            decompressor = zlib.decompressobj()
            data = decompressor.decompress(path.read_bytes(), MAX_OBJECT_BYTES)
        except FileNotFoundError:
            raise StoreError(f"artifact {digest} is not in the store {self._root}") from None
        except zlib.error as error:
            raise StoreError(f"artifact {digest} in {self._root} is damaged: {error}") from None
        if bytes_digest(data) != digest:
            raise StoreError(f"artifact {digest} in {self._root} holds other content than its digest says")
        return data


def put_model(store: ArtifactStore, model: Frozen) -> str:
    """Store a model as JSON and return its digest.

    Its fields have a fixed order, so equal models are one object. It is not RFC 8785: an item's metadata may hold
    integers that this form refuses.
    """
    return store.put(model.model_dump_json(by_alias=True).encode("utf-8"))


def get_model(store: ArtifactStore, digest: str, kind: type[Model]) -> Model:
    """Load a model that `put_model` stored."""
    return kind.model_validate_json(store.get(digest))
