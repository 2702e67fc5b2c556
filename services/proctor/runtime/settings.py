"""Where the stores, the broker, the registry and the models are: read once from the environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from proctor.domain.ceilings import CEILINGS, NO_CEILINGS, OperatorCeilings, parse_ceilings
from proctor.domain.errors import BadInputError
from proctor.domain.hub import DEFAULT_ENDPOINT, UNSAID_HUB, HubAccess, hub_patterns, written_patterns
from proctor.domain.operator_endpoint import (
    OperatorEndpoint,
    OtherEndpoints,
    operator_endpoints_json,
    parse_operator_endpoints,
)
from proctor.domain.private_benchmarks import (
    NOTHING_MARKED,
    PRIVATE_BENCHMARKS,
    PrivateBenchmarks,
    parse_private_benchmarks,
)
from proctor.runtime.artifacts.location import s3_location
from proctor.runtime.operator_text import operator_text
from proctor.runtime.timing import DEFAULT_TIMING, Timing

#: The operator's endpoints: a JSON object, or @ and the path of a file that holds one.
ENDPOINTS = "PROCTOR_ENDPOINTS"
#: The datasets of the hub that suites may read.
HUB_DATASETS = "PROCTOR_HUB_DATASETS"
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


class LedgerCheck(StrEnum):
    """What a router does on a Redis that will lose the ledger's keys."""

    REFUSE = "refuse"
    WARN = "warn"
    """For people who accept that audits then fail and are asked again, in part or from the beginning."""


class RecordsMigrate(StrEnum):
    """Who brings the tables of an earlier version up to date. `proctor records migrate` always does."""

    AUTO = "auto"
    """Workers and servers, as they start; in a home of SQLite, every command."""
    NEVER = "never"
    """Nobody else: for deployments that migrate in a step of their own."""

    @property
    def services(self) -> bool:
        """Whether workers and servers do."""
        return self is RecordsMigrate.AUTO

    def commands(self, records_url: str) -> bool:
        """Whether a command does that is given by a person, perhaps far from the deployment, with another version."""
        return self is RecordsMigrate.AUTO and records_url.startswith("sqlite")


