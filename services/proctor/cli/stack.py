"""`proctor up`, `status` and `down`: the local stack between commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import format_option, home_option
from proctor.cli.terminal import print_json, say, table
from proctor.domain.errors import ExitCode, StackError
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
def up(home: Path, output: str, triton: bool, metrics: bool) -> None:
    """Start the local stack and keep it running: broker, registry, models and workers, on loopback.

    The registry is a local MLflow, unless PROCTOR_REGISTRY_URI names another. When the command is interrupted before
    everything is ready, it ends what it had started.
    """
    mlflow = Settings.from_environment().registry_uri is None
    with LocalStack(home, StackSpec(mlflow=mlflow, triton=triton, metrics=metrics)) as stack:
        stack.start(_show_progress)
        services = stack.status()
        stack.detach()
    _print(services, stack.notes, home, output)


@click.command()
@home_option
@format_option
def status(home: Path, output: str) -> ExitCode:
    """Show the local stack. Exit code 1 when it does not run, or a service of it has died."""
    try:
        stack = LocalStack.attach(home)
    except StackError as error:
        if output == "json":
            print_json({"home": str(home), "running": False, "services": [], "notes": []})
        else:
            say(error)
        return ExitCode.FAILURE
    services = stack.status()
    _print(services, stack.notes, home, output)
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


def _print(services: list[ServiceStatus], notes: tuple[str, ...], home: Path, output: str) -> None:
    if output == "json":
        rows: list[dict[str, Any]] = [service._asdict() for service in services]
        print_json({"home": str(home), "running": True, "services": rows, "notes": list(notes)})
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
    for note in notes:
        say(f"note: {note}", err=True)
