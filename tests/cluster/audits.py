"""Audits through a release's gateway, as a caller on another machine has them made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from proctor.gateway.fields import LONGEST_LIST
from tests.cluster.kit import CommandError
from tests.cluster.release import Release

#: States that an audit does not leave by itself.
_ENDED: Final = ("decided", "failed", "cancelled")
_POLL_S: Final = 1.0


class Gateway:
    """The gateway of a release, whose pods may be killed at any time."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._service = f"{release.name}-gateway"
        self._kept = ExitStack()
        self._client: httpx.Client | None = None

    def submit(self, suite: Path, *options: str) -> str:
        """Begin an audit of a suite and its files; returns its id."""
        environment = os.environ | {"PROCTOR_GATEWAY_TOKEN": self._token}
        with self._release.forwarded(self._service, 50061) as port:
            ran = subprocess.run(
                [sys.executable, "-m", "proctor", "audit", "submit", str(suite), *options, "--format", "json",
                 "--server", f"grpc://127.0.0.1:{port}"],
                capture_output=True, text=True, env=environment, timeout=120,
            )  # fmt: skip
        if ran.returncode != 0:
            raise CommandError(f"proctor audit submit: {ran.stderr.strip()}")
        audit_id: str = json.loads(ran.stdout)["audit"]["audit_id"]
        return audit_id

    @property
    def _token(self) -> str:
        return self._release.secret(self._service, "token")

    def _get(self, path: str, **parameters: int) -> httpx.Response:
        """An answer of its HTTP interface, over a forwarded port that is kept for as long as it leads anywhere."""
        if self._client is not None:
            # Its pod may be gone since.
            with suppress(httpx.HTTPError):
                return self._client.get(path, params=parameters)
            self.close()
        try:
            headers = {"authorization": f"Bearer {self._token}"}
            port = self._kept.enter_context(self._release.forwarded(self._service, 8080))
            client = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20, trust_env=False)
            self._client = self._kept.enter_context(client)
            return self._client.get(path, params=parameters)
        except (CommandError, httpx.HTTPError):
            self.close()
            raise

    def close(self) -> None:
        """Give back the port; the next question has another."""
        self._client = None
        self._kept.close()

    def audits(self, audit_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Audits as `proctor audit show` has them; those of which nothing could be learned just now are left out."""
        found = {}
        try:
            for audit_id in audit_ids:
                answer = self._get(f"/v1/audits/{audit_id}")
                if answer.status_code == httpx.codes.OK:
                    found[audit_id] = answer.json()
        except (CommandError, httpx.HTTPError):
            # Its pod has just been killed; the next look finds another.
            pass
        return found

    def listed(self) -> list[dict[str, Any]]:
        """All audits on record."""
        answer = self._get("/v1/audits", limit=LONGEST_LIST).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["audits"]
        return found

    def decided(self, audit_ids: Iterable[str], *, within_s: float) -> dict[str, dict[str, Any]]:
        """Wait until all of them have ended; each must have been decided.

        Raises:
            CommandError: one failed, or they did not all end in time.
        """
        waiting, ended = set(audit_ids), dict[str, dict[str, Any]]()
        last = time.monotonic() + within_s
        while waiting:
            for audit_id, audit in self.audits(waiting).items():
                if audit["state"] in _ENDED:
                    waiting.discard(audit_id)
                    ended[audit_id] = audit
            if waiting and time.monotonic() > last:
                states = {audit_id: audit["state"] for audit_id, audit in self.audits(waiting).items()}
                raise CommandError(f"not decided within {within_s:.0f} s: {states}\n{self._release.state()}")
            if waiting:
                time.sleep(_POLL_S)
        failed = {audit_id: audit.get("detail") for audit_id, audit in ended.items() if audit["state"] != "decided"}
        if failed:
            raise CommandError(f"audits failed: {failed}\n{self._release.state()}")
        return ended
