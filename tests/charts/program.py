"""What Proctor itself knows: the variables that it reads, its commands with their options, its queues and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import click
from pydantic import AliasChoices

from proctor.cli.main import cli
from proctor.domain.messages import QUEUES
from proctor.runtime.environment import EnvironmentSettings, variable_of
from proctor.runtime.metrics.catalogue import METRICS
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing
from tests.support import REPOSITORY

_SOURCES: Final = REPOSITORY / "services" / "proctor"
_LITERAL: Final = re.compile(r"[\"'](?:\w+ = )?((?:PROCTOR|OPENAI|HF|MLFLOW)_[A-Z0-9_]+)[\"'= ]")
_METRIC: Final = re.compile(r"\bproctor_[a-z][a-z0-9_]*")
_OF_A_HISTOGRAM: Final = ("_bucket", "_count", "_sum")

#: Variables that are read by what Proctor stands on, and what reads them.
OF_LIBRARIES: Final = {
    "AWS_ACCESS_KEY_ID": "obstore: artifacts on S3",
    "AWS_SECRET_ACCESS_KEY": "obstore",
    "AWS_SESSION_TOKEN": "obstore",
    "AWS_REGION": "obstore",
    "AWS_DEFAULT_REGION": "obstore",
    "AWS_CA_BUNDLE": "the AWS tools' own",
    "AWS_ROLE_ARN": "obstore: roles of service accounts",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "obstore: roles of service accounts",
    "HF_ENDPOINT": "the hub's client",
    "HF_TOKEN": "the hub's client",
    "HF_HOME": "sentence-transformers",
    "HF_HUB_OFFLINE": "sentence-transformers",
    "TOKENIZERS_PARALLELISM": "tokenizers",
    "SSL_CERT_FILE": "httpx, ssl",
    "SSL_CERT_DIR": "httpx, ssl",
    "GRPC_EXPERIMENTS": "grpc",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": "grpc",
    "PROMETHEUS_MULTIPROC_DIR": "prometheus-client",
    "OMP_NUM_THREADS": "torch, numpy",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "opentelemetry",
    "OTEL_EXPORTER_OTLP_HEADERS": "opentelemetry",
    "OTEL_EXPORTER_OTLP_CERTIFICATE": "opentelemetry",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "opentelemetry",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "opentelemetry",
    "OTEL_RESOURCE_ATTRIBUTES": "opentelemetry",
    "OTEL_SERVICE_NAME": "opentelemetry",
    "OTEL_TRACES_SAMPLER": "opentelemetry",
    "OTEL_TRACES_SAMPLER_ARG": "opentelemetry",
    "POD_NAME": "only expanded in other variables, or the identity of a leader",
    "POD_NAMESPACE": "only expanded in other variables",
    "POD_IP": "only expanded in other variables",
    "HOME": "what looks for a home directory",
    "TMPDIR": "Python's tempfile",
    "PATH": "the shell",
    "PYTHONUNBUFFERED": "Python",
    "PYTHONDONTWRITEBYTECODE": "Python",
    "MLFLOW_TRACKING_TOKEN": "the registry's client",
    "MLFLOW_TRACKING_USERNAME": "the registry's client",
    "MLFLOW_TRACKING_PASSWORD": "the registry's client",
    "PGSSLROOTCERT": "libpq",
    "PGSSLMODE": "libpq",
    "PGPASSWORD": "libpq",
    "PGPASSFILE": "libpq",
    "PGSSLCERT": "libpq",
    "PGSSLKEY": "libpq",
    "NO_PROXY": "httpx", "HTTPS_PROXY": "httpx", "HTTP_PROXY": "httpx",
}  # fmt: skip


@cache
def variables() -> frozenset[str]:
    """Every environment variable that Proctor reads, or that a library of it does."""
    found = set(OF_LIBRARIES)
    for settings in (Settings, Timing):
        found |= set(_of_fields(settings))
    found |= {name for command in commands() for name in _of_options(command)}
    for path in sorted(_SOURCES.rglob("*.py")):
        found |= set(_LITERAL.findall(path.read_text("utf-8")))
    # A server's list of tokens stands in the code as the variable of its one token with an S behind.
    found |= {f"{name}S" for name in found if name in ("PROCTOR_GATEWAY_TOKEN", "PROCTOR_PERTURBATION_TOKEN")}
    return frozenset(name for name in found if not name.endswith("_"))


def _of_fields(settings: type[EnvironmentSettings]) -> Iterator[str]:
    for name, field in settings.model_fields.items():
        if field.exclude:
            continue
        yield variable_of(name)
        if isinstance(field.validation_alias, AliasChoices):
            yield from (alias for alias in field.validation_alias.choices if isinstance(alias, str))


def _of_options(command: click.Command) -> Iterator[str]:
    for option in command.params:
        said = option.envvar or ()
        yield from (said,) if isinstance(said, str) else said


@cache
def commands() -> tuple[click.Command, ...]:
    """Every command, groups among them."""
    return tuple(_below(cli))


def _below(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _below(below)


def refusal(arguments: Iterable[str]) -> str | None:
    """Why `proctor` would refuse some arguments; None where it takes them."""
    try:
        _parse(cli, "proctor", list(arguments), None)
    except click.exceptions.Exit:
        return None
    except click.UsageError as error:
        return error.format_message()
    return None


def _parse(command: click.Command, name: str, arguments: list[str], parent: click.Context | None) -> None:
    context = command.make_context(name, arguments, parent=parent)
    if not isinstance(command, click.Group):
        return
    rest = [*context._protected_args, *context.args]
    if not rest:
        if not command.invoke_without_command:
            raise click.UsageError(f"{name} needs a command", context)
        return
    found, below, left = command.resolve_command(context, rest)
    assert below is not None
    _parse(below, str(found), left, context)


def metrics() -> frozenset[str]:
    """Every series' name that Proctor serves."""
    names = {metric.name for metric in METRICS}
    return frozenset(
        names | {f"{metric.name}{end}" for metric in METRICS if metric.kind == "histogram" for end in _OF_A_HISTOGRAM}
    )


def metrics_in(text: str) -> set[str]:
    """Names in a text that are formed like metrics of Proctor's."""
    return set(_METRIC.findall(text))


def queues() -> frozenset[str]:
    """Every queue that a worker consumes."""
    return frozenset(queue for of_service in QUEUES.values() for queue in of_service)
