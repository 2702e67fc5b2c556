"""Where the stores, the broker, the registry and the models are: read once from the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from proctor.domain.errors import BadInputError
from proctor.domain.operator_endpoint import (
    OperatorEndpoint,
    OtherEndpoints,
    operator_endpoints_json,
    parse_operator_endpoints,
)
from proctor.runtime.artifacts_location import s3_location
from proctor.runtime.timing import DEFAULT_TIMING, Timing

#: The operator's endpoints: a JSON object, or @ and the path of a file that holds one.
ENDPOINTS = "PROCTOR_ENDPOINTS"
#: The endpoint id under which the local stack's Triton server is known to suites.
LOCAL_TRITON = "local-triton"
#: What that id stands for where Triton cannot run: the inference worker serves the reference models itself.
IN_PROCESS_URL = "in-process://reference"

#: Loopback is what a stack on this machine uses; 6379 is Redis' registered port.
_DEFAULT_REDIS = "redis://127.0.0.1:6379"

_Word = TypeVar("_Word", bound=StrEnum)


def default_bundle() -> Path:
    """The reference bundle that comes with Proctor: in a checkout its own, else the one under the prefix."""
    checkout = Path(__file__).resolve().parents[2] / "triton"
    return checkout if (checkout / "models").is_dir() else Path(sys.prefix) / "share" / "proctor" / "bundle"


class EncoderPrecision(StrEnum):
    """What the sentence encoder computes in; what is admitted is the same."""

    FP32 = "fp32"
    BF16 = "bf16"
    """Quicker on processors that have it; distances near an end of the window are measured in fp32 all the same."""


@dataclass(frozen=True)
class Settings:
    """Settings of one process. Each field has an environment variable `PROCTOR_<FIELD>`."""

    home: Path
    broker_url: str = f"{_DEFAULT_REDIS}/0"
    ledger_url: str = f"{_DEFAULT_REDIS}/1"
    records_url: str = ""
    artifacts: str = ""
    """Where prompts, completions and reports are kept: a folder, or `s3://bucket/prefix`."""
    s3_endpoint_url: str | None = None
    """Of S3-compatible storage other than Amazon's; AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL are read too."""
    registry_uri: str | None = None
    endpoints: Mapping[str, OperatorEndpoint] = field(default_factory=dict)
    """Endpoint ids that a suite may name, each with where it is and what may be asked of it."""
    other_endpoints: OtherEndpoints = OtherEndpoints.LOOPBACK
    """Which URLs a suite may bring besides those that `endpoints` covers."""
    encoder: str | None = None
    """Folder, pinned hub id or grpc:// address of a sentence encoder; None is the packaged all-MiniLM-L6-v2."""
    encoder_precision: EncoderPrecision = EncoderPrecision.FP32
    bundle: Path = Path()
    """Folder of the reference models and their benchmark."""
    benchmarks: Path = Path()
    """Folder of benchmark files, for suites that name a benchmark and no file."""
    timing: Timing = DEFAULT_TIMING
    """Time limits; each of them has a variable of its own."""

    @classmethod
    def for_home(cls, home: Path) -> Settings:
        """The defaults of a home folder."""
        home = home.absolute()
        return cls(
            home=home,
            records_url=f"sqlite:///{home / 'records.sqlite'}",
            artifacts=str(home / "artifacts"),
            bundle=default_bundle(),
            benchmarks=home / "benchmarks",
        )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Settings from `PROCTOR_*` variables, and the home's defaults for those that are not set.

        Raises:
            BadInputError: when PROCTOR_ENDPOINTS, or the file that it names behind an @, describes no endpoints,
                PROCTOR_OTHER_ENDPOINTS or PROCTOR_ENCODER_PRECISION is none of its words, PROCTOR_ARTIFACTS or the S3
                endpoint names no place, or a time limit is no number of seconds.
        """
        settings = cls.for_home(Path(environ.get("PROCTOR_HOME") or ".proctor"))
        overrides: dict[str, Any] = {
            name: environ[f"PROCTOR_{name.upper()}"]
            for name in ("broker_url", "ledger_url", "records_url", "registry_uri", "encoder", "artifacts")
            if environ.get(f"PROCTOR_{name.upper()}")
        }
        overrides |= {
            name: Path(environ[f"PROCTOR_{name.upper()}"])
            for name in ("bundle", "benchmarks")
            if environ.get(f"PROCTOR_{name.upper()}")
        }
        location = s3_location(overrides.get("artifacts", ""), _s3_endpoint(environ))
        return replace(
            settings,
            s3_endpoint_url=location and location.endpoint_url,
            endpoints=_endpoints(environ.get(ENDPOINTS, "")),
            other_endpoints=_word(environ, "PROCTOR_OTHER_ENDPOINTS", OtherEndpoints.LOOPBACK),
            encoder_precision=_word(environ, "PROCTOR_ENCODER_PRECISION", EncoderPrecision.FP32),
            timing=Timing.from_environment(environ),
            **overrides,
        )

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        values = {
            "HOME": str(self.home),
            "BROKER_URL": self.broker_url,
            "LEDGER_URL": self.ledger_url,
            "RECORDS_URL": self.records_url,
            "ARTIFACTS": self.artifacts,
            "S3_ENDPOINT_URL": self.s3_endpoint_url or "",
            "REGISTRY_URI": self.registry_uri or "",
            "ENDPOINTS": operator_endpoints_json(self.endpoints),
            "OTHER_ENDPOINTS": self.other_endpoints.value,
            "ENCODER": self.encoder or "",
            "ENCODER_PRECISION": self.encoder_precision.value,
            "BUNDLE": str(self.bundle),
            "BENCHMARKS": str(self.benchmarks),
        }
        return {f"PROCTOR_{name}": value for name, value in values.items()} | self.timing.to_environment()


def _s3_endpoint(environ: Mapping[str, str]) -> str | None:
    names = ("PROCTOR_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return next((environ[name] for name in names if environ.get(name)), None)


def _word(environ: Mapping[str, str], variable: str, default: _Word) -> _Word:
    text, words = environ.get(variable), type(default)
    try:
        return words(text or default)
    except ValueError:
        *most, last = words
        raise BadInputError(
            f"{variable} is {str(text)[:80]!r}, but must be {', '.join(most)} or {last}; unset it for {default}"
        ) from None


def _endpoints(text: str) -> dict[str, OperatorEndpoint]:
    if not text.startswith("@"):
        return parse_operator_endpoints(text, source=ENDPOINTS)
    file = Path(text[1:])
    try:
        described = file.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise BadInputError(
            f"{ENDPOINTS} names the file {text[1:]!r}, which cannot be read: {reason}; mend the path behind the @, or "
            "write the JSON itself"
        ) from None
    return parse_operator_endpoints(described, source=f"{file} ({ENDPOINTS})")
