"""Where the stores, the broker, the registry and the models are: read once from the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    InstanceOf,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    field_validator,
)

from proctor.domain.ceilings import NO_CEILINGS, OperatorCeilings, parse_ceilings
from proctor.domain.hub import DEFAULT_ENDPOINT, UNSAID_HUB, HubAccess, hub_patterns, written_patterns
from proctor.domain.notify.settings import NOBODY, Notifications, parse_notifications
from proctor.domain.operator_endpoint import (
    OperatorEndpoint,
    OtherEndpoints,
    operator_endpoints_json,
    parse_operator_endpoints,
)
from proctor.domain.private_benchmarks import NOTHING_MARKED, PrivateBenchmarks, parse_private_benchmarks
from proctor.runtime.artifacts.location import s3_location
from proctor.runtime.environment import EnvironmentSettings, Text, variable_of
from proctor.runtime.logs.configuring import LogFormat
from proctor.runtime.operator_text import OperatorText, operator_text
from proctor.runtime.public_address import public_address
from proctor.runtime.timing import DEFAULT_TIMING, Seconds, Timing

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


class CodeExecution(StrEnum):
    """Whether a scorer runs code that a model wrote, to grade it."""

    OFF = "off"
    SANDBOX = "sandbox"
    """In namespaces of its own, by bubblewrap; where that is not to be had, nothing is run."""


def _described(parse: Callable[[OperatorText], Any]) -> PlainValidator:
    """Reads what an operator describes in JSON, in the variable or in a file that it names behind an @."""

    def read(said: Any, info: ValidationInfo) -> Any:
        return parse(operator_text(variable_of(str(info.field_name)), said)) if isinstance(said, str) else said

    return PlainValidator(read)


_Endpoints = Annotated[
    Mapping[str, OperatorEndpoint],
    _described(lambda said: parse_operator_endpoints(said.text, source=said.source)),
    PlainSerializer(operator_endpoints_json),
]
_PrivateBenchmarks = Annotated[
    PrivateBenchmarks,
    _described(lambda said: parse_private_benchmarks(said.text, source=said.source, file=said.file)),
    PlainSerializer(PrivateBenchmarks.written),
]
_Ceilings = Annotated[
    OperatorCeilings,
    _described(lambda said: parse_ceilings(said.text, source=said.source)),
    PlainSerializer(OperatorCeilings.written),
]
_Notifications = Annotated[
    Notifications,
    _described(lambda said: parse_notifications(said.text, source=said.source, file=said.file)),
    PlainSerializer(Notifications.written),
]
#: What is too short or too long is said by whoever applies it.
_Days = Annotated[
    Annotated[int, Field(ge=0, lt=10**9)] | None,
    Field(description="a number of days; unset it for what each suite says"),
]
_Folder = Annotated[Path, BeforeValidator(lambda said: Path(said))]


class Settings(EnvironmentSettings):
    """Settings of one process. What may hold a password is not shown where the whole is."""

    home: Annotated[_Folder, AfterValidator(Path.absolute)] = Path(".proctor")
    """Whatever else has a place on this machine and is not said stands below it."""
    broker_url: Text = Field(default=f"{_DEFAULT_REDIS}/0", repr=False)
    ledger_url: Text = Field(default=f"{_DEFAULT_REDIS}/1", repr=False)
    ledger_check: LedgerCheck = LedgerCheck.REFUSE
    """Whether a router begins on a ledger that evicts keys, or keeps nothing on disk."""
    records_url: Text = Field(default_factory=lambda said: f"sqlite:///{said['home'] / 'records.sqlite'}", repr=False)
    records_migrate: RecordsMigrate = RecordsMigrate.AUTO
    """Who brings the record store's tables to this version."""
    records_wait_s: Annotated[float, Field(ge=0, allow_inf_nan=False, description="0 or more seconds")] = 0.0
    """For how long a worker or server that starts waits for a record store that does not answer, or that is still to be
    migrated by somebody else; 0 has it end with that error at once."""
    signing_key: Annotated[_Folder, AfterValidator(Path.absolute)] | None = None
    """PEM file of the Ed25519 key that signs decisions; None is the installation's own, made in the home."""
    trusted_keys: Annotated[_Folder, AfterValidator(Path.absolute)] | None = None
    """Folder of public keys (`*.pem`) that are believed besides the home's where an approval is held to the log."""
    artifacts: Text = Field(default_factory=lambda said: str(said["home"] / "artifacts"))
    """Where prompts, completions and reports are kept: a folder, or `s3://bucket/prefix`."""
    s3_endpoint_url: Text | None = Field(
        default=None,
        validation_alias=AliasChoices(variable_of("s3_endpoint_url"), "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    )
    """Of S3-compatible storage other than Amazon's; None where artifacts are in a folder."""
    registry_uri: Text | None = Field(default=None, repr=False)
    dashboard_url: Annotated[Text, AfterValidator(public_address)] | None = None
    """Where people reach the gateway's pages; None writes paths of this machine where a report is named."""
    admission_approvals: Text | None = None
    """ConfigMap, as `NAMESPACE/NAME`, in which the registry service keeps the list of what stands approved."""
    admission_stale_s: Seconds = 600.0
    """For how long that list is good once nobody keeps it any more."""
    notify: _Notifications = Field(default=NOBODY, repr=False)
    """Who is told of decisions, and how they are reached."""
    endpoints: _Endpoints = Field(default_factory=dict)
    """Endpoint ids that a suite may name, each with where it is and what may be asked of it."""
    other_endpoints: OtherEndpoints = OtherEndpoints.LOOPBACK
    """Which URLs a suite may bring besides those that `endpoints` covers."""
    private_benchmarks: _PrivateBenchmarks = NOTHING_MARKED
    """Benchmarks whose items go to approved endpoints alone, whatever a suite says."""
    ceilings: _Ceilings = NO_CEILINGS
    """What each submitter may use, whatever a suite says."""
    encoder: Text | None = None
    """Folder, pinned hub id or grpc:// address of a sentence encoder; None is the packaged all-MiniLM-L6-v2."""
    encoder_precision: EncoderPrecision = EncoderPrecision.FP32
    bundle: _Folder = Field(default_factory=default_bundle)
    """Folder of the reference models and their benchmark."""
    benchmarks: _Folder = Field(default_factory=lambda said: said["home"] / "benchmarks")
    """Folder of benchmark files, for suites that name a benchmark and no file."""
    corpora: Annotated[_Folder, AfterValidator(Path.absolute)] | None = None
    """Folder of training data, for suites that a gateway is sent; where it is set, workers search no other files."""
    retention_days: _Days = None
    """For how many days a router keeps prompts and completions at least; None is for as long as their suite says."""
    metrics_scores: Annotated[int, Field(ge=0, le=1_000)] = 50
    """Models, each with a suite, of which a router's metrics tell the Contamination Score; 0 is none."""
    log_format: LogFormat = LogFormat.TEXT
    """How workers and servers write their logs."""
    code_execution: CodeExecution = CodeExecution.OFF
    """Whether answers that are code may be graded, which runs them."""
    # Excluded, because these two are more than a variable each: `to_environment` adds them.
    hub: InstanceOf[HubAccess] = Field(default=UNSAID_HUB, exclude=True)
    """What suites may read of the Hugging Face Hub; its address and token come from HF_ENDPOINT and HF_TOKEN."""
    timing: InstanceOf[Timing] = Field(default=DEFAULT_TIMING, exclude=True)
    """Time limits; each of them has a variable of its own."""

    @property
    def vectors(self) -> Path:
        """Folder of what the encoder made of benchmarks' questions. Nothing is lost with it but time."""
        return self.home / "vectors"

    @field_validator("s3_endpoint_url")
    @classmethod
    def _of_the_bucket(cls, url: str | None, info: ValidationInfo) -> str | None:
        location = s3_location(info.data.get("artifacts", ""), url)
        return location and location.endpoint_url

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, **given: Any) -> Self:
        """Settings from `PROCTOR_*` variables, and the home's defaults for those that are not set.

        Raises:
            BadInputError: when PROCTOR_ENDPOINTS, or the file that it names behind an @, describes no endpoints,
                PROCTOR_PRIVATE_BENCHMARKS no benchmarks, PROCTOR_CEILINGS no ceilings or PROCTOR_NOTIFY no targets,
                PROCTOR_HUB_DATASETS holds what is no pattern, PROCTOR_OTHER_ENDPOINTS, PROCTOR_LEDGER_CHECK,
                PROCTOR_RECORDS_MIGRATE, PROCTOR_ENCODER_PRECISION, PROCTOR_LOG_FORMAT or PROCTOR_CODE_EXECUTION is
                none of its words, PROCTOR_DASHBOARD_URL is no address of a web page, PROCTOR_ARTIFACTS or the S3
                endpoint names no place, or a time limit is no number of seconds or days.
        """
        hub = HubAccess(
            # Set and empty it means none.
            datasets=hub_patterns(environ.get(HUB_DATASETS)),
            endpoint=environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT,
            token=environ.get("HF_TOKEN") or None,
        )
        return super().from_environment(environ, hub=hub, timing=Timing.from_environment(environ), **given)

    def to_environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        patterns = self.hub.datasets
        hub = {} if patterns is None else {HUB_DATASETS: written_patterns(patterns)}
        return super().to_environment() | hub | self.timing.to_environment()
