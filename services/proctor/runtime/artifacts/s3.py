"""The artifact store in a bucket of Amazon S3, or of a service that speaks its protocol (MinIO, Ceph, R2, …)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from obstore.exceptions import PermissionDeniedError

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import StoreError
from proctor.runtime.artifacts.location import S3Location
from proctor.runtime.artifacts.names import is_object_name
from proctor.runtime.artifacts.objects import REFRESH_AFTER, StoredObject
from proctor.runtime.artifacts.packing import check_size, max_stored_bytes, object_name, packed, unpacked
from proctor.runtime.artifacts.s3_client import FAILURES, RETRIES, bucket_client, failure_of

#: Objects of a page of the listing, and of one deletion: as many as either request may have.
_PAGE = 1000


class S3Artifacts:
    """An artifact store in a bucket. Whoever writes an object writes the same content, so writers need not agree.

    It belongs to the process that made it: the client's threads do not survive a fork.
    """

    def __init__(self, location: S3Location, *, retries: int = RETRIES) -> None:
        """Set the client up; nothing is sent yet.

        Args:
            location: bucket, prefix and endpoint.
            retries: how often a request is sent again after an answer that may pass (429, 5xx) or a lost connection,
                with exponential backoff and jitter.

        Raises:
            BadInputError: when a variable of the environment is not fit for a header.
            StoreError: when the environment holds half of the credentials, or other AWS_* variables make no sense.
        """
        self._location = location
        self._store = bucket_client(location, retries=retries)

    def put(self, data: bytes) -> str:
        """Store bytes and return their digest. What is there already is not sent again.

        Raises:
            StoreError: when the store refuses, or cannot be reached.
            TooLargeError: for more than MAX_OBJECT_BYTES.
        """
        check_size(data)
        digest = bytes_digest(data)
        name = object_name(digest)
        try:
            if not self._holds_for_long(name):
                # In one request: one of several could leave parts behind, which are paid for and never seen.
                self._store.put(name, packed(data), use_multipart=False)
        except FAILURES as error:
            raise StoreError(
                f"an artifact cannot be written to {self._location}: {failure_of(str(error), name)}"
            ) from None
        return digest

    def _holds_for_long(self, name: str) -> bool:
        try:
            found = self._store.head(name)
        except (FileNotFoundError, PermissionDeniedError):
            # Who may not list a bucket is refused instead of told that an object is not there.
            return False
        # One that is older is sent again, so that what is deleted by its age leaves it alone.
        return datetime.now(UTC) - found["last_modified"] < REFRESH_AFTER

    def holds(self, digest: str) -> bool:
        """Whether an object is there.

        Raises:
            StoreError: when that cannot be told.
        """
        name = object_name(digest)
        try:
            self._store.head(name)
        except FileNotFoundError:
            return False
        except FAILURES as error:
            raise StoreError(f"{self._location} cannot be read: {failure_of(str(error), name)}") from None
        return True

    def objects(self) -> Iterator[Sequence[StoredObject]]:
        """Every object, a page of the listing at a time.

        Raises:
            StoreError: when the bucket cannot be listed.
        """
        try:
            for page in self._store.list(chunk_size=_PAGE):
                yield [
                    StoredObject(found["path"], found["size"], found["last_modified"])
                    for found in page
                    if is_object_name(found["path"])
                ]
        except FAILURES as error:
            why = failure_of(str(error), self._location.bucket)
            raise StoreError(f"{self._location} cannot be listed: {why}") from None

    def take_out(self, objects: Sequence[StoredObject], put_before: datetime) -> Sequence[StoredObject]:
        """Delete those objects of a page that were put before a time, and return them.

        The page is to be fresh: its ages are not asked for again, and a bucket has no locks.

        Raises:
            StoreError: when one cannot be deleted.
        """
        old = [one for one in objects if one.last_put < put_before]
        try:
            if old:
                self._store.delete([one.name for one in old])
        except FAILURES as error:
            why = failure_of(str(error), self._location.bucket)
            raise StoreError(f"artifacts in {self._location} cannot be deleted: {why}") from None
        return old

    def get(self, digest: str) -> bytes:
        """The bytes under a digest, verified against it.

        Raises:
            StoreError: when the object is missing or is not what its digest says, or the store refuses or cannot be
                reached.
        """
        name = object_name(digest)
        try:
            found = self._store.get(name)
            if found.meta["size"] > max_stored_bytes():
                raise StoreError(f"artifact {digest} in {self._location} is damaged: it has {found.meta['size']} bytes")
            stored = found.bytes()
        except FAILURES as error:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise StoreError(f"artifact {digest} is not in the store {self._location}") from None
            raise StoreError(
                f"artifact {digest} cannot be read from {self._location}: {failure_of(str(error), name)}"
            ) from None
        return unpacked(memoryview(stored), digest, where=str(self._location))
