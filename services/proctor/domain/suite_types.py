"""Kinds of value that the suite's sections share."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from proctor.domain.canonical import DIGEST_OR_PREFIX
from proctor.domain.endpoint_url import IN_PROCESS, OddUrlError, endpoint_url
from proctor.domain.field_words import Words
from proctor.domain.url import UNIX

_ENDPOINT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


def _content_hash(value: str) -> str:
    if not DIGEST_OR_PREFIX.fullmatch(value):
        raise PydanticCustomError(
            "mutable_version",
            "must be a content hash, 'sha256:' and 12 to 64 lower-case hex digits",
            {"mend": "pin the weights by content, e.g. sha256 of model.safetensors; a tag or alias can move"},
        )
    return value


def _endpoint(value: str) -> str:
    if "://" in value:
        try:
            parts = endpoint_url(value)
        except OddUrlError as odd:
            raise PydanticCustomError("endpoint_url", "{fault}", {"fault": odd.fault, "mend": odd.mend}) from None
        if parts.scheme in (IN_PROCESS, UNIX):
            raise PydanticCustomError(
                "endpoint_url",
                "is not for a suite to say",
                {"mend": "name an endpoint's id, e.g. local-triton, or its URL"},
            )
    elif not _ENDPOINT_ID.fullmatch(value):
        raise PydanticCustomError(
            "endpoint_id",
            "must be a URL or an endpoint id",
            {"mend": "an id is letters, digits, '.', '_' and '-', e.g. local-triton"},
        )
    return value


def _served_name(value: str | None) -> str | None:
    # A backend may make a path or a URL of it, a plug-in's too.
    if value is not None and ".." in value.split("/"):
        raise PydanticCustomError(
            "climbing_name",
            "is a path with '..' in it",
            {"mend": "serve the model under a name without it, e.g. --served-model-name NAME, and write that"},
        )
    return value


#: Characters of the name under which an endpoint serves a model: a path, more often than not.
MAX_SERVED_NAME: Final = 512
ServedName = Annotated[
    str | None,
    Words(alphabet="a name or a path of letters, digits, '.', '_', '/', ':', '@', '+', '~' and '-'"),
    Field(min_length=1, max_length=MAX_SERVED_NAME, pattern=r"^[A-Za-z0-9._/~][A-Za-z0-9._/:@+~-]*$"),
    AfterValidator(_served_name),
]
"""The name under which an endpoint serves a model, as the server has it; vLLM's is by default the model's path."""
ContentHash = Annotated[str, AfterValidator(_content_hash)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Fraction = Annotated[float, Field(gt=0.0, lt=1.0)]
#: The largest integer that canonical JSON (RFC 8785) can hold.
Seed = Annotated[int, Field(ge=0, le=2**53 - 1)]
Percent = Annotated[float, Field(ge=0.0, le=100.0)]
