"""Where the audits of a command are: on this home's stores, or behind a service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proctor.domain.errors import BadInputError, StackError

if TYPE_CHECKING:
    from proctor.gateway.desk import AuditDesk
    from proctor.runtime.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

#: What a caller shows to a gateway, and what a gateway asks its callers for.
TOKEN_VARIABLE = "PROCTOR_GATEWAY_TOKEN"  # noqa: S105, the name of a variable


def server_option(command: Command) -> Command:
    """`--server`: the audit service to ask instead of the stores of this home."""
    return click.option(
        "--server",
        metavar="URL",
        envvar="PROCTOR_GATEWAY",
        help="A `proctor gateway`, grpc://host:port or grpcs://host:port, instead of the stores of this home. What it "
        f"asks its callers for is taken from {TOKEN_VARIABLE}. [env: PROCTOR_GATEWAY]",
    )(command)


def audit_argument(command: Command) -> Command:
    """`AUDIT`: an audit's id, or a beginning of it."""
    return click.argument("audit_id", metavar="AUDIT")(command)


def token_from_environment() -> str | None:
    """What callers of a gateway must show; None where nothing is set.

    Raises:
        BadInputError: when it cannot travel in a header.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise BadInputError(f"{TOKEN_VARIABLE} holds what cannot travel in a header: use printable ASCII characters")
    return token


def home_settings(home: Path) -> Settings:
    """Settings of the stack that runs in a home; without one, those of the environment."""
    from proctor.runtime.settings import Settings
    from proctor.runtime.stack import LocalStack

    try:
        return LocalStack.attach(home).settings
    except StackError:
        return Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})


@contextmanager
def desk(home: Path, server: str | None) -> Iterator[AuditDesk]:
    """The audits of a command.

    Raises:
        BadInputError: for an address of another form, or without the packages that the service's client needs.
        StoreError: when the record store cannot be opened.
    """
    if server is None:
        from proctor.gateway.audits import local_desk

        with local_desk(home_settings(home)) as local:
            yield local
        return
    try:
        from proctor.gateway.client import remote_desk
    except ModuleNotFoundError as error:
        raise BadInputError(f"--server needs {error.name}: pip install 'proctor[gateway]'") from None
    with remote_desk(server, token_from_environment()) as remote:
        yield remote
