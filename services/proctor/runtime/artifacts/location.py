"""Where artifacts are kept, as the settings write it: a folder, or `s3://bucket/prefix`."""

from __future__ import annotations

import re
from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.url import UrlFault, parts_of, url_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
#: "General purpose buckets naming rules", Amazon S3 User Guide.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
#: Characters that no client writes in another way in a URL, so that a copied folder has the keys that are looked up.
_PREFIX = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*")
_URL_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/\[\]%-]+")
#: The longest key is 1,024 bytes; an object's own name takes 69.
_MAX_PREFIX = 900


class S3Location(NamedTuple):
    """A bucket, the prefix of every key in it, and the service that has it."""

    bucket: str
    prefix: str
    """Without slashes at its ends; may be empty."""
    endpoint_url: str | None
    """None is Amazon's own, in the region that AWS_REGION names."""

    def __str__(self) -> str:
        url = f"s3://{self.bucket}/{self.prefix}".rstrip("/")
        return f"{url} at {self.endpoint_url}" if self.endpoint_url else url


def s3_location(text: str, endpoint_url: str | None) -> S3Location | None:
    """The bucket that a location names; None when it is a folder.

    Args:
        text: a folder's path, or `s3://bucket` or `s3://bucket/prefix`.
        endpoint_url: of a service other than Amazon's; looked at only where the location is a bucket.

    Raises:
        BadInputError: when it is a URL of another kind, or there is no such bucket, prefix or endpoint.
    """
    if not _SCHEME.match(text):
        return None
    if not text.startswith("s3://"):
        raise BadInputError(f"PROCTOR_ARTIFACTS is {_shown(text)}, but must be a folder or s3://bucket/prefix")
    bucket, _, rest = text.removeprefix("s3://").partition("/")
    prefix = rest.strip("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise BadInputError(
            f"PROCTOR_ARTIFACTS is {_shown(text)}, which names no bucket: after s3:// comes its name, 3 to 63 "
            "lower-case letters, digits, dots and hyphens"
        )
    if prefix and not (
        _PREFIX.fullmatch(prefix) and len(prefix) <= _MAX_PREFIX and all(part.strip(".") for part in prefix.split("/"))
    ):
        raise BadInputError(
            f"PROCTOR_ARTIFACTS is {_shown(text)}, but a prefix is made of letters, digits, '_', '.' and '-' between "
            f"single slashes, {_MAX_PREFIX} characters at most"
        )
    return S3Location(bucket, prefix, _endpoint(endpoint_url) if endpoint_url else None)


def _endpoint(url: str) -> str:
    try:
        parts = parts_of(url)
        parts.place()
        if parts.says_more:
            # Not shown: what stands there may be a secret.
            raise BadInputError(
                "the S3 endpoint holds more than an address: give it (PROCTOR_S3_ENDPOINT_URL) as in "
                "https://minio.example:9000, and credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        usable = bool(_URL_CHARACTERS.fullmatch(url_of(parts).text))
    except UrlFault:
        usable = False
    if not usable or parts.scheme not in ("http", "https"):
        raise BadInputError(
            f"the S3 endpoint is {_shown(url)}, but must be an http or https URL, e.g. https://minio.example:9000; "
            "PROCTOR_S3_ENDPOINT_URL or AWS_ENDPOINT_URL sets it"
        )
    return url.rstrip("/")


def _shown(text: str) -> str:
    # What stands before an '@' may be a secret.
    return "a URL with '@' in it" if "@" in text else repr(text[:80])
