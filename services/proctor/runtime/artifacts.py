"""The artifact store: compressed objects under the digest of their content.

Prompts and completions live here; messages and the ledger hold digests only. Writing the same content twice is
one object, so a shard that is answered twice costs nothing and can change nothing.

A folder and a bucket hold the same bytes under the same names, so one can be copied to the other. An object is a zlib
stream, and its digest is over what it holds: which of the streams that hold it was written does not matter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

from proctor.domain.base import Frozen
from proctor.domain.canonical import FULL_DIGEST, bytes_digest
from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.artifacts_location import s3_location
from proctor.runtime.compression import compressed, inflated
from proctor.runtime.files import sync_folder, write_atomic
from proctor.runtime.settings import Settings

#: One object at most: a shard of 256 prompts of 1 MiB, with room to spare. Bounds what a damaged object can inflate to.
MAX_OBJECT_BYTES = 1 << 30

Model = TypeVar("Model", bound=Frozen)


class ArtifactStore(Protocol):
    """Content-addressed storage."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest. Raises StoreError when the store cannot be written to."""
        ...

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified. Raises StoreError when missing, damaged or out of reach."""
        ...


class LocalArtifacts:
    """An artifact store in a local folder, fanned out by the first two hex digits."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest. They are on disk then, and outlive a loss of power.

        Raises:
            StoreError: when the folder cannot be written to.
        """
        digest = bytes_digest(data)
        path = self._root / object_name(digest)
        try:
            if path.exists():
                # Whoever is writing it may not have come to this yet.
                sync_folder(path.parent)
            else:
                write_atomic(path, packed(data))
        except OSError as error:
            raise StoreError(
                f"an artifact cannot be written to {self._root}: {error.strerror}; PROCTOR_ARTIFACTS names the folder"
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified against it.

        Raises:
            StoreError: when the object is missing, cannot be read, or is not what its digest says.
        """
        path = self._root / object_name(digest)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            raise StoreError(f"artifact {digest} is not in the store {self._root}") from None
        except OSError as error:
            raise StoreError(f"artifact {digest} in {self._root} cannot be read: {error.strerror}") from error
        return unpacked(stored, digest, where=str(self._root))


def open_artifacts(settings: Settings) -> ArtifactStore:
    """The artifact store that the settings name: a folder, or S3-compatible storage. Nothing is asked of it yet.

    Raises:
        BadInputError: when the settings name neither, or the client of S3 is not installed.
    """
    location = s3_location(settings.artifacts, settings.s3_endpoint_url)
    if location is None:
        return LocalArtifacts(Path(settings.artifacts))
    try:
        # Its client is an extra.
        from proctor.runtime.s3_artifacts import S3Artifacts
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise BadInputError(
            f"artifacts are kept in {location}, and the client for that is not installed; run: pip install obstore"
        ) from None
    return S3Artifacts(location)


def object_name(digest: str) -> str:
    """The name of a digest's object below the store's root, e.g. `2c/2cf2….z`.

    Raises:
        StoreError: for anything but a whole digest, so that nothing else is ever looked up.
    """
    if not FULL_DIGEST.fullmatch(digest):
        raise StoreError(f"{digest[:100]!r} is not the digest of an artifact")
    name = digest.removeprefix("sha256:")
    return f"{name[:2]}/{name}.z"


def packed(data: bytes) -> bytes:
    """The bytes of an object that holds `data`."""
    return compressed(data)


def unpacked(stored: bytes | memoryview, digest: str, *, where: str) -> bytes:
    """What an object holds, verified against its digest.

    Args:
        stored: the object's bytes.
        where: the store, for the message.

    Raises:
        StoreError: when the object is not what its digest says.
    """
    try:
        data = inflated(stored, MAX_OBJECT_BYTES)
    except ValueError as error:
        raise StoreError(f"artifact {digest} in {where} is damaged: {error}") from None
    if bytes_digest(data) != digest:
        raise StoreError(f"artifact {digest} in {where} holds other content than its digest says")
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
