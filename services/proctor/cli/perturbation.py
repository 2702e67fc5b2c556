"""`proctor perturbation`: the perturbation engine as a service."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import click

from proctor.cli.options import home_option
from proctor.cli.serving import secrecy, serving_options, tls_of, tokens_of, with_own_token
from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError

#: What callers must show; with an S behind, the tokens of callers by their names.
_TOKEN = "PROCTOR_PERTURBATION_TOKEN"  # noqa: S105, the name of a variable


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
    "--max-in-flight",
    type=click.IntRange(1, 100_000),
    envvar="PROCTOR_PERTURBATION_MAX_IN_FLIGHT",
    help="Messages of a stream that are read ahead of the work. [default: 256]",
)
@serving_options(
    "PROCTOR_PERTURBATION",
    message="Largest message; a larger one ends its stream.",
    most_bytes=64 << 20,
    default="1 MiB",
)
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
    PROCTOR_PERTURBATION_TOKEN="$TOKEN" proctor perturbation serve --listen 127.0.0.1:50051
    grpcurl -plaintext -H "authorization: Bearer $TOKEN" 127.0.0.1:50051 list

    The contract is protos/proctor/v1/perturbation.proto, which the server also tells by reflection. The health service
    answers SERVING for proctor.v1.Perturbation once the encoder is loaded. What was made before is taken from the
    variant library in the record store (PROCTOR_RECORDS_URL), which the workers use too. SIGTERM lets open streams
    end within --grace and leaves.

    With PROCTOR_PERTURBATION_TOKEN set, or callers named in PROCTOR_PERTURBATION_TOKENS ({"ci": "sha256:…"} or @file),
    callers must show a token (`authorization: Bearer TOKEN`), but for probes of health. Without either, other
    machines are let in by certificates of --client-ca alone, and a server on 127.0.0.1 and its like draws a token for
    the time it runs, which stands in HOME/run/perturbation-PORT.json for its user alone.
    """
    import asyncio

    try:
        from proctor.perturbation.serving.server import serve
        from proctor.runtime.grpc.serving import Address
    except ModuleNotFoundError as error:
        raise BadInputError(f"the gRPC service needs {error.name}: pip install 'proctor[grpc]'") from None
    from proctor.perturbation.encoder import ResolvedEncoder, resolve_encoder
    from proctor.perturbation.library.store import VariantLibrary
    from proctor.perturbation.serving.limits import Limits
    from proctor.perturbation.serving.stream_engine import StreamEngine
    from proctor.runtime.garbage import prepare_for_many_objects
    from proctor.runtime.grpc.own_servers import PERTURBATION
    from proctor.runtime.logs.configuring import configure_logging
    from proctor.runtime.private import tighten_stores
    from proctor.runtime.records.opening import open_records
    from proctor.runtime.settings import Settings

    address = Address.parse(listen)
    tls = tls_of(tls_cert, tls_key, tls_client_ca)
    single, several = os.environ.get(_TOKEN) or None, os.environ.get(f"{_TOKEN}S", "")
    tokens = tokens_of(single, several, variable=_TOKEN)
    given = {
        "max_streams": max_streams, "max_message_bytes": max_message_bytes, "max_in_flight": max_in_flight
    }  # fmt: skip
    limits = Limits()._replace(**{name: value for name, value in given.items() if value is not None})
    settings = Settings.from_environment({**os.environ, "PROCTOR_HOME": str(home)})
    configure_logging("perturbation", log_level, settings.log_format)
    if tls is None and not address.loopback:
        say(
            f"proctor: warning: {listen} serves plain text beyond this machine; give --tls-cert and --tls-key", err=True
        )

    def ready(bound: Address) -> None:
        listens(bound.port)
        say(f"the perturbation service listens on {bound}{secrecy(tls, tokens)}", err=True)

    tighten_stores(settings.home, settings.artifacts)
    records = open_records(settings)
    prepare_for_many_objects()

    def resolve() -> ResolvedEncoder:
        return resolve_encoder(encoder or None, settings.encoder_precision)

    engine = StreamEngine(resolve, VariantLibrary(records), settings.bundle)
    with closing(records), with_own_token(tokens, home, PERTURBATION, address, tls) as (tokens, listens):
        asyncio.run(serve(engine, address, limits=limits, grace_s=grace_s, tokens=tokens, tls=tls, ready=ready))
