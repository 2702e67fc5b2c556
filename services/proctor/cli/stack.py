"""`proctor up`, `status` and `down`: the local stack between commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.dashboard import TRIGGER_FILE, say_dashboard, send_webhooks, triggers_of
from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import BadInputError, ExitCode, StackError
from proctor.localstack.service import ServiceState
from proctor.localstack.stack import LocalStack, ServiceStatus, StackSpec
from proctor.runtime.settings import Settings


@click.command()
@home_option
@format_option
@click.option("--triton/--no-triton", default=True, help="Serve the reference models on Triton.  [default: triton]")
@click.option(
    "--metrics/--no-metrics",
    default=True,
    help="Have each worker serve Prometheus metrics, on the port that `proctor status` shows.  [default: metrics]",
)
@click.option(
    "--gateway/--no-gateway",
    default=True,
    help="Serve audits and the dashboard to this machine, by HTTP and gRPC.  [default: gateway]",
)
@click.option(
    "--http",
    "http_port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Port of the dashboard.  [default: any free one]",
)
@click.option(
    "--triggers",
    "triggers_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File of suites for what is registered in the local MLflow.  [default: {TRIGGER_FILE} of the home, if any]",
)
def up(
    home: Path,
    output: str,
    triton: bool,
    metrics: bool,
    gateway: bool,
    http_port: int,
    triggers_file: Path | None,
) -> None:
    """Start the local stack and keep it running: broker, registry, models, workers and dashboard, on loopback.

    The registry is a local MLflow, unless PROCTOR_REGISTRY_URI names another. With a trigger file (docs/triggers.md),
    registering a model version there starts its audits: MLflow's webhook is set up for it, with a secret that is drawn
    once and kept in the home. When the command is interrupted before everything is ready, it ends what it had started.

    \b
    Examples:
      proctor up
      proctor up --triggers triggers.json --http 8080
      proctor gateway login     # prints what to log in with to the dashboard
    """
    if triggers_file is not None and not gateway:
        raise BadInputError("--triggers needs the gateway, to which webhooks come: leave --no-gateway out")
    mlflow = Settings.from_environment().registry_uri is None
    triggers = triggers_of(home, triggers_file) if gateway else None
    spec = StackSpec(
        mlflow=mlflow, triton=triton, metrics=metrics, gateway=gateway, http_port=http_port, triggers=triggers
    )
    with LocalStack(home, spec) as stack:
        stack.start(_show_progress)
        if triggers is not None and stack.dashboard() is not None and mlflow:
            send_webhooks(stack)
        services = stack.status()
        stack.detach()
        _print(stack, services, output)


@click.command()
@home_option
@format_option
def status(home: Path, output: str) -> ExitCode:
    """Show the local stack. Exit code 1 when it does not run, or a service of it has died."""
    try:
        stack = LocalStack.attach(home)
    except StackError as error:
        if output == "json":
            print_json({"home": str(home), "running": False, "services": [], "dashboard": None, "notes": []})
        else:
            say(error)
        return ExitCode.FAILURE
    services = stack.status()
    _print(stack, services, output)
    ready = all(service.state is ServiceState.READY for service in services)
    return ExitCode.APPROVED_OR_DONE if ready else ExitCode.FAILURE


@click.command()
@home_option
@format_option
def down(home: Path, output: str) -> None:
    """End the local stack. Fine when none runs."""
    try:
        stack: LocalStack | None = LocalStack.attach(home)
    except StackError:
        stack = None
    if stack is not None:
        names = [service.name for service in stack.status()]
        stack.stop()
    else:
        names = []
        LocalStack.end_leftovers(home)
    if output == "json":
        print_json({"home": str(home), "ended": names})
    else:
        say(f"ended {', '.join(names)}" if names else f"no stack runs in {home}")


def _show_progress(service: ServiceStatus) -> None:
    if service.state is ServiceState.STOPPED:
        return
    took = f" after {service.ready_after_s:.1f} s" if service.ready_after_s is not None else ""
    say(f"{service.name}: {service.state}{took} {service.detail}".rstrip(), err=True)


def _print(stack: LocalStack, services: list[ServiceStatus], output: str) -> None:
    if output == "json":
        rows: list[dict[str, Any]] = [service._asdict() for service in services]
        said = {"home": str(stack.home), "running": True, "services": rows, "dashboard": stack.dashboard()}
        print_json({**said, "notes": list(stack.notes)})
        return
    say(
        table(
            ("service", "state", "pid", "ports", "version", "detail"),
            [
                (
                    service.name,
                    service.state,
                    service.pid or "",
                    " ".join(f"{kind}:{port}" for kind, port in service.ports.items()),
                    service.version,
                    service.detail,
                )
                for service in services
            ],
        )
    )
    say_dashboard(stack)
    for note in stack.notes:
        say(f"note: {note}", err=True)
