"""The Hugging Face Hub's webhooks: a secret in a header, and a body that nobody signed.

So a body is a hint: what it says of a repository is asked of the Hub before anything is done about it. There is no
delivery id either; the same push has the same webhook, repository, branch and commit
(huggingface/hub-docs, `docs/hub/webhooks.md`).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import SecretStr

from proctor.domain.canonical import bytes_digest
from proctor.domain.hub import HUB_ID, HUB_REVISION
from proctor.domain.registered_version import RegisteredVersion, RegistryKind
from proctor.registry.webhooks.events import (
    Delivery,
    Event,
    ForgedError,
    Ignored,
    MalformedError,
    Registered,
    json_object,
    object_of,
    text_of,
)

SECRET_HEADER: Final = "x-webhook-secret"  # noqa: S105, the name of a header
_BRANCH: Final = "refs/heads/main"
_CONTENT: Final = "repo.content"
_MAX_REFS: Final = 100


def verify(headers: Mapping[str, Sequence[str]], secrets: Sequence[SecretStr]) -> None:
    """See to it that the sender knows a secret. All are compared, each in constant time.

    Raises:
        ForgedError: when it does not.
    """
    shown = headers.get(SECRET_HEADER, ())
    right = False
    for secret in secrets:
        given = shown[0].encode("utf-8", "replace") if len(shown) == 1 else b""
        right |= hmac.compare_digest(secret.get_secret_value().encode(), given)
    if not right:
        raise ForgedError(
            f"{SECRET_HEADER} is missing or wrong: send a secret that is active here, in the header alone"
        )


def delivery_of(body: bytes) -> Delivery:
    """What a delivery is known by when it comes again.

    Raises:
        MalformedError: when it is none of the Hub's.
    """
    said = json_object(body)
    webhook, repo, pushed = said.get("webhook"), said.get("repo"), _pushed(said)
    names = [one.get("id") if isinstance(one, dict) else None for one in (webhook, repo)]
    # Not of the whole body: the Hub may tell more of the same push another time.
    identity = bytes_digest(repr([*names, said.get("event"), pushed]).encode())
    return Delivery(identity, identity)


def event_of(body: bytes) -> Event:
    """What a delivery hints at.

    Raises:
        MalformedError: when it is none of the Hub's.
    """
    said = json_object(body)
    event, repo = object_of(said, "event"), object_of(said, "repo")
    scope = text_of(event, "scope", 100)
    # A scope that is not known narrows the one that it begins with.
    if scope != _CONTENT and not scope.startswith(f"{_CONTENT}."):
        return Ignored("an event that starts nothing")
    if text_of(event, "action", 100) == "delete" or text_of(repo, "type", 20) != "model":
        return Ignored("no push to a model")
    name, pushed = text_of(repo, "name", 200), _pushed(said)
    if not re.fullmatch(HUB_ID, name):
        raise MalformedError("repo.name is not owner/name")
    if pushed is None:
        return Ignored("no push to the main branch")
    return Registered(RegisteredVersion(registry=RegistryKind.HUGGINGFACE, name=name, version=pushed))


def _pushed(said: Mapping[str, Any]) -> str | None:
    """The commit that the main branch came to."""
    refs = said.get("updatedRefs")
    for ref in refs[:_MAX_REFS] if isinstance(refs, list) else ():
        if isinstance(ref, dict) and ref.get("ref") == _BRANCH and re.fullmatch(HUB_REVISION, str(ref.get("newSha"))):
            return str(ref["newSha"])
    return None
