"""`proctor gateway`: audits for callers on other machines."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.admission import AdmissionChoice, admission_options, with_admission
from proctor.cli.audits.reaching import TOKEN_VARIABLE, home_settings, token_from_environment
from proctor.cli.options import home_option
from proctor.cli.serving import secrecy, serving_options, tls_of, tokens_of, with_own_token
from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError
from proctor.domain.host import LOOPBACK
from proctor.domain.problems import visible
from proctor.domain.submitter import Role

if TYPE_CHECKING:
    from proctor.domain.triggers import Triggers
    from proctor.gateway.oidc.bearer import Bearers
    from proctor.gateway.server import Beside
    from proctor.runtime.grpc.serving import Address, Tls
    from proctor.runtime.kubernetes.leader import Leads
    from proctor.runtime.settings import Settings

#: The issuer whose tokens are good, too.
OIDC_VARIABLE = "PROCTOR_GATEWAY_OIDC"


@click.group(invoke_without_command=True)
@home_option
@click.option(
    "--host",
    envvar="PROCTOR_GATEWAY_HOST",
    default=LOOPBACK,
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
    "--http",
    "http_port",
    type=click.IntRange(0, 65_535),
    envvar="PROCTOR_GATEWAY_HTTP",
    help="Port on which HTTP is served beside gRPC; 0 is any free one. [env: PROCTOR_GATEWAY_HTTP; default: none]",
)
@click.option(
    "--triggers",
    "triggers_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="PROCTOR_GATEWAY_TRIGGERS",
    help="File of suites for what is registered; opens /v1/webhooks. [env: PROCTOR_GATEWAY_TRIGGERS]",
)
@click.option(
    "--reconcile-every",
    "reconcile_every_s",
    type=click.FloatRange(1, 86_400),
    envvar="PROCTOR_GATEWAY_RECONCILE_EVERY",
    default=60.0,
    show_default=True,
    help="Seconds between two looks at the registry for versions of which no webhook told.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65_535),
    envvar="PROCTOR_GATEWAY_METRICS_PORT",
    help="Serve Prometheus metrics, /livez and /readyz on this port. Off by default.",
)
@click.option(
    "--metrics-host",
    envvar="PROCTOR_GATEWAY_METRICS_HOST",
    default=LOOPBACK,
    show_default=True,
    help="Address to serve metrics on; 0.0.0.0 lets other machines scrape it.",
)
@click.option(
    "--max-watches",
    type=click.IntRange(1, 10_000),
    envvar="PROCTOR_GATEWAY_MAX_WATCHES",
    help="Audits that are watched at once; further ones are refused. [default: 96]",
)
@admission_options
@serving_options(
    "PROCTOR_GATEWAY", message="Largest submission, a suite with its files.", most_bytes=1 << 30, default="32 MiB"
)
@click.pass_context
def gateway(
    context: click.Context,
    home: Path,
    host: str,
    port: int,
    http_port: int | None,
    triggers_file: Path | None,
    reconcile_every_s: float,
    metrics_port: int | None,
    metrics_host: str,
    max_watches: int | None,
    max_message_bytes: int | None,
    grace_s: float,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    log_level: str,
    admission: AdmissionChoice,
) -> None:
    """Serve audits in the foreground: proctor.v1.AuditService over gRPC, and with --http the same in JSON.

    \b
    proctor gateway --port 50061
    proctor audit list --server grpc://127.0.0.1:50061
    proctor gateway --http 8080 --triggers triggers.json

    With --triggers, webhooks of MLflow and of the Hugging Face Hub start the audits that the file says, for who knows a
    secret of PROCTOR_GATEWAY_MLFLOW_SECRETS or PROCTOR_GATEWAY_HUGGINGFACE_SECRETS (one a line, two at most, or @file),
    and so does what is found in the registry of PROCTOR_REGISTRY_URI: docs/triggers.md. HTTP has gRPC's host, tokens,
    certificates and limits.

    With --admission-port, workloads of a Kubernetes cluster that name a model version (proctor.dev/model: NAME@VERSION)
    are let in by what stands approved: docs/admission.md.

    The contract is protos/proctor/v1/audit.proto, which the server also tells by reflection. Audits are those of the
    stack that runs in the same home, or of PROCTOR_RECORDS_URL, PROCTOR_LEDGER_URL and PROCTOR_BROKER_URL. Files that
    a suite names come with it: none of this machine is read under a caller's name.

    With PROCTOR_GATEWAY_TOKEN set, callers must show that token (`authorization: Bearer TOKEN`), but for probes of
    the health service. PROCTOR_GATEWAY_TOKENS names callers, {"ci": "sha256:…"} or @file: each sees and steers its own
    audits, within the ceilings of PROCTOR_CEILINGS; {"anna": {"token": …, "role": "reviewer", "sees_all": true}} may
    sign off too, and sees everyone's. PROCTOR_GATEWAY_OIDC, JSON or @file, names an issuer of OpenID Connect whose
    tokens are good as well, and the roles of its groups: docs/access.md. Without
    either, other machines are let in by certificates of --client-ca alone, and on 127.0.0.1 and its like a token is
    drawn for the time that the server runs: commands with the same home find it by themselves, and no other user of
    the machine can. SIGTERM lets open calls end within --grace and leaves; watches end at once.

    With --metrics-port it tells Prometheus of requests and webhooks, for who shows PROCTOR_METRICS_TOKEN where that is
    set, and probes without it whether it goes on (/livez) and can be called (/readyz): docs/metrics.md.
    """
    if context.invoked_subcommand is not None:
        return
    import asyncio

    try:
        from proctor.gateway.server import nothing_beside, serve
    except ModuleNotFoundError as error:
        raise BadInputError(f"the gRPC service needs {error.name}: pip install 'proctor[gateway]'") from None
    from proctor.gateway.audits import local_desk
    from proctor.gateway.limits import Limits
    from proctor.gateway.probes import GatewayProbes
    from proctor.runtime.grpc.own_servers import GATEWAY
    from proctor.runtime.grpc.serving import Address
    from proctor.runtime.kubernetes.leader import leading
    from proctor.runtime.kubernetes.lease_name import LeaseName
    from proctor.runtime.logs.configuring import configure_logging
    from proctor.runtime.metrics.server import TOKEN_VARIABLE as METRICS_TOKEN_VARIABLE
    from proctor.runtime.metrics.server import Address as MetricsAddress
    from proctor.runtime.metrics.server import serving_metrics
    from proctor.runtime.settings import Settings

    metrics_token = os.environ.pop(METRICS_TOKEN_VARIABLE, "")
    tls = tls_of(tls_cert, tls_key, tls_client_ca)
    address = Address(host, port)
    tokens = tokens_of(token_from_environment(), os.environ.get(f"{TOKEN_VARIABLE}S", ""), variable=TOKEN_VARIABLE)
    bearers = _bearers(os.environ.get(OIDC_VARIABLE, ""))
    given = {"max_watches": max_watches, "max_message_bytes": max_message_bytes}
    limits = Limits()._replace(**{name: value for name, value in given.items() if value is not None})
    if triggers_file is not None and http_port is None:
        raise BadInputError("--triggers needs --http: webhooks come over HTTP")
    configure_logging("gateway", log_level, Settings.from_environment().log_format)

    def ready(bound: Address) -> None:
        listens(bound.port)
        probes.listens()
        if tls is None and not address.loopback:
            say(
                "proctor: warning: other machines send plain text, and the token in it: give --tls-cert and --tls-key",
                err=True,
            )
        say(f"the gateway listens on {bound}{secrecy(tls, tokens)}", err=True)

    with (
        with_own_token(tokens, home, GATEWAY, address, tls) as (tokens, listens),
        local_desk(home_settings(home), serves=True) as desk,
        ExitStack() as stack,
        # Of what a gateway does by itself, only the reading of the registry is one gateway's.
        leading(None if triggers_file is None else LeaseName.from_environment()) as leads,
    ):
        probes = GatewayProbes(desk.away)
        if metrics_port is not None:
            where = MetricsAddress(metrics_host, metrics_port)
            stack.enter_context(serving_metrics("gateway", where, desk.settings, metrics_token, pages=probes.pages))
        beside: Beside = nothing_beside
        if http_port is not None:
            triggers = _triggers(triggers_file, desk.settings)
            beside = _http(Address(host, http_port), tls, grace_s, triggers, reconcile_every_s, leads)
        beside = with_admission(beside, admission, host, grace_s)
        asyncio.run(
            serve(
                desk,
                address,
                limits=limits,
                grace_s=grace_s,
                tokens=tokens,
                bearers=bearers,
                tls=tls,
                beside=beside,
                ready=ready,
            )
        )


def _bearers(value: str) -> Bearers | None:
    """Callers with tokens of the operator's issuer; None where there is none."""
    from proctor.domain.oidc import oidc_settings
    from proctor.runtime.operator_text import operator_text

    said = operator_text(OIDC_VARIABLE, value)
    settings = oidc_settings(said.text, source=said.source)
    if settings is None:
        return None
    try:
        from proctor.gateway.oidc.opening import open_bearers
    except ModuleNotFoundError as error:
        raise BadInputError(f"tokens of an issuer need {error.name}: pip install 'proctor[gateway]'") from None
    return open_bearers(settings)


