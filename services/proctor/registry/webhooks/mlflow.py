"""MLflow's webhooks: the signature of a delivery, and the events that matter here.

`X-MLflow-Signature: v1,<base64>` is the HMAC-SHA256 of `<delivery id>.<timestamp>.<body>` (MLflow 3.17,
`mlflow/webhooks/delivery.py`, by the construction of Standard Webhooks). Retries repeat all headers.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import SecretStr

from proctor.domain.canonical import bytes_digest
from proctor.domain.registered_version import (
    MAX_NAME_CHARACTERS,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    MAX_VERSION_CHARACTERS,
    OWN_TAGS,
    RegisteredVersion,
    RegistryKind,
)
from proctor.registry.webhooks.events import (
    AliasSet,
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

SIGNATURE_HEADER: Final = "x-mlflow-signature"
DELIVERY_HEADER: Final = "x-mlflow-delivery-id"
TIMESTAMP_HEADER: Final = "x-mlflow-timestamp"
#: Clocks differ, in both directions: who is a second behind the sender must not lose the event.
MAX_AGE_S: Final = 300
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
#: What `test_webhook` sends (MLflow 3.17, `mlflow/webhooks/types.py`).
_EXAMPLE_NAME: Final = "example_model"
_EXAMPLES: Final[tuple[Mapping[str, Any], ...]] = (
    {"tags": {"example_key": "example_value"}},
    {"alias": "example_alias"},
)


def verified(headers: Mapping[str, Sequence[str]], body: bytes, secrets: Sequence[SecretStr], now_s: float) -> Delivery:
    """The delivery, once it is clear that who knows a secret sent it within five minutes.

    Every secret is tried, each in constant time, so that the time says nothing.

    Args:
        headers: every value of each, by names in small letters.
        body: the bytes as they came.
        secrets: those that are active.
        now_s: seconds since 1970.

    Raises:
        ForgedError: when it is not; nothing of the body was looked at but its signature.
    """
    signature, delivery, timestamp = (
        _one(headers, name) for name in (SIGNATURE_HEADER, DELIVERY_HEADER, TIMESTAMP_HEADER)
    )
    if not _ID.fullmatch(delivery) or not _TIMESTAMP.fullmatch(timestamp):
        raise ForgedError(f"{DELIVERY_HEADER} or {TIMESTAMP_HEADER} is missing or is none")
    signed = f"{delivery}.{timestamp}.".encode() + body
    right = False
    for secret in secrets:
        expected = base64.b64encode(hmac.new(secret.get_secret_value().encode(), signed, hashlib.sha256).digest())
        right |= hmac.compare_digest(b"v1," + expected, signature.encode("utf-8", "replace"))
    if not right:
        raise ForgedError(f"{SIGNATURE_HEADER} is missing or wrong: sign with a secret that is active here")
    if abs(now_s - int(timestamp)) > MAX_AGE_S:
        raise ForgedError(
            f"{TIMESTAMP_HEADER} is more than {MAX_AGE_S} s from this machine's clock: is one of the clocks wrong?"
        )
    return Delivery(delivery, bytes_digest(body))


def _one(headers: Mapping[str, Sequence[str]], name: str) -> str:
    found = headers.get(name, ())
    return found[0] if len(found) == 1 else ""


def event_of(body: bytes) -> Event:
    """What a verified delivery says.

    Raises:
        MalformedError: when it is none of MLflow's.
    """
    envelope = json_object(body)
    entity, action = text_of(envelope, "entity", 100), text_of(envelope, "action", 100)
    data, kind = object_of(envelope, "data"), f"{entity}.{action}"
    if kind == "model_version_tag.set" and str(data.get("key", "")).startswith(OWN_TAGS):
        return Ignored("a tag of Proctor's own")
    if kind not in ("model_version.created", "model_version_alias.created"):
        return Ignored("an event that starts nothing")
    if data.get("name") == _EXAMPLE_NAME and any(_holds(data, example) for example in _EXAMPLES):
        return Ignored("MLflow's test event")
    name = text_of(data, "name", MAX_NAME_CHARACTERS)
    number = text_of(data, "version", MAX_VERSION_CHARACTERS)
    if kind == "model_version_alias.created":
        asked = RegisteredVersion(registry=RegistryKind.MLFLOW, name=name, version=number)
        return AliasSet(asked, text_of(data, "alias", MAX_NAME_CHARACTERS))
    version = RegisteredVersion(
        registry=RegistryKind.MLFLOW,
        name=name,
        version=number,
        tags=_tags(data.get("tags")),
        source=_optional(data.get("source")),
        run_id=_optional(data.get("run_id")),
    )
    return Registered(version)


def _holds(data: Mapping[str, Any], example: Mapping[str, Any]) -> bool:
    return all(data.get(key) == value for key, value in example.items())


def _optional(value: Any) -> str:
    return value[:MAX_TAG_CHARACTERS] if isinstance(value, str) else ""


def _tags(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or len(value) > MAX_TAGS:
        raise MalformedError(f"tags are no object of at most {MAX_TAGS}")
    return {str(key): _optional(text) for key, text in value.items()}
