"""Where the audits of a command are: on this home's stores, or behind a service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proctor.cli.terminal import clean, say
from proctor.domain.errors import BadInputError, StackError

if TYPE_CHECKING:
    from proctor.gateway.desk import AuditDesk
    from proctor.runtime.grpc.serving import ClientTls
    from proctor.runtime.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
#: Where a command's context keeps what is said of the service.
_META = "proctor.server."
#: What a caller shows to a gateway, and what a gateway asks its callers for.
TOKEN_VARIABLE = "PROCTOR_GATEWAY_TOKEN"  # noqa: S105, the name of a variable


def server_option(command: Command) -> Command:
    """`--server`: the audit service to ask instead of the stores of this home, and how to speak to it."""
    for option in reversed(_options()):
        command = option(command)
    return command


def _options() -> tuple[Callable[[Command], Command], ...]:
    return (
        click.option(
            "--server",
            metavar="URL",
            envvar="PROCTOR_GATEWAY",
            help="A `proctor gateway`, grpc://host:port or grpcs://host:port, instead of the stores of this home. What "
            f"it asks its callers for is taken from {TOKEN_VARIABLE}, or from this home where it runs there. "
            "[env: PROCTOR_GATEWAY]",
        ),
        _kept(
            "--ca",
            type=_FILE,
            envvar="PROCTOR_GATEWAY_CA",
            help="PEM file of the authority of a grpcs:// server's certificate, where it is one of your own. "
            "[env: PROCTOR_GATEWAY_CA]",
        ),
        _kept(
            "--certificate",
            type=_FILE,
            envvar="PROCTOR_GATEWAY_CERTIFICATE",
            help="PEM file of a certificate for servers that let in known clients alone; with --key. "
            "[env: PROCTOR_GATEWAY_CERTIFICATE]",
        ),
        _kept(
            "--key", type=_FILE, envvar="PROCTOR_GATEWAY_KEY", help="PEM file of its key. [env: PROCTOR_GATEWAY_KEY]"
        ),
        _kept(
            "--insecure",
            is_flag=True,
            envvar="PROCTOR_GATEWAY_INSECURE",
            help=f"Send {TOKEN_VARIABLE} in clear text to a grpc:// server on another machine, as where a tunnel keeps "
            "the line secret. [env: PROCTOR_GATEWAY_INSECURE]",
        ),
    )


def _kept(name: str, **said: Any) -> Callable[[Command], Command]:
    """An option that `desk` finds in the command's context: no command has a use for it of its own."""

    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        context.meta[_META + str(parameter.name)] = value

    return click.option(name, expose_value=False, callback=keep, **said)


def _client_tls(context: click.Context | None) -> ClientTls | None:
    """Whom a client trusts and who it is, by a command's options; None where they say nothing.

    Raises:
        BadInputError: for a certificate without its key, or the other way round.
    """
    from proctor.runtime.grpc.serving import ClientTls

    meta = {} if context is None else context.meta
    found = ClientTls(*(meta.get(_META + name) for name in ("ca", "certificate", "key")))
    if (found.certificate is None) != (found.key is None):
        raise BadInputError("a client's certificate needs --certificate and --key together")
    return found if any(found) else None


def audit_argument(command: Command) -> Command:
    """`AUDIT`: an audit's id, or a beginning of it."""
    return click.argument("audit_id", metavar="AUDIT")(command)


def token_from_environment() -> str | None:
    """What callers of a gateway must show; None where nothing is set.

    Raises:
        BadInputError: when it cannot travel in a header.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    # Not asked of the module of tokens, which needs the packages of the service.
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise BadInputError(f"{TOKEN_VARIABLE} holds what cannot travel in a header: use printable ASCII characters")
    return token


def home_settings(home: Path) -> Settings:
    """Settings of the stack that runs in a home; without one, those of the environment.

    What the operator says of submitters and of private benchmarks is not a stack's: where the environment says it, that
    holds.
    """
    from proctor.domain.ceilings import CEILINGS
    from proctor.domain.private_benchmarks import PRIVATE_BENCHMARKS
    from proctor.localstack.stack import LocalStack
    from proctor.runtime.settings import Settings

    here = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})
    try:
        stack = LocalStack.attach(home).settings
    except StackError:
        return here
    said: dict[str, Any] = {"ceilings": here.ceilings} if os.environ.get(CEILINGS) else {}
    if os.environ.get(PRIVATE_BENCHMARKS):
        said["private_benchmarks"] = here.private_benchmarks
    return stack.model_copy(update=said)


@contextmanager
def desk(home: Path, server: str | None) -> Iterator[AuditDesk]:
    """The audits of a command.

    Raises:
        BadInputError: for an address of another form, one that the token would go to in clear text, certificates that
            cannot be used, or without the packages that the service's client needs.
        StoreError: when the record store cannot be opened.
    """
    if server is None:
        from proctor.gateway.audits import local_desk

        with local_desk(home_settings(home), at_terminal=True) as local:
            yield local
        return
    try:
        from proctor.gateway.client import ServerAddress, remote_desk
    except ModuleNotFoundError as error:
        raise BadInputError(f"--server needs {error.name}: pip install 'proctor[gateway]'") from None
    from proctor.runtime.grpc.own_servers import GATEWAY, token_of_own_server

    host, port = ServerAddress.parse(server).address
    own = token_of_own_server(home, GATEWAY, host, port)
    context, token = click.get_current_context(silent=True), token_from_environment() or own
    insecure = context is not None and bool(context.meta.get(f"{_META}insecure"))
    if insecure and token is not None and server.startswith("grpc://"):
        say(f"proctor: warning: {TOKEN_VARIABLE} goes to {clean(server)} in clear text", err=True)
    with remote_desk(server, token, tls=_client_tls(context), insecure=insecure) as remote:
        yield remote