def _triggers(file: Path | None, settings: Settings) -> Triggers | None:
    """The operator's triggers; None where there are none."""
    from proctor.formats.triggers import load_triggers

    return None if file is None else load_triggers(file, settings.bundle, settings.benchmarks)


def _http(
    address: Address,
    tls: Tls | None,
    grace_s: float,
    triggers: Triggers | None,
    reconcile_every_s: float,
    leads: Leads,
) -> Beside:
    """What serves HTTP beside gRPC."""
    try:
        from proctor.gateway.http.server import HttpOptions, serving_http
    except ModuleNotFoundError as error:
        raise BadInputError(f"HTTP needs {error.name}: pip install 'proctor[gateway]'") from None
    from proctor.gateway.triggers.secrets import WebhookSecrets

    secrets = WebhookSecrets.from_environment(os.environ)
    options = HttpOptions(address, tls, grace_s, triggers, secrets, reconcile_every_s, leads)

    def ready(bound: Address) -> None:
        scheme = "http" if tls is None else "https"
        webhooks = "" if triggers is None else f", and webhooks for {len(triggers.suites)} suites"
        say(f"the gateway serves {scheme}://{bound}{webhooks}", err=True)

    return lambda front: serving_http(front, options, ready)


@gateway.command()
@click.argument("name", required=False)
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.OPERATOR.value,
    show_default=True,
    help="What NAME may do: look at audits (viewer), begin and steer them too (operator), sign off too (reviewer).",
)
@click.option("--sees-all", is_flag=True, help="The audits of others are theirs to see, and what the role allows.")
def token(name: str | None, role: str, sees_all: bool) -> None:
    """Print a new token, and for a caller NAME the line that PROCTOR_GATEWAY_TOKENS holds of it.

    The token goes to standard output alone, and is written down nowhere: hand it to its caller, who sets
    PROCTOR_GATEWAY_TOKEN, or gives it to the dashboard's login. A server is told its digest, which nobody can call
    with.

    \b
    Examples:
      export PROCTOR_GATEWAY_TOKEN="$(proctor gateway token)"
      proctor gateway token ci
      proctor gateway token anna --role reviewer --sees-all
    """
    from proctor.domain.submitter import RESERVED, is_name
    from proctor.runtime.grpc.tokens import new_token, token_digest

    if name is None and (sees_all or role != Role.OPERATOR):
        raise BadInputError("--role and --sees-all are of a caller: give a NAME")
    if name is not None and (name in RESERVED or not is_name(name)):
        raise BadInputError(
            f"NAME is {visible(name[:80])}: use small letters, digits, '.', '_' and '-', and none of "
            f"{', '.join(sorted(RESERVED))}"
        )
    made = new_token()
    click.echo(made)
    if name is not None:
        said: dict[str, object] = {"token": token_digest(made)}
        said |= {"role": role} if role != Role.OPERATOR else {}
        said |= {"sees_all": True} if sees_all else {}
        line = json.dumps({name: said if len(said) > 1 else said["token"]})
        say(f"the server is told {line} in {TOKEN_VARIABLE}S", err=True)


