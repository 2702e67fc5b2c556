"""What a supervisor needs to know of a service: how to start it, when it is ready, what it waits for.

Standard library only, and plain JSON between the processes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal


class ServiceState(StrEnum):
    """Where a service is."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    """It died, and is started again in a moment."""
    FAILED = "failed"
    """It died, and is given up."""
    STOPPED = "stopped"


@dataclass(frozen=True)
class Readiness:
    """How to see that a service is ready.

    `tcp`: its port accepts; `unix`: the socket at `path` accepts; `http`: GET `path` on its port, with `authorization`
    where that is set, answers 200; `file`: `path` exists; `line`: what it logs since its start holds `text`. A file or
    a socket of that name is removed before the service starts.
    """

    kind: Literal["tcp", "unix", "http", "file", "line"]
    port: int = 0
    path: str = ""
    text: str = ""
    authorization: str = ""


@dataclass(frozen=True)
class Service:
    """One process to run. `env` is laid over the supervisor's own environment."""

    name: str
    argv: tuple[str, ...]
    ready: Readiness
    version: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    """Services that must be ready before this one starts."""
    uses: tuple[str, ...] = ()
    """Services that end only after this one has."""
    clears: tuple[str, ...] = ()
    """Files that one which was killed leaves behind, and that the next could not start over: its sockets."""
    ready_timeout_s: float = 60.0
    stop_timeout_s: float = 4.0


@dataclass(frozen=True)
class Plan:
    """What one supervisor runs."""

    home: Path
    token: str
    services: tuple[Service, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    """PROCTOR_* variables with which a client reaches the stack; kept in stack.json."""
    notes: tuple[str, ...] = ()

    @property
    def state_path(self) -> Path:
        """The file that says what runs."""
        return self.home / "stack.json"

    def log_path(self, service: str) -> Path:
        """Where a service's output goes."""
        return self.home / "logs" / f"{service}.log"

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({**asdict(self), "home": str(self.home)})

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """The plan that `to_json` wrote."""
        value: dict[str, Any] = json.loads(text)
        services = tuple(
            Service(
                **{
                    **row,
                    "argv": tuple(row["argv"]),
                    "after": tuple(row["after"]),
                    "uses": tuple(row["uses"]),
                    "clears": tuple(row["clears"]),
                    "ready": Readiness(**row["ready"]),
                }
            )
            for row in value["services"]
        )
        return cls(
            home=Path(value["home"]),
            token=value["token"],
            services=services,
            settings=value["settings"],
            notes=tuple(value["notes"]),
        )
