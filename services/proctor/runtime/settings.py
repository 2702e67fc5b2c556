"""Where the stores, the broker, the registry and the models are: read once from the environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.domain.errors import BadInputError

#: The endpoint id under which the local stack's Triton server is known to suites.
LOCAL_TRITON = "local-triton"
#: What that id stands for where Triton cannot run: the inference worker serves the reference models itself.
IN_PROCESS_URL = "in-process://reference"

#: Loopback is what a stack on this machine uses; 6379 is Redis' registered port.
_DEFAULT_REDIS = "redis://127.0.0.1:6379"


def default_bundle() -> Path:
    """The reference bundle that comes with Proctor: in a checkout its own, else the one under the prefix."""
    checkout = Path(__file__).resolve().parents[2] / "triton"
    return checkout if (checkout / "models").is_dir() else Path(sys.prefix) / "share" / "proctor" / "bundle"


@dataclass(frozen=True)
class Settings:
    """Settings of one process. Each field has an environment variable `PROCTOR_<FIELD>`."""

    home: Path
    broker_url: str = f"{_DEFAULT_REDIS}/0"
    ledger_url: str = f"{_DEFAULT_REDIS}/1"
    records_url: str = ""
    artifacts_dir: Path = Path()
    registry_uri: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """Endpoint ids that a suite may name, each with its URL."""
    encoder: str | None = None
    """Folder or id of a sentence encoder; None is the packaged all-MiniLM-L6-v2."""
    bundle: Path = Path()
    """Folder of the reference models and their benchmark."""

    @classmethod
    def for_home(cls, home: Path) -> Settings:
        """The defaults of a home folder."""
        home = home.absolute()
        return cls(
            home=home,
            records_url=f"sqlite:///{home / 'records.sqlite'}",
            artifacts_dir=home / "artifacts",
            bundle=default_bundle(),
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Settings from `PROCTOR_*` variables, and the home's defaults for those that are not set.

        Raises:
            BadInputError: when PROCTOR_ENDPOINTS is not a JSON object of strings.
        """
        settings = cls.for_home(Path(environ.get("PROCTOR_HOME") or ".proctor"))
        overrides: dict[str, Any] = {
            name: environ[f"PROCTOR_{name.upper()}"]
            for name in ("broker_url", "ledger_url", "records_url", "registry_uri", "encoder")
            if environ.get(f"PROCTOR_{name.upper()}")
        }
        overrides |= {
            name: Path(environ[f"PROCTOR_{name.upper()}"])
            for name in ("artifacts_dir", "bundle")
            if environ.get(f"PROCTOR_{name.upper()}")
        }
        return replace(settings, endpoints=_endpoints(environ.get("PROCTOR_ENDPOINTS", "")), **overrides)

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        values = {
            "HOME": str(self.home),
            "BROKER_URL": self.broker_url,
            "LEDGER_URL": self.ledger_url,
            "RECORDS_URL": self.records_url,
            "ARTIFACTS_DIR": str(self.artifacts_dir),
            "REGISTRY_URI": self.registry_uri or "",
            "ENDPOINTS": json.dumps(dict(self.endpoints)),
            "ENCODER": self.encoder or "",
            "BUNDLE": str(self.bundle),
        }
        return {f"PROCTOR_{name}": value for name, value in values.items()}


def _endpoints(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(url, str) for url in value.values()):
        raise BadInputError(
            f"PROCTOR_ENDPOINTS is {text[:80]!r}, but must be a JSON object of endpoint ids and URLs, "
            'e.g. {"local-triton": "grpc://127.0.0.1:8001"}'
        )
    return value
