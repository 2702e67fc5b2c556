"""`proctor perturbation`: the perturbation engine as a service."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from proctor.cli.options import home_option
from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def perturbation() -> None:
    """Serve rewordings over gRPC."""


@perturbation.command()
@home_option
@click.option(
    "--listen",
    envvar="PROCTOR_PERTURBATION_LISTEN",
    default="127.0.0.1:50051",
    show_default=True,
    help="host:port; port 0 is any free one. [env: PROCTOR_PERTURBATION_LISTEN]",
)
@click.option(
    "--encoder",
    envvar="PROCTOR_ENCODER",
    help="Folder of a sentence-transformers model with safetensors weights, its hub id with a pinned commit, "
    "owner/name@<40 hex digits>, or grpc://host:8001/model-name for one on Triton; by default the packaged "
    "all-MiniLM-L6-v2. [env: PROCTOR_ENCODER]",
)
@click.option(
    "--max-streams",
    type=click.IntRange(1, 1_000),
    envvar="PROCTOR_PERTURBATION_MAX_STREAMS",
    help="Streams at once; further ones are refused. [default: 16]",
)
@click.option(
    "--max-message-bytes",
    type=click.IntRange(1_024, 64 << 20),
    envvar="PROCTOR_PERTURBATION_MAX_MESSAGE_BYTES",
    help="Largest message; a larger one ends its stream. [default: 1 MiB]",
)
@click.option(
    "--max-in-flight",
    type=click.IntRange(1, 100_000),
    envvar="PROCTOR_PERTURBATION_MAX_IN_FLIGHT",
    help="Messages of a stream that are read ahead of the work. [default: 256]",
)
@click.option(
    "--grace",
    "grace_s",
    type=click.FloatRange(0, 3_600),
    envvar="PROCTOR_PERTURBATION_GRACE",
    default=10.0,
    show_default=True,
    help="Seconds that open streams have to end after SIGTERM.",
)
@click.option("--tls-cert", type=_FILE, envvar="PROCTOR_PERTURBATION_TLS_CERT", help="PEM file of the certificate.")
@click.option("--tls-key", type=_FILE, envvar="PROCTOR_PERTURBATION_TLS_KEY", help="PEM file of its key.")
@click.option(
    "--tls-client-ca",
    type=_FILE,
    envvar="PROCTOR_PERTURBATION_TLS_CLIENT_CA",
    help="PEM file of an authority; only clients with a certificate of it are let in.",
)
@click.option("--log-level", default="INFO", show_default=True, help="Level of the log on standard error.")
def serve(
    home: Path,
    listen: str,
    encoder: str | None,
    max_streams: int | None,
    max_message_bytes: int | None,
    max_in_flight: int | None,
    grace_s: float,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    log_level: str,
) -> None:
    """Serve proctor.v1.Perturbation in the foreground: Perturb, Measure and Calibrate as gRPC streams.

    \b
    proctor perturbation serve --listen 127.0.0.1:50051
    grpcurl -plaintext 127.0.0.1:50051 list

    The contract is protos/proctor/v1/perturbation.proto, which the server also tells by reflection. The health service
    answers SERVING for proctor.v1.Perturbation once the encoder is loaded. What was made before is taken from the
    variant library in the record store (PROCTOR_RECORDS_URL), which the workers use too. SIGTERM lets open streams
    end within --grace and leaves.
    """
    import asyncio

    try:
        from proctor.perturbation.serving.server import serve
        from proctor.runtime.grpc_serving import Address, Tls
    except ModuleNotFoundError as error:
        raise BadInputError(f"the gRPC service needs {error.name}: pip install 'proctor[grpc]'") from None
    from proctor.perturbation.encoder import ResolvedEncoder, resolve_encoder
    from proctor.perturbation.library.store import VariantLibrary
    from proctor.perturbation.serving.limits import Limits
    from proctor.perturbation.serving.stream_engine import StreamEngine
    from proctor.runtime.garbage import prepare_for_many_objects
    from proctor.runtime.records import Records
    from proctor.runtime.settings import Settings

    address = Address.parse(listen)
    if (tls_cert is None) != (tls_key is None) or (tls_client_ca is not None and tls_cert is None):
        raise BadInputError("TLS needs --tls-cert and --tls-key together; --tls-client-ca comes on top of both")
    tls = Tls(tls_cert, tls_key, tls_client_ca) if tls_cert is not None and tls_key is not None else None
    given = {
        "max_streams": max_streams, "max_message_bytes": max_message_bytes, "max_in_flight": max_in_flight
    }  # fmt: skip
    limits = Limits()._replace(**{name: value for name, value in given.items() if value is not None})
    settings = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})
    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if tls is None and not address.loopback:
        say(
            f"proctor: warning: {listen} serves plain text beyond this machine; give --tls-cert and --tls-key", err=True
        )

    def ready(bound: Address) -> None:
        say(f"the perturbation service listens on {bound}{' (TLS)' if tls else ''}", err=True)

    records = Records(settings.records_url)
    prepare_for_many_objects()

    def resolve() -> ResolvedEncoder:
        return resolve_encoder(encoder or None, settings.encoder_precision)

    engine = StreamEngine(resolve, VariantLibrary(records), settings.bundle)
    try:
        asyncio.run(serve(engine, address, limits=limits, grace_s=grace_s, tls=tls, ready=ready))
    finally:
        records.close()
