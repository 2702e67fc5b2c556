"""The artifact store: compressed objects under the digest of their content.

Prompts and completions live here; messages and the ledger hold digests only. Writing the same content twice is
one object, so a shard that is answered twice costs nothing and can change nothing.

A folder and a bucket hold the same bytes under the same names, so one can be copied to the other. An object is a zlib
stream, and its digest is over what it holds: which of the streams that hold it was written does not matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import ValidationError

from proctor.domain.base import Frozen
from proctor.domain.canonical import FULL_DIGEST, bytes_digest
from proctor.domain.errors import BadInputError, StoreError, TooLargeError
from proctor.domain.versions import reading, unknown_fields
from proctor.runtime.artifacts.compression import compressed, inflated
from proctor.runtime.artifacts.location import s3_location
from proctor.runtime.artifacts.objects import (
    ForgettingStore,
    StoredObject,
    locked_folder,
    objects_in,
    refreshed,
    take_out_of,
)
from proctor.runtime.files import sync_folder, write_atomic
from proctor.runtime.settings import Settings

#: What one object may hold. A shard's completions are the largest that are many: 16 MiB of answers, which are 96 MiB
#: where JSON has to escape each byte of them (`proctor.router.pools.packs`). Whoever reads an object has it twice for a
#: moment, as it is inflated, and that has to fit into a worker of one GiB.
MAX_OBJECT_BYTES = 1 << 28

Model = TypeVar("Model", bound=Frozen)


class ArtifactStore(Protocol):
    """Content-addressed storage."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest.

        Raises StoreError when the store cannot be written to, and TooLargeError for what could not be read again.
        """
        ...

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified. Raises StoreError when missing, damaged or out of reach."""
        ...


class StoreOfArtifacts(ArtifactStore, ForgettingStore, Protocol):
    """What both kinds of store are; hardly anybody needs all of it."""


class LocalArtifacts:
    """An artifact store in a local folder, fanned out by the first two hex digits."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest. They are on disk then, and outlive a loss of power.

        Raises:
            StoreError: when the folder cannot be written to.
            TooLargeError: for more than MAX_OBJECT_BYTES.
        """
        check_size(data)
        digest = bytes_digest(data)
        path = self._root / object_name(digest)
        try:
            with locked_folder(path.parent, alone=False):
                if refreshed(path):
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
            with path.open("rb") as stream:
                # By its size: read() makes room for all that it is allowed before it reads.
                stored = stream.read(min(os.fstat(stream.fileno()).st_size, max_stored_bytes()) + 1)
        except FileNotFoundError:
            raise StoreError(f"artifact {digest} is not in the store {self._root}") from None
        except OSError as error:
            raise StoreError(f"artifact {digest} in {self._root} cannot be read: {error.strerror}") from error
        return unpacked(stored, digest, where=str(self._root))

    def holds(self, digest: str) -> bool:
        """Whether an object is there.

        Raises:
            StoreError: when that cannot be told.
        """
        try:
            (self._root / object_name(digest)).stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"the artifact store {self._root} cannot be read: {error.strerror}") from error
        return True

    def objects(self) -> Iterator[Sequence[StoredObject]]:
        """Every object, in batches. Raises StoreError when the folder cannot be listed."""
        try:
            yield from objects_in(self._root)
        except OSError as error:
            raise StoreError(f"the artifact store {self._root} cannot be listed: {error.strerror}") from error

    def take_out(self, objects: Sequence[StoredObject], put_before: datetime) -> Sequence[StoredObject]:
        """Delete objects of one batch, and return them, but for those that were put at or after a time.

        Raises:
            StoreError: when one cannot be deleted.
        """
        try:
            return take_out_of(self._root, objects, put_before)
        except OSError as error:
            raise StoreError(f"artifacts in {self._root} cannot be deleted: {error.strerror}") from error


def open_artifacts(settings: Settings) -> StoreOfArtifacts:
    """The artifact store that the settings name: a folder, or S3-compatible storage. Nothing is asked of it yet.

    Raises:
        BadInputError: when the settings name neither, or the client of S3 is not installed.
    """
    location = s3_location(settings.artifacts, settings.s3_endpoint_url)
    if location is None:
        return LocalArtifacts(Path(settings.artifacts))
    try:
        # Its client is an extra.
        from proctor.runtime.artifacts.s3 import S3Artifacts
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


def check_size(data: bytes) -> None:
    """Refuse what could not be read again.

    Raises:
        TooLargeError: for more than MAX_OBJECT_BYTES.
    """
    if len(data) > MAX_OBJECT_BYTES:
        raise TooLargeError(
            f"an artifact of {len(data):,} bytes is not stored, because no more than {MAX_OBJECT_BYTES:,} can be read "
            "again; lower dataset_config.sample_size or perturbation_config.num_variants_per_item"
        )


def max_stored_bytes() -> int:
    """Bytes that an object takes at most: data that cannot be compressed grows by less than a 256th."""
    return MAX_OBJECT_BYTES + (MAX_OBJECT_BYTES >> 8) + 1024


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
    if len(stored) > max_stored_bytes():
        raise StoreError(f"artifact {digest} in {where} is damaged: it has more than {max_stored_bytes():,} bytes")
    try:
        data = inflated(stored, MAX_OBJECT_BYTES)
    except ValueError as error:
        raise StoreError(f"artifact {digest} in {where} is damaged: {error}") from None
    if bytes_digest(data) != digest:
        raise StoreError(f"artifact {digest} in {where} holds other content than its digest says")
    return data


def put_model(store: ArtifactStore, model: Frozen) -> str:
    """Store a model as JSON and return its digest."""
    return store.put(model_bytes(model))


def model_bytes(model: Frozen) -> bytes:
    """A model as it is stored.

    Its fields have a fixed order, so equal models are one object. It is not RFC 8785: an item's metadata may hold
    integers that this form refuses.
    """
    return model.model_dump_json(by_alias=True).encode("utf-8")


def get_model(store: ArtifactStore, digest: str, kind: type[Model]) -> Model:
    """Load a model that `put_model` stored.

    Raises:
        StoreError: when it is not there, or damaged.
        NewerVersionError: when it has fields that only a newer Proctor knows.
    """
    try:
        return kind.model_validate_json(store.get(digest))
    except ValidationError as error:
        if unknown_fields(error):
            raise reading(f"{kind.__name__} {digest}", error) from None
        raise
