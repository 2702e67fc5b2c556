"""Calls to the Hugging Face Hub's HTTP API. The token goes to the hub itself alone: redirects are not followed."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx

from proctor.domain.errors import RegistryError
from proctor.domain.host import is_loopback
from proctor.domain.hub import HubAccess
from proctor.domain.problems import quoted
from proctor.registry.model_registry import RegistryUnavailableError, VersionGoneError

_TIMEOUT_S: Final = 10.0
#: A listing with the card's data, and what it may take in all.
MAX_ANSWER_BYTES: Final = 8 << 20
MAX_ANSWER_S: Final = 30.0
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_NOT_SHOWN: Final = frozenset({401, 403, 404})
_NDJSON: Final = "application/x-ndjson"


class HubClient:
    """Calls to one hub."""

    def __init__(self, access: HubAccess) -> None:
        url = httpx.URL(access.endpoint)
        headers = {"Accept-Encoding": "identity"} | (
            {"Authorization": f"Bearer {access.token}"} if access.token else {}
        )
        self.url = access.endpoint.rstrip("/")
        self._http = httpx.Client(timeout=_TIMEOUT_S, headers=headers, trust_env=not is_loopback(url.host))

    def close(self) -> None:
        """Give back the connections."""
        self._http.close()

    def json(self, path: str) -> dict[str, Any]:
        """What the API answers.

        Raises:
            VersionGoneError: it does not show such a thing.
            RegistryUnavailableError: it does not answer now.
            RegistryError: it answers with something else.
        """
        return self._object(path, *self._send("GET", path))

    def text(self, repo: str, revision: str, path: str) -> str | None:
        """A small file of a model as it is at a revision; None where there is none. Raises as `json` does."""
        route = f"/{repo}/raw/{quote(revision, safe='')}/{quote(path)}"
        status, body = self._send("GET", route)
        if status == HTTPStatus.NOT_FOUND:
            return None
        self._hold_shown(route, status)
        return body.decode("utf-8", "replace")

    def commit(
        self,
        repo: str,
        revision: str,
        *,
        summary: str,
        description: str,
        files: Mapping[str, bytes],
        as_pull_request: bool,
    ) -> dict[str, Any]:
        """Commit files on a revision, or from it as a pull request. Raises as `json` does.

        As `huggingface_hub` 2.4 does it: a line of JSON for the header, and one a file.
        """
        lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": summary, "description": description}}]
        for path, content in files.items():
            encoded = base64.b64encode(content).decode()
            lines.append({"key": "file", "value": {"content": encoded, "path": path, "encoding": "base64"}})
        body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        route = f"/api/models/{repo}/commit/{quote(revision, safe='')}{'?create_pr=1' if as_pull_request else ''}"
        return self._object(route, *self._send("POST", route, content=body, headers={"Content-Type": _NDJSON}))

    def _send(self, method: str, path: str, **sent: Any) -> tuple[int, bytes]:
        deadline_s, body = time.monotonic() + MAX_ANSWER_S, bytearray()
        try:
            with self._http.stream(method, self.url + path, **sent) as response:
                for piece in response.iter_raw():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES or time.monotonic() > deadline_s:
                        raise RegistryUnavailableError(f"the hub at {self.url} did not come to an end of its answer")
        except httpx.HTTPError as error:
            raise RegistryUnavailableError(
                f"the hub at {self.url} cannot be reached ({type(error).__name__}): check HF_ENDPOINT"
            ) from None
        if response.status_code in _PASSING:
            raise RegistryUnavailableError(f"the hub at {self.url} answered with HTTP {response.status_code}")
        return response.status_code, bytes(body)

    def _hold_shown(self, path: str, status: int) -> None:
        if status in _NOT_SHOWN:
            raise VersionGoneError(
                f"the hub at {self.url} shows no such commit (HTTP {status}); a private model needs HF_TOKEN"
            )
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise RegistryError(f"the hub at {self.url} answered {quoted(path)} with HTTP {status}")

    def _object(self, path: str, status: int, body: bytes) -> dict[str, Any]:
        if status in _NOT_SHOWN:
            self._hold_shown(path, status)
        try:
            found = json.loads(body) if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RegistryError(f"the hub at {self.url} answered {quoted(path)} with what is no answer of a hub")
        return found
