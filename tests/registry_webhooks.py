"""Deliveries as registries send them, signed by a reading of their documentation that is not Proctor's own code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import uuid
from pathlib import Path
from typing import Any

SECRET = "a1b2c3d4e5f6g7h8i9j0"
SECOND = "z9y8x7w6v5u4t3s2r1q0"
HUB_SECRET = "hub0hub1hub2hub3hub4"
DIGEST = "sha256:" + "ab" * 32
SINCE = "2020-01-01T00:00:00Z"


def created(name: Any = "acme~m", version: Any = "1", **data: Any) -> dict[str, Any]:
    """MLflow's event of a new version."""
    tags = {"proctor.model_digest": DIGEST, "stage": "candidate"}
    said = {"name": name, "version": version, "source": "s3://b/m", "run_id": None, "tags": tags, "description": None}
    return _envelope("model_version", "created", said | data)


def alias_set(alias: str, name: str = "acme~m", version: str = "1") -> dict[str, Any]:
    """MLflow's event of an alias."""
    return _envelope("model_version_alias", "created", {"name": name, "alias": alias, "version": version})


def tag_set(key: str, value: str = "x", name: str = "acme~m") -> dict[str, Any]:
    """MLflow's event of a tag."""
    return _envelope("model_version_tag", "set", {"name": name, "version": "1", "key": key, "value": value})


def _envelope(entity: str, action: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"entity": entity, "action": action, "timestamp": "2026-11-23T00:00:00+00:00", "data": data}


def signed(
    body: bytes, secret: str = SECRET, *, at_s: float | None = None, delivery: str | None = None
) -> dict[str, str]:
    """The headers that MLflow sends along: Standard Webhooks under names of its own."""
    delivery = delivery or str(uuid.uuid4())
    timestamp = str(int(time.time() if at_s is None else at_s))
    content = f"{delivery}.{timestamp}.{body.decode('utf-8', 'surrogateescape')}".encode("utf-8", "surrogateescape")
    signature = base64.b64encode(hmac.new(secret.encode(), content, hashlib.sha256).digest()).decode()
    return {
        "X-MLflow-Signature": f"v1,{signature}",
        "X-MLflow-Delivery-Id": delivery,
        "X-MLflow-Timestamp": timestamp,
        "Content-Type": "application/json",
    }


def pushed(name: str = "acme/m", sha: str = "c" * 40, *, scope: str = "repo.content") -> dict[str, Any]:
    """The Hub's event of a push to the main branch."""
    return {
        "event": {"action": "update", "scope": scope},
        "repo": {"type": "model", "name": name, "id": "621ffdc036468d709f17434d", "headSha": sha, "private": False},
        "updatedRefs": [{"ref": "refs/heads/main", "oldSha": "b" * 40, "newSha": sha}],
        "webhook": {"id": "6390e855e30d9209411de93b", "version": 3},
    }


def trigger_file(folder: Path, *, since: str = SINCE, **rule: Any) -> Path:
    """A trigger file beside a suite `first.json`, for every model of acme."""
    path = folder / "triggers.json"
    rules = [{"name": "all of acme", "models": ["acme~*"], "suites": ["first.json"], **rule}]
    path.write_text(json.dumps({"since": since, "alias": "audit-me", "rules": rules}))
    return path
