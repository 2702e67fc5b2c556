"""What a webhook comes to, whichever registry sent it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from proctor.domain.errors import BadInputError
from proctor.domain.registered_version import RegisteredVersion


class ForgedError(BadInputError):
    """A delivery that nobody who knows a secret has sent, or not now."""


class MalformedError(BadInputError):
    """A delivery whose sender is known, and which says nothing that can be read."""


class Delivery(NamedTuple):
    """A delivery that was sent by who knows a secret."""

    id: str
    """The same in each retry."""
    content: str
    """Digest of what it says: another one under the same id is not a retry."""


class Registered(NamedTuple):
    """A version that may be audited."""

    version: RegisteredVersion


class AliasSet(NamedTuple):
    """An alias was set on a version, of which the event says no more than its name."""

    version: RegisteredVersion
    alias: str


class Ignored(NamedTuple):
    """An event that starts nothing, and why."""

    why: str


Event: TypeAlias = Registered | AliasSet | Ignored


def json_object(body: bytes) -> dict[str, Any]:
    """A body as an object of texts that can be written down again.

    Raises:
        MalformedError: when it is none.
    """
    try:
        found = json.loads(body)
        # Half of a surrogate pair is JSON for Python, and so is NaN; neither can be written down again.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise MalformedError("the body is no JSON") from None
    if not isinstance(found, dict):
        raise MalformedError("the body is no JSON object")
    return found


def text_of(data: Mapping[str, Any], key: str, most: int) -> str:
    """A text that an event must have.

    Raises:
        MalformedError: when it has none, or a longer one.
    """
    value = data.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= most or "\0" in value:
        raise MalformedError(f"{key} is no text of 1 to {most} characters")
    return value


def object_of(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object that an event must have.

    Raises:
        MalformedError: when it has none.
    """
    value = data.get(key)
    if not isinstance(value, dict):
        raise MalformedError(f"{key} is no object")
    return value
