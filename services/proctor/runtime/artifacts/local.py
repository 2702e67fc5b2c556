"""The artifact store in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import StoreError
from proctor.runtime.artifacts.objects import StoredObject, locked_folder, objects_in, refreshed, take_out_of
from proctor.runtime.artifacts.packing import check_size, max_stored_bytes, object_name, packed, unpacked
from proctor.runtime.files import sync_folder, write_atomic


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
