"""What the Hugging Face Hub says of a commit of a model: asked, because nobody signed what its webhook says."""

from __future__ import annotations

import json
import re
import time
from typing import Any, Final

import httpx

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import RegistryError
from proctor.domain.host import is_loopback
from proctor.domain.hub import HUB_ID, HUB_REVISION, HubAccess
from proctor.domain.problems import quoted
from proctor.domain.registered_version import MODEL_DIGEST_TAG, RegisteredVersion
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError

_TIMEOUT_S: Final = 10.0
#: A listing with the card's data, and what it may take in all.
MAX_ANSWER_BYTES: Final = 8 << 20
MAX_ANSWER_S: Final = 30.0
#: Of a model's tags on the Hub, which become tags without a value.
_MAX_HUB_TAGS: Final = 100
_WEIGHTS: Final = ".safetensors"
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})


class HubVersions:
    """Commits of models on a hub; a `VersionSource`."""

    def __init__(self, access: HubAccess) -> None:
        url = httpx.URL(access.endpoint)
        # The token goes to the hub itself alone: redirects are not followed.
        headers = {"Accept-Encoding": "identity"} | (
            {"Authorization": f"Bearer {access.token}"} if access.token else {}
        )
        self._url = access.endpoint.rstrip("/")
        self._http = httpx.Client(timeout=_TIMEOUT_S, headers=headers, trust_env=not is_loopback(url.host))

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    def look_up(self, version: RegisteredVersion) -> RegisteredVersion:
        """See `VersionSource`. The digest is that of the one file of weights, where there is one."""
        if not re.fullmatch(HUB_ID, version.name) or not re.fullmatch(HUB_REVISION, version.version):
            raise VersionGoneError(f"{quoted(version.name)} at {quoted(version.version)} names no commit of the hub")
        said = self._asked(f"/api/models/{version.name}/revision/{version.version}?blobs=true")
        if said.get("sha") != version.version or said.get("id") != version.name:
            raise RegistryError(f"the hub at {self._url} answered for another commit than {version.name} was asked at")
        hub_tags = said.get("tags")
        names = hub_tags[:_MAX_HUB_TAGS] if isinstance(hub_tags, list) else []
        tags = {tag: "" for tag in names if isinstance(tag, str) and not tag.startswith("proctor.")}
        digest = _digest_of(said.get("siblings"))
        known = {**tags, MODEL_DIGEST_TAG: digest} if digest is not None else tags
        return version.model_copy(update={"tags": known, "source": f"hf://{version.name}@{version.version}"})

    def _asked(self, path: str) -> dict[str, Any]:
        deadline_s, body = time.monotonic() + MAX_ANSWER_S, bytearray()
        try:
            with self._http.stream("GET", self._url + path) as response:
                for piece in response.iter_raw():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES or time.monotonic() > deadline_s:
                        raise RegistryUnavailableError(f"the hub at {self._url} did not come to an end of its answer")
        except httpx.HTTPError as error:
            raise RegistryUnavailableError(
                f"the hub at {self._url} cannot be reached ({type(error).__name__}): check HF_ENDPOINT"
            ) from None
        if response.status_code in _PASSING:
            raise RegistryUnavailableError(f"the hub at {self._url} answered with HTTP {response.status_code}")
        if response.status_code in (401, 403, 404):
            raise VersionGoneError(
                f"the hub at {self._url} shows no such commit (HTTP {response.status_code}); a private model needs "
                "HF_TOKEN"
            )
        try:
            found = json.loads(body) if response.is_success else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RegistryError(f"the hub at {self._url} answered {quoted(path)} with what is no answer of a hub")
        return found


def _digest_of(siblings: Any) -> str | None:
    """The digest of a commit's weights; None where they are not one file, because no digest is of several."""
    files = [one for one in siblings if isinstance(one, dict)] if isinstance(siblings, list) else []
    weights = [one for one in files if str(one.get("rfilename", "")).endswith(_WEIGHTS)]
    large = weights[0].get("lfs") if len(weights) == 1 else None
    digest = f"sha256:{large.get('sha256')}" if isinstance(large, dict) else ""
    return digest if FULL_DIGEST.fullmatch(digest) else None
