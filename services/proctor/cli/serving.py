"""Options that Proctor's gRPC servers share: how they are encrypted, and what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from proctor.cli.options import log_level_option
from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.runtime.grpc.serving import Address, Tls
    from proctor.runtime.grpc.tokens import Tokens

Command = TypeVar("Command", bound=Callable[..., Any])
#: Names that a message lists.
_NAMED = 5
_FILE = click.Path(path_type=Path, dir_okay=False)


def serving_options(prefix: str, *, message: str, most_bytes: int, default: str) -> Callable[[Command], Command]:
    """`--max-message-bytes`, `--grace`, `--tls-cert`, `--tls-key`, `--client-ca` and `--log-level`.

    Args:
        prefix: of the variables that stand for them, e.g. `PROCTOR_GATEWAY`.
        message: what the largest message is, in words.
        most_bytes: the largest size that can be asked for.
        default: the size that is taken else, in words.
    """

    def decorate(command: Command) -> Command:
        options = (
            click.option(
                "--max-message-bytes",
                type=click.IntRange(1_024, most_bytes),
                envvar=f"{prefix}_MAX_MESSAGE_BYTES",
                help=f"{message} [default: {default}]",
            ),
            click.option(
                "--grace",
                "grace_s",
                type=click.FloatRange(0, 3_600),
                envvar=f"{prefix}_GRACE",
                default=10.0,
                show_default=True,
                help="Seconds that what is open has to end after SIGTERM.",
            ),
            click.option("--tls-cert", type=_FILE, envvar=f"{prefix}_TLS_CERT", help="PEM file of the certificate."),
            click.option("--tls-key", type=_FILE, envvar=f"{prefix}_TLS_KEY", help="PEM file of its key."),
            click.option(
                "--client-ca",
                "--tls-client-ca",
                "tls_client_ca",
                type=_FILE,
                envvar=f"{prefix}_TLS_CLIENT_CA",
                help="PEM file of an authority; only clients with a certificate of it are let in.",
            ),
            log_level_option,
        )
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def tls_of(certificate: Path | None, key: Path | None, client_authority: Path | None) -> Tls | None:
    """A server's certificates; None where it serves plain text.

    Raises:
        BadInputError: when one of them is there without another that it needs.
    """
    from proctor.runtime.grpc.serving import Tls

    if (certificate is None) != (key is None) or (client_authority is not None and certificate is None):
        raise BadInputError("TLS needs --tls-cert and --tls-key together; --client-ca comes on top of both")
    return None if certificate is None or key is None else Tls(certificate, key, client_authority)


def tokens_of(single: str | None, several: str, *, variable: str) -> Tokens | None:
    """What a server asks of its callers; None where it asks for nothing.

    Args:
        single: the one token, from `variable`.
        several: the tokens by the names of their callers, JSON or `@` and a file, from the variable with an S behind.
        variable: name of the variable.

    Raises:
        BadInputError: for a token that could be guessed, or a list that is none.
    """
    from proctor.runtime.grpc.tokens import server_tokens
    from proctor.runtime.operator_text import operator_text

    listed = operator_text(f"{variable}S", several)
    known = server_tokens(single, listed.text, variable=variable, source=listed.source)
    if known is not None and known.in_clear:
        names, more = ", ".join(known.in_clear[:_NAMED]), len(known.in_clear) > _NAMED
        say(
            f"proctor: warning: {listed.source} holds tokens in clear ({names}{', …' if more else ''}): write their "
            'digests, with which nobody can call, as sha256: and what `printf %s "$TOKEN" | sha256sum` prints',
            err=True,
        )
    return known


@contextmanager
def with_own_token(
    tokens: Tokens | None, home: Path, service: str, address: Address, tls: Tls | None
) -> Iterator[tuple[Tokens | None, Callable[[int], None]]]:
    """The tokens of a server, and what to call with its port once it listens.

    One on loopback that was given none, and asks for no certificate, draws its own: loopback is every user's of the
    machine, and commands of the same home find it (`proctor.runtime.grpc.own_servers`).
    """
    from proctor.domain.submitter import OWN
    from proctor.runtime.grpc.own_servers import own_token
    from proctor.runtime.grpc.tokens import server_tokens

    knows_clients = tls is not None and tls.client_authority is not None
    if tokens is not None or knows_clients or not address.loopback:
        yield tokens, lambda port: None
        return
    with own_token(home, service, address.host) as (token, listens):
        yield server_tokens(token, "", variable="the server's own token", source="", holder=OWN), listens


def secrecy(tls: Tls | None, tokens: Tokens | None) -> str:
    """How a server is protected, behind its address in words."""
    said = [
        "" if tls is None else "TLS",
        "" if tls is None or tls.client_authority is None else "known clients alone",
        "" if tokens is None else "with tokens" if tokens.several else "with a token",
    ]
    return "".join(f" ({one})" for one in said if one)