@gateway.command()
@home_option
def login(home: Path) -> None:
    """Print the token with which to log in to the dashboard of the stack that runs here (`proctor up`).

    The token goes to standard output alone. It is of this user on this machine, and holds until the gateway is started
    anew; scripts may show it, too (`Authorization: Bearer TOKEN`).

    \b
    Example:
      proctor gateway login | xclip
    """
    from proctor.cli.dashboard import own_token
    from proctor.localstack.stack import LocalStack

    stack = LocalStack.attach(home)
    shown = own_token(stack)
    say(f"for {stack.dashboard()}:", err=True)
    click.echo(shown)


@gateway.command()
@click.argument("suite_file", metavar="SUITE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--name/--no-name", default=True, help="Mark the benchmark's name too.  [default: name]")
def mark(suite_file: Path, name: bool) -> None:
    """Print what marks the benchmark of SUITE as private in PROCTOR_PRIVATE_BENCHMARKS: JSON on standard output.

    Its name, the digest of its file, and a digest of each of its items, by which a copy is found under any name, in any
    order and form, whole or in part. Items that are marked go to endpoints alone that PROCTOR_ENDPOINTS approves with
    "private": true, or that are on the machine itself. The digests tell nothing of the items to who does not have them.

    \b
    Example:
      proctor gateway mark suite.json > /etc/proctor/private.json
      export PROCTOR_PRIVATE_BENCHMARKS=@/etc/proctor/private.json
    """
    from proctor.formats.items import load_items
    from proctor.formats.suites import content_digests, load_suite
    from proctor.runtime.settings import Settings
    from proctor.text.sameness import question_digest

    suite, settings = load_suite(suite_file), Settings.from_environment()
    where = suite_file.parent, settings.bundle, settings.benchmarks
    items = load_items(suite.dataset, *where).items
    file = content_digests(suite, *where).dataset
    marks = {
        "names": [suite.dataset.benchmark_name] if name else [],
        "datasets": [] if file is None else [file],
        "items": sorted({question_digest(item.question, item.choices) for item in items}),
    }
    click.echo(json.dumps(marks, indent=1))
