"""Objects of a bucket as files of a corpus: listed by a glob, read by ranges of the version that was listed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proctor.domain.errors import BadInputError, ProctorError, StoreError
from proctor.exposure.corpus_file import CorpusFile, Unreadable
from proctor.exposure.remote.patterns import folder_of, is_pattern, matcher
from proctor.formats.faults import shown
from proctor.runtime.artifacts.location import S3Location
from proctor.runtime.settings import Settings

if TYPE_CHECKING:
    from obstore.store import S3Store

SCHEME: Final = "s3://"
#: Of a bucket, under the folder that a glob begins with.
MAX_LISTED_OBJECTS: Final = 1_000_000
#: What is asked for at a time.
RANGE_BYTES: Final = 8 << 20
_PAGE: Final = 1_000
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_MAY: Final = "list the bucket and get its objects"


class _Place(NamedTuple):
    bucket: str
    key: str


def bucket_files(pattern: str) -> list[CorpusFile]:
    """The objects that `s3://bucket/glob` names, each with its ETag.

    Raises:
        BadInputError: when the URL names no object, more is listed than is read, or the client is not installed.
        ProctorError: when the bucket cannot be listed: no credentials, no such bucket, no access.
    """
    place = _place(pattern)
    if not place.key:
        raise BadInputError(f"--corpus {shown(pattern)} names a bucket; name its objects, e.g. {pattern}/**/*.jsonl.gz")
    is_wanted = matcher(place.key)
    return [
        CorpusFile(f"{SCHEME}{place.bucket}/{found['path']}", found["size"], 0, _etag(found))
        for found in _listed(place, pattern)
        # A key that ends with a stroke is a folder's mark.
        if found["path"] == place.key or (is_wanted(found["path"]) and not found["path"].endswith("/"))
    ]


def _etag(found: Any) -> str:
    return str(found["e_tag"] or found["last_modified"].isoformat())


def _listed(place: _Place, pattern: str) -> Iterator[Any]:
    from obstore.exceptions import NotFoundError

    from proctor.runtime.artifacts.s3_client import FAILURES, failure_of

    client = client_of(place.bucket)
    try:
        if not is_pattern(place.key):
            yield client.head(place.key)
            return
        count = 0
        for page in client.list(folder_of(place.key) or None, chunk_size=_PAGE):
            yield from page
            count += len(page)
            if count > MAX_LISTED_OBJECTS:
                raise BadInputError(
                    f"--corpus {shown(pattern)} has more than {MAX_LISTED_OBJECTS:,} objects under "
                    f"{folder_of(place.key) or 'the bucket'!r}: name a folder further down"
                )
    except FAILURES as error:
        # A bucket that is not there, and an object in one that is.
        if isinstance(error, (NotFoundError, FileNotFoundError)) and "NoSuchBucket" not in str(error):
            return
        why = failure_of(str(error), folder_of(place.key) or place.bucket, may=_MAY, named_in="--corpus")
        raise ProctorError(f"{SCHEME}{place.bucket} cannot be listed: {why}") from None


def _place(url: str) -> _Place:
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise BadInputError(
            f"--corpus {shown(url)} names no bucket: after s3:// comes its name, 3 to 63 lower-case letters, digits, "
            "dots and hyphens"
        )
    return _Place(bucket, key)


@cache
def client_of(bucket: str) -> S3Store:
    """The client of a bucket; a worker that was spawned makes one of its own."""
    try:
        from proctor.runtime.artifacts.s3_client import bucket_client
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise BadInputError("a corpus in a bucket needs obstore: pip install 'proctor[s3]'") from None
    endpoint_url = Settings.from_environment(artifacts=f"{SCHEME}{bucket}").s3_endpoint_url
    try:
        return bucket_client(S3Location(bucket, "", endpoint_url))
    except StoreError as error:
        raise ProctorError(str(error)) from None


class ObjectStream(io.RawIOBase):
    """The bytes of an object, a range after the other, all of the version that was listed.

    Raises:
        Unreadable: as it is read, when the object was changed or taken away, or the bucket does not answer.
    """

    def __init__(self, file: CorpusFile) -> None:
        place = _place(file.path)
        self._client, self._key = client_of(place.bucket), place.key
        self._size, self._etag = file.size_bytes, file.version
        self._at = 0
        self._held, self._held_from = memoryview(b""), 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Read on from there."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """The next bytes, perhaps fewer than there is room for."""
        begin = self._at - self._held_from
        if not 0 <= begin < len(self._held):
            if self._at >= self._size:
                return 0
            self._held, self._held_from, begin = self._range(), self._at, 0
        piece = self._held[begin : begin + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _range(self) -> memoryview:
        from obstore.exceptions import NotFoundError, PreconditionError

        from proctor.runtime.artifacts.s3_client import FAILURES, failure_of

        end = min(self._at + RANGE_BYTES, self._size)
        try:
            answer = self._client.get(self._key, options={"range": (self._at, end), "if_match": self._etag})
            data = bytes(answer.bytes())
            etag = _etag(answer.meta)
        except PreconditionError:
            raise Unreadable("the object changed while it was read") from None
        except FAILURES as error:
            if isinstance(error, (NotFoundError, FileNotFoundError)):
                raise Unreadable("the object was deleted while it was read") from None
            raise Unreadable(failure_of(str(error), self._key, may=_MAY, named_in="--corpus")) from None
        # Not every service heeds the condition.
        if etag != self._etag or len(data) != end - self._at:
            raise Unreadable("the object changed while it was read")
        return memoryview(data)
