"""Where the stores, the broker, the registry and the models are: read once from the environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

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
from proctor.runtime.operator_text import OperatorText, operator_text
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
    """Settings of one process. Each field has an environment variable `PROCTOR_<FIELD>`, which is read and written by
    the field's type, or as `_VARIABLES` says."""

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
    retention_days: int | None = None
    """After how many days a router removes prompts and completions; None is never."""
    hub: HubAccess = UNSAID_HUB
    """What suites may read of the Hugging Face Hub; its address and token come from HF_ENDPOINT and HF_TOKEN."""
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
        said = {
            name: one.read(one.name, text)
            for name, one in _VARIABLES.items()
            if one.read is not None and (text := environ.get(one.name))
        }
        location = s3_location(said.get("artifacts", ""), _s3_endpoint(environ))
        return replace(
            settings,
            s3_endpoint_url=location and location.endpoint_url,
            hub=HubAccess(
                datasets=hub_patterns(environ.get(HUB_DATASETS)),
                endpoint=environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT,
                token=environ.get("HF_TOKEN") or None,
            ),
            timing=Timing.from_environment(environ),
            **said,
        )

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        written = {one.name: one.write(getattr(self, name)) for name, one in _VARIABLES.items()}
        return {name: text for name, text in written.items() if text is not None} | self.timing.to_environment()


class _Variable(NamedTuple):
    """How a setting stands in the environment."""

    name: str
    write: Callable[[Any], str | None]
    """Its text for a child process; None where the variable is not set there."""
    read: Callable[[str, str], Any] | None
    """The value of (variable, text), where the text is not empty; None for what is read together with others."""


def _described(parse: Callable[[OperatorText], Any]) -> Callable[[str, str], Any]:
    """Reads what an operator describes in JSON, in the variable or in a file that it names behind an @."""
    return lambda variable, text: parse(operator_text(variable, text))


def _retention_days(variable: str, text: str) -> int:
    # What is too short or too long is said by whoever applies it.
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise BadInputError(f"{variable} is {text[:80]!r}, but must be a number of days; unset it for ever")
    return int(text)


def _one_of(words: type[StrEnum], default: StrEnum) -> Callable[[str, str], StrEnum]:
    def read(variable: str, text: str) -> StrEnum:
        try:
            return words(text)
        except ValueError:
            *most, last = words
            raise BadInputError(
                f"{variable} is {text[:80]!r}, but must be {', '.join(most)} or {last}; unset it for {default}"
            ) from None

    return read


def _s3_endpoint(environ: Mapping[str, str]) -> str | None:
    names = ("PROCTOR_S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return next((environ[name] for name in names if environ.get(name)), None)


def _variable(name: str, default: Any) -> _Variable:
    """The variable of a field whose type says how it is read: a word of a few, a folder, else text."""
    variable = f"PROCTOR_{name.upper()}"
    if isinstance(default, StrEnum):
        return _Variable(variable, lambda word: str(word.value), _one_of(type(default), default))
    if isinstance(default, Path):
        return _Variable(variable, str, lambda _, text: Path(text))
    return _Variable(variable, lambda text: text or "", lambda _, text: text)


#: Those of which their type does not say it.
_SPECIAL: Final[Mapping[str, _Variable]] = {
    # Read first: whatever else is not set stands below it.
    "home": _Variable("PROCTOR_HOME", str, None),
    # Read where artifacts are kept in a bucket.
    "s3_endpoint_url": _Variable("PROCTOR_S3_ENDPOINT_URL", lambda url: url or "", None),
    "endpoints": _Variable(
        ENDPOINTS,
        operator_endpoints_json,
        _described(lambda said: parse_operator_endpoints(said.text, source=said.source)),
    ),
    "private_benchmarks": _Variable(
        PRIVATE_BENCHMARKS,
        PrivateBenchmarks.written,
        _described(lambda said: parse_private_benchmarks(said.text, source=said.source, file=said.file)),
    ),
    "ceilings": _Variable(
        CEILINGS, OperatorCeilings.written, _described(lambda said: parse_ceilings(said.text, source=said.source))
    ),
    "retention_days": _Variable("PROCTOR_RETENTION_DAYS", lambda days: str(days or ""), _retention_days),
    # Set and empty it means none.
    "hub": _Variable(HUB_DATASETS, lambda hub: None if hub.datasets is None else written_patterns(hub.datasets), None),
}
#: Field → its variable, in the order of the fields. The time limits have a table of their own.
_VARIABLES: Final[Mapping[str, _Variable]] = {
    one.name: _SPECIAL.get(one.name) or _variable(one.name, one.default)
    for one in fields(Settings)
    if one.name != "timing"
}
