"""Audits through a release's gateway, as a caller on another machine has them made."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from proctor.domain.errors import ProctorError
from proctor.gateway.client import RemoteDesk, remote_desk
from proctor.gateway.fields import LONGEST_LIST
from tests.cluster.kit import CommandError, is_ready
from tests.cluster.release import Release

#: States that an audit does not leave by itself.
_ENDED: Final = ("decided", "failed", "cancelled")
_POLL_S: Final = 1.0


class _Connection(NamedTuple):
    http: httpx.Client
    desk: RemoteDesk


class Gateway:
    """The gateway of a release, whose pods may be killed at any time.

    Ports are forwarded for as long as they lead anywhere: a command of kubectl's and one of Proctor's for each question
    would take a second of a processor.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._service = f"{release.name}-gateway"
        self._kept = ExitStack()
        self._connection: _Connection | None = None
        self._known_token = ""

    def submit(self, suite: Path) -> str:
        """Begin an audit of a suite and its files; returns its id.

        Raises:
            CommandError: the gateway is away, or cannot take it now.
        """
        was_connected = self._connection is not None
        try:
            return self._connected().desk.submit(suite).audit.audit_id
        except ProctorError as error:
            self.close()
            if was_connected:
                # Its pod may be gone since.
                return self.submit(suite)
            raise CommandError(f"submit: {error}") from error

    @property
    def _token(self) -> str:
        if not self._known_token:
            self._known_token = self._release.secret(self._service, "token")
        return self._known_token

    def _connected(self) -> _Connection:
        if self._connection is None:
            if not any(map(is_ready, self._release.pods("gateway"))):
                raise CommandError("no pod of the gateway is ready")
            try:
                http, grpc = (
                    self._kept.enter_context(self._release.forwarded(self._service, port)) for port in (8080, 50061)
                )
                headers = {"authorization": f"Bearer {self._token}"}
                client = httpx.Client(base_url=f"http://127.0.0.1:{http}", headers=headers, timeout=20, trust_env=False)
                self._connection = _Connection(
                    self._kept.enter_context(client),
                    self._kept.enter_context(remote_desk(f"grpc://127.0.0.1:{grpc}", self._token)),
                )
            except CommandError:
                self.close()
                raise
        return self._connection

    def _get(self, path: str, **parameters: int) -> httpx.Response:
        """An answer of its HTTP interface."""
        if self._connection is not None:
            # Its pod may be gone since.
            with suppress(httpx.HTTPError):
                return self._connection.http.get(path, params=parameters)
            self.close()
        try:
            return self._connected().http.get(path, params=parameters)
        except httpx.HTTPError:
            self.close()
            raise

    def close(self) -> None:
        """Give back the ports; the next question has others."""
        self._connection = None
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
