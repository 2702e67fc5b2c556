"""`proctor gateway`: audits for callers on other machines."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from proctor.cli.audits.reaching import TOKEN_VARIABLE, home_settings, token_from_environment
from proctor.cli.options import home_option
from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@home_option
@click.option(
    "--host",
    envvar="PROCTOR_GATEWAY_HOST",
    default="127.0.0.1",
    show_default=True,
    help=f"Address to listen on; one that other machines reach needs {TOKEN_VARIABLE}. [env: PROCTOR_GATEWAY_HOST]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    envvar="PROCTOR_GATEWAY_PORT",
    default=50061,
    show_default=True,
    help="Port to listen on; 0 is any free one. [env: PROCTOR_GATEWAY_PORT]",
)
@click.option(
    "--max-watches",
    type=click.IntRange(1, 10_000),
    envvar="PROCTOR_GATEWAY_MAX_WATCHES",
    help="Audits that are watched at once; further ones are refused. [default: 96]",
)
@click.option(
    "--max-message-bytes",
    type=click.IntRange(1_024, 1 << 30),
    envvar="PROCTOR_GATEWAY_MAX_MESSAGE_BYTES",
    help="Largest submission, a suite with its files. [default: 32 MiB]",
)
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(0, 3_600),
    envvar="PROCTOR_GATEWAY_GRACE",
    default=10.0,
    show_default=True,
    help="Seconds that open calls have to end after SIGTERM; watches end at once.",
)
@click.option("--tls-cert", type=_FILE, envvar="PROCTOR_GATEWAY_TLS_CERT", help="PEM file of the certificate.")
@click.option("--tls-key", type=_FILE, envvar="PROCTOR_GATEWAY_TLS_KEY", help="PEM file of its key.")
@click.option(
    "--tls-client-ca",
    type=_FILE,
    envvar="PROCTOR_GATEWAY_TLS_CLIENT_CA",
    help="PEM file of an authority; only clients with a certificate of it are let in.",
)
@click.option("--log-level", default="INFO", show_default=True, help="Level of the log on standard error.")
def gateway(
    home: Path,
    host: str,
    port: int,
    max_watches: int | None,
    max_message_bytes: int | None,
    grace_s: float,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    log_level: str,
) -> None:
    """Serve proctor.v1.AuditService in the foreground: submit, watch and steer audits over gRPC.

    \b
    proctor gateway --port 50061
    proctor audit list --server grpc://127.0.0.1:50061
    grpcurl -plaintext 127.0.0.1:50061 list

    The contract is protos/proctor/v1/audit.proto, which the server also tells by reflection. Audits are those of the
    stack that runs in the same home, or of PROCTOR_RECORDS_URL, PROCTOR_LEDGER_URL and PROCTOR_BROKER_URL. Files that
    a suite names come with it: none of this machine is read under a caller's name.

    With PROCTOR_GATEWAY_TOKEN set, callers must show that token (`authorization: Bearer TOKEN`), but for probes of
    the health service. Without it, only 127.0.0.1 and its like can be listened on. SIGTERM lets open calls end within
    --grace and leaves.
    """
    import asyncio

    try:
        from proctor.gateway.server import serve
    except ModuleNotFoundError as error:
        raise BadInputError(f"the gRPC service needs {error.name}: pip install 'proctor[gateway]'") from None
    from proctor.gateway.audits import local_desk
    from proctor.gateway.limits import Limits
    from proctor.runtime.grpc_serving import Address, Tls

    if (tls_cert is None) != (tls_key is None) or (tls_client_ca is not None and tls_cert is None):
        raise BadInputError("TLS needs --tls-cert and --tls-key together; --tls-client-ca comes on top of both")
    tls = Tls(tls_cert, tls_key, tls_client_ca) if tls_cert is not None and tls_key is not None else None
    address, token = Address(host, port), token_from_environment()
    given = {"max_watches": max_watches, "max_message_bytes": max_message_bytes}
    limits = Limits()._replace(**{name: value for name, value in given.items() if value is not None})
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    def ready(bound: Address) -> None:
        if tls is None and not address.loopback:
            say(
                "proctor: warning: other machines send plain text, and the token in it: give --tls-cert and --tls-key",
                err=True,
            )
        say(f"the gateway listens on {bound}{' (TLS)' if tls else ''}{' (with a token)' if token else ''}", err=True)

    with local_desk(home_settings(home)) as desk:
        asyncio.run(serve(desk, address, limits=limits, grace_s=grace_s, token=token, tls=tls, ready=ready))