@dataclass(frozen=True)
class Settings:
    """Settings of one process. Each field has an environment variable `PROCTOR_<FIELD>`."""

    home: Path
    broker_url: str = f"{_DEFAULT_REDIS}/0"
    ledger_url: str = f"{_DEFAULT_REDIS}/1"
    ledger_check: LedgerCheck = LedgerCheck.REFUSE
    """Whether a router begins on a ledger that evicts keys, or keeps nothing on disk."""
    records_url: str = ""
    records_migrate: RecordsMigrate = RecordsMigrate.AUTO
    """Who brings the record store's tables to this version."""
    artifacts: str = ""
    """Where prompts, completions and reports are kept: a folder, or `s3://bucket/prefix`."""
    s3_endpoint_url: str | None = None
    """Of S3-compatible storage other than Amazon's; AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL are read too."""
    registry_uri: str | None = None
    endpoints: Mapping[str, OperatorEndpoint] = field(default_factory=dict)
    """Endpoint ids that a suite may name, each with where it is and what may be asked of it."""
    other_endpoints: OtherEndpoints = OtherEndpoints.LOOPBACK
    """Which URLs a suite may bring besides those that `endpoints` covers."""
    private_benchmarks: PrivateBenchmarks = NOTHING_MARKED
    """Benchmarks whose items go to approved endpoints alone, whatever a suite says."""
    ceilings: OperatorCeilings = NO_CEILINGS
    """What each submitter may use, whatever a suite says."""
    encoder: str | None = None
    """Folder, pinned hub id or grpc:// address of a sentence encoder; None is the packaged all-MiniLM-L6-v2."""
    encoder_precision: EncoderPrecision = EncoderPrecision.FP32
    bundle: Path = Path()
    """Folder of the reference models and their benchmark."""
    benchmarks: Path = Path()
    """Folder of benchmark files, for suites that name a benchmark and no file."""
    hub: HubAccess = UNSAID_HUB
    """What suites may read of the Hugging Face Hub; its address and token come from HF_ENDPOINT and HF_TOKEN."""
    retention_days: int | None = None
    """After how many days a router removes prompts and completions; None is never."""
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
                PROCTOR_PRIVATE_BENCHMARKS no benchmarks or PROCTOR_CEILINGS no ceilings, PROCTOR_HUB_DATASETS holds
                what is no pattern, PROCTOR_OTHER_ENDPOINTS, PROCTOR_LEDGER_CHECK, PROCTOR_RECORDS_MIGRATE or
                PROCTOR_ENCODER_PRECISION is none of its words, PROCTOR_ARTIFACTS or the S3 endpoint names no place, or
                a time limit is no number of seconds or days.
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
            private_benchmarks=_private_benchmarks(environ.get(PRIVATE_BENCHMARKS, "")),
            ceilings=_ceilings(environ.get(CEILINGS, "")),
            ledger_check=_word(environ, "PROCTOR_LEDGER_CHECK", LedgerCheck.REFUSE),
            records_migrate=_word(environ, "PROCTOR_RECORDS_MIGRATE", RecordsMigrate.AUTO),
            encoder_precision=_word(environ, "PROCTOR_ENCODER_PRECISION", EncoderPrecision.FP32),
            hub=HubAccess(
                datasets=hub_patterns(environ.get(HUB_DATASETS)),
                endpoint=environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT,
                token=environ.get("HF_TOKEN") or None,
            ),
            retention_days=_retention_days(environ.get("PROCTOR_RETENTION_DAYS", "")),
            timing=Timing.from_environment(environ),
            **overrides,
        )

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        values = {
            "HOME": str(self.home),
            "BROKER_URL": self.broker_url,
            "LEDGER_URL": self.ledger_url,
            "LEDGER_CHECK": self.ledger_check.value,
            "RECORDS_URL": self.records_url,
            "RECORDS_MIGRATE": self.records_migrate.value,
            "ARTIFACTS": self.artifacts,
            "S3_ENDPOINT_URL": self.s3_endpoint_url or "",
            "REGISTRY_URI": self.registry_uri or "",
            "ENDPOINTS": operator_endpoints_json(self.endpoints),
            "OTHER_ENDPOINTS": self.other_endpoints.value,
            "PRIVATE_BENCHMARKS": self.private_benchmarks.written(),
            "CEILINGS": self.ceilings.written(),
            "ENCODER": self.encoder or "",
            "ENCODER_PRECISION": self.encoder_precision.value,
            "BUNDLE": str(self.bundle),
            "BENCHMARKS": str(self.benchmarks),
            "RETENTION_DAYS": str(self.retention_days or ""),
        }
        if self.hub.datasets is not None:
            values["HUB_DATASETS"] = written_patterns(self.hub.datasets)
        return {f"PROCTOR_{name}": value for name, value in values.items()} | self.timing.to_environment()


def _s3_endpoint(environ: Mapping[str, str]) -> str | None:
    names = ("PROCTOR_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return next((environ[name] for name in names if environ.get(name)), None)


def _retention_days(text: str) -> int | None:
    if not text:
        return None
    # What is too short or too long is said by whoever applies it.
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise BadInputError(f"PROCTOR_RETENTION_DAYS is {text[:80]!r}, but must be a number of days; unset it for ever")
    return int(text)


def _word(environ: Mapping[str, str], variable: str, default: _Word) -> _Word:
    text, words = environ.get(variable), type(default)
    try:
        return words(text or default)
    except ValueError:
        *most, last = words
        raise BadInputError(
            f"{variable} is {str(text)[:80]!r}, but must be {', '.join(most)} or {last}; unset it for {default}"
        ) from None


def _endpoints(value: str) -> dict[str, OperatorEndpoint]:
    described = operator_text(ENDPOINTS, value)
    return parse_operator_endpoints(described.text, source=described.source)


def _ceilings(value: str) -> OperatorCeilings:
    described = operator_text(CEILINGS, value)
    return parse_ceilings(described.text, source=described.source)


def _private_benchmarks(value: str) -> PrivateBenchmarks:
    described = operator_text(PRIVATE_BENCHMARKS, value)
    return parse_private_benchmarks(described.text, source=described.source, file=described.file)
