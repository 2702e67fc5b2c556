"""Audits through a release's gateway, as a caller on another machine has them made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    """The gateway of a release. Each call has a connection of its own: the pods behind it may be killed in between."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._service = f"{release.name}-gateway"

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

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        headers = {"authorization": f"Bearer {self._token}"}
        with (
            self._release.forwarded(self._service, 8080) as port,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=20) as client,
        ):
            yield client

    def audits(self, audit_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Audits as `proctor audit show` has them; those of which nothing could be learned just now are left out."""
        found = {}
        try:
            with self._client() as client:
                for audit_id in audit_ids:
                    answer = client.get(f"/v1/audits/{audit_id}")
                    if answer.status_code == httpx.codes.OK:
                        found[audit_id] = answer.json()
        except (CommandError, httpx.HTTPError):
            # Its pod has just been killed; the next look finds another.
            pass
        return found

    def listed(self) -> list[dict[str, Any]]:
        """All audits on record."""
        with self._client() as client:
            answer = client.get("/v1/audits", params={"limit": LONGEST_LIST}).raise_for_status()
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
