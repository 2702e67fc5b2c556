"""The gateway of a local stack, as commands speak of it: its address, who gets in, and what MLflow tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from proctor.cli.terminal import say
from proctor.domain.errors import StackError
from proctor.domain.host import LOOPBACK
from proctor.localstack.stack import LocalStack
from proctor.runtime.grpc.own_servers import GATEWAY, token_of_own_server

#: Of a home, where `proctor up` is given none.
TRIGGER_FILE: Final = "triggers.json"


def triggers_of(home: Path, given: Path | None) -> Path | None:
    """The trigger file of a home's stack, checked; None where there is none.

    Args:
        home: the stack's folder, whose own file counts where none is given.
        given: the file that somebody named.

    Raises:
        BadInputError: when it cannot be used; with every problem of it and of its suites.
    """
    path = given or home / TRIGGER_FILE
    if given is None and not path.exists():
        return None
    from proctor.formats.triggers import load_triggers
    from proctor.runtime.settings import Settings

    settings = Settings.from_environment()
    load_triggers(path, settings.bundle, settings.benchmarks)
    return path.absolute()


def send_webhooks(stack: LocalStack) -> str:
    """Have the stack's own MLflow tell the stack's gateway of what is registered; returns where deliveries go.

    Raises:
        RegistryError: when MLflow refuses.
        StackError: when the stack has no gateway.
    """
    from proctor.localstack.webhook_secrets import webhook_secret
    from proctor.registry.mlflow_client import MlflowClient
    from proctor.registry.webhooks.subscription import subscribe

    address, uri = stack.dashboard(), stack.settings.registry_uri
    if address is None or uri is None:
        raise StackError("registered versions start no audit: the stack has no gateway, or no registry")
    with MlflowClient(uri) as client:
        return subscribe(client, address, webhook_secret(stack.home))


def say_dashboard(stack: LocalStack) -> None:
    """Say where a person looks, and with what to log in."""
    address = stack.dashboard()
    if address is not None:
        say(f"\ndashboard: {address}")
        say(f"  log in with the token that this prints: proctor gateway login --home {stack.home}")


def own_token(stack: LocalStack) -> str:
    """The token that the stack's gateway drew for itself.

    Raises:
        StackError: when the stack has no gateway, or it does not listen now.
    """

    ports = next((row.ports for row in stack.status() if row.name == GATEWAY), None)
    if ports is None:
        raise StackError(f"the stack of {stack.home} has no gateway: proctor down and proctor up start one")
    token = token_of_own_server(stack.home, GATEWAY, LOOPBACK, ports["grpc"])
    if token is None:
        raise StackError(f"the gateway of {stack.home} does not listen now; see: proctor status --home {stack.home}")
    return token
