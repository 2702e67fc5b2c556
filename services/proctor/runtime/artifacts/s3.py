"""The artifact store in a bucket of Amazon S3, or of a service that speaks its protocol (MinIO, Ceph, R2, …).

The client is obstore (the Rust crate object_store): it signs, retries and times out by itself, loads in 0.04 s and
takes 10 MiB, where boto3 takes 0.35 s and 41 MiB, and minio 0.36 s and 22 MiB (Python 3.11). Credentials come from
where it looks for them: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, a web identity, or the role of
the container or machine. They are in no setting, message or error of Proctor's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError, PermissionDeniedError
from obstore.store import S3Store

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.artifacts.location import S3Location
from proctor.runtime.artifacts.names import is_object_name
from proctor.runtime.artifacts.objects import REFRESH_AFTER, StoredObject
from proctor.runtime.artifacts.packing import check_size, max_stored_bytes, object_name, packed, unpacked

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

#: With the backoff below, a service that is down is given up after some 5 s.
_RETRIES = 6
_FIRST_BACKOFF = timedelta(milliseconds=100)
_LONGEST_BACKOFF = timedelta(seconds=5)
#: No retry begins later than this after the first request. A shard's lease is 15 minutes.
_RETRY_FOR = timedelta(seconds=60)
#: For the whole of one request, whose object has some tens of MiB at most in practice.
_TIMEOUT = timedelta(seconds=120)
_CONNECT_TIMEOUT = timedelta(seconds=5)
#: Objects of a page of the listing, and of one deletion: as many as either request may have.
_PAGE = 1000

# The client's errors have no fields: what was asked and answered stands in their text alone. That text is never shown,
# because a service's answer can repeat what the request was signed with.
_ASKED = re.compile(r"Error performing [A-Z]+ (\S+) ")
_STATUS = re.compile(r"status code: (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z]{1,64})</Code>")
_CREDENTIALS = re.compile(r"Missing(?:AccessKeyId|SecretAccessKey)|token file|redential")
_NO_CREDENTIALS = (
    "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
)
#: Of the environment, what a request's headers carry.
_IN_HEADERS = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION",
)  # fmt: skip
_FAILURES = (BaseError, OSError, ValueError)


class S3Artifacts:
    """An artifact store in a bucket. Whoever writes an object writes the same content, so writers need not agree.

    It belongs to the process that made it: the client's threads do not survive a fork.
    """

    def __init__(self, location: S3Location, *, retries: int = _RETRIES) -> None:
        """Set the client up; nothing is sent yet.

        Args:
            location: bucket, prefix and endpoint.
            retries: how often a request is sent again after an answer that may pass (429, 5xx) or a lost connection,
                with exponential backoff and jitter.

        Raises:
            BadInputError: when a variable of the environment is not fit for a header.
            StoreError: when the environment holds half of the credentials, or other AWS_* variables make no sense.
        """
        _check_environment()
        client: ClientConfig = {
            "connect_timeout": _CONNECT_TIMEOUT,
            "timeout": _TIMEOUT,
            "allow_http": (location.endpoint_url or "").startswith("http://"),
        }
        retry: RetryConfig = {
            "max_retries": retries,
            "retry_timeout": _RETRY_FOR,
            "backoff": {"init_backoff": _FIRST_BACKOFF, "max_backoff": _LONGEST_BACKOFF, "base": 2},
        }
        service: S3Config = {"endpoint": location.endpoint_url} if location.endpoint_url else {}
        self._location = location
        try:
            self._store = S3Store(
                location.bucket,
                prefix=location.prefix or None,
                config=service,
                client_options=client,
                retry_config=retry,
            )
        except _FAILURES as error:
            why = _NO_CREDENTIALS if _CREDENTIALS.search(str(error)) else "the AWS_* variables make no sense together"
            raise StoreError(f"the client of {location} cannot be set up: {why}") from None

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
        except _FAILURES as error:
            raise StoreError(
                f"an artifact cannot be written to {self._location}: {_reason(str(error), name)}"
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
        except _FAILURES as error:
            raise StoreError(f"{self._location} cannot be read: {_reason(str(error), name)}") from None
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
        except _FAILURES as error:
            why = _reason(str(error), self._location.bucket)
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
        except _FAILURES as error:
            why = _reason(str(error), self._location.bucket)
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
        except _FAILURES as error:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise StoreError(f"artifact {digest} is not in the store {self._location}") from None
            raise StoreError(
                f"artifact {digest} cannot be read from {self._location}: {_reason(str(error), name)}"
            ) from None
        return unpacked(memoryview(stored), digest, where=str(self._location))


def _check_environment() -> None:
    """A line break at the end of a secret is easily kept by mistake, and the client panics at it."""
    for name in _IN_HEADERS:
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isprintable()):
            raise BadInputError(f"{name} holds a line break, or another character that no header can; set it without")


def _reason(text: str, name: str) -> str:
    """Why the client failed, and the mend, in words of our own.

    Args:
        text: the client's error.
        name: of the object that was asked for; a URL without it is that of a source of credentials.
    """
    asked, status, code = _ASKED.search(text), _STATUS.search(text), _CODE.search(text)
    if name not in asked[1] if asked else _CREDENTIALS.search(text):
        return _NO_CREDENTIALS
    if code and code[1] == "NoSuchBucket":
        return "there is no such bucket; create it, or mend PROCTOR_ARTIFACTS"
    answer = " ".join(found[1] for found in (status, code) if found)
    if status and status[1] in ("401", "403"):
        return (
            f"access is refused ({answer}); the credentials must be allowed to get and put objects (and to list them, "
            "or an object that is missing is refused as well; and to delete them, where a period of retention is set)"
        )
    if "configured region" in text:
        return "the bucket is in another region; set AWS_REGION"
    if answer:
        return f"the service answered {answer}"
    return "the service cannot be reached; check PROCTOR_S3_ENDPOINT_URL and the network"
