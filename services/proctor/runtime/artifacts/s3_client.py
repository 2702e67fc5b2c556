"""The client of Amazon S3, and of services that speak its protocol (MinIO, Ceph, R2, …), and why it fails.

It is obstore (the Rust crate object_store): it signs, retries and times out by itself, loads in 0.04 s, takes 10 MiB,
where boto3 takes 0.35 s and 41 MiB, and minio 0.36 s and 22 MiB (Python 3.11). Credentials come from where it looks for
them: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, a web identity, or the role of the container or
machine. They are in no setting, message or error of Proctor's.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import BaseError
from obstore.store import S3Store

from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.artifacts.location import S3Location

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

#: With the backoff below, a service that is down is given up after some 5 s.
RETRIES = 6
_FIRST_BACKOFF = timedelta(milliseconds=100)
_LONGEST_BACKOFF = timedelta(seconds=5)
#: No retry begins later than this after the first request. A shard's lease is 15 minutes.
_RETRY_FOR = timedelta(seconds=60)
#: For the whole of one request, whose object has some tens of MiB at most in practice.
_TIMEOUT = timedelta(seconds=120)
_CONNECT_TIMEOUT = timedelta(seconds=5)
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
_TO_STORE = (
    "get and put objects (and to list them, or an object that is missing is refused as well; and to delete them, where "
    "a period of retention is set)"
)
FAILURES = (BaseError, OSError, ValueError)


def bucket_client(location: S3Location, *, retries: int = RETRIES) -> S3Store:
    """The client of a bucket. Nothing is sent yet; it belongs to the process that made it.

    Args:
        location: bucket, prefix and endpoint.
        retries: how often a request is sent again after an answer that may pass (429, 5xx) or a lost connection, with
            exponential backoff and jitter.

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
    try:
        return S3Store(
            location.bucket,
            prefix=location.prefix or None,
            config=service,
            client_options=client,
            retry_config=retry,
        )
    except FAILURES as error:
        why = _NO_CREDENTIALS if _CREDENTIALS.search(str(error)) else "the AWS_* variables make no sense together"
        raise StoreError(f"the client of {location} cannot be set up: {why}") from None


def _check_environment() -> None:
    """A line break at the end of a secret is easily kept by mistake, and the client panics at it."""
    for name in _IN_HEADERS:
        value = os.environ.get(name, "")
        if not (value.isascii() and value.isprintable()):
            raise BadInputError(f"{name} holds a line break, or another character that no header can; set it without")


def failure_of(text: str, name: str, *, may: str = _TO_STORE, named_in: str = "PROCTOR_ARTIFACTS") -> str:
    """Why the client failed, and the mend, in words of our own.

    Args:
        text: the client's error.
        name: of the object that was asked for; a URL without it is that of a source of credentials.
        may: what the credentials must allow.
        named_in: where the bucket is named.
    """
    asked, status, code = _ASKED.search(text), _STATUS.search(text), _CODE.search(text)
    if name not in asked[1] if asked else _CREDENTIALS.search(text):
        return _NO_CREDENTIALS
    if code and code[1] == "NoSuchBucket":
        return f"there is no such bucket; create it, or mend {named_in}"
    answer = " ".join(found[1] for found in (status, code) if found)
    if status and status[1] in ("401", "403"):
        return f"access is refused ({answer}); the credentials must be allowed to {may}"
    if "configured region" in text:
        return "the bucket is in another region; set AWS_REGION"
    if answer:
        return f"the service answered {answer}"
    return "the service cannot be reached; check PROCTOR_S3_ENDPOINT_URL and the network"
