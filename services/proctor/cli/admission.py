"""Options of the gateway's admission webhook, and what serves it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from proctor.cli.terminal import say
from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.gateway.admission.certificates.source import CertificateSource
    from proctor.gateway.server import Beside
    from proctor.runtime.grpc.serving import Address

Command = TypeVar("Command", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)
_PREFIX = "PROCTOR_GATEWAY_ADMISSION"


class AdmissionChoice(NamedTuple):
    """What was chosen of the webhook; no port is no webhook."""

    port: int | None
    cert: Path | None
    key: Path | None
    secret: str | None
    webhook: str | None
    names: str
    cert_days: float
    client_ca: Path | None
    on_error: str
    timeout_s: float


def admission_options(command: Command) -> Command:
    """`--admission-port` and what belongs to it, given to the command as `admission`."""

    @wraps(command)
    def gathered(*args: Any, **given: Any) -> Any:
        taken = {name: given.pop(f"admission_{name}") for name in AdmissionChoice._fields}
        return command(*args, admission=AdmissionChoice(**taken), **given)

    options = (
        click.option(
            "--admission-port",
            type=click.IntRange(0, 65_535),
            envvar=f"{_PREFIX}_PORT",
            help="Port on which the Kubernetes admission webhook is served over HTTPS; 0 is any free one. "
            f"[env: {_PREFIX}_PORT; default: none]",
        ),
        click.option(
            "--admission-cert",
            type=_FILE,
            envvar=f"{_PREFIX}_CERT",
            help="PEM file of the webhook's certificate, looked at anew every 10 s.",
        ),
        click.option("--admission-key", type=_FILE, envvar=f"{_PREFIX}_KEY", help="PEM file of its key."),
        click.option(
            "--admission-secret",
            metavar="NAMESPACE/NAME",
            envvar=f"{_PREFIX}_SECRET",
            help="Secret in which the webhook keeps a certificate of its own, and renews it.",
        ),
        click.option(
            "--admission-webhook",
            metavar="NAME",
            envvar=f"{_PREFIX}_WEBHOOK",
            help="ValidatingWebhookConfiguration that is told whom to believe.",
        ),
        click.option(
            "--admission-names",
            envvar=f"{_PREFIX}_NAMES",
            default="",
            help="Names by which the API server calls the webhook, parted by commas: SERVICE.NAMESPACE.svc.",
        ),
        click.option(
            "--admission-cert-days",
            type=click.FloatRange(1, 825),
            envvar=f"{_PREFIX}_CERT_DAYS",
            default=90.0,
            show_default=True,
            help="Days for which such a certificate is valid; it is renewed after two thirds of them.",
        ),
        click.option(
            "--admission-client-ca",
            type=_FILE,
            envvar=f"{_PREFIX}_CLIENT_CA",
            help="PEM file of an authority; only API servers with a certificate of it are let in.",
        ),
        click.option(
            "--admission-on-error",
            type=click.Choice(["refuse", "admit"]),
            envvar=f"{_PREFIX}_ON_ERROR",
            default="refuse",
            show_default=True,
            help="What becomes of a workload whose models cannot be looked up.",
        ),
        click.option(
            "--admission-timeout",
            "admission_timeout_s",
            type=click.FloatRange(0.1, 29),
            envvar=f"{_PREFIX}_TIMEOUT",
            default=3.0,
            show_default=True,
            help="Seconds that a look-up may take; keep it below the webhook's timeoutSeconds.",
        ),
    )
    decorated: Any = gathered
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def with_admission(beside: Beside, choice: AdmissionChoice, host: str, grace_s: float) -> Beside:
    """What serves beside gRPC, and the webhook where it is asked for."""
    if choice.port is None:
        return beside
    try:
        from contextlib import AsyncExitStack, asynccontextmanager

        from proctor.gateway.admission.answer import OnError
        from proctor.gateway.admission.desk import Terms
        from proctor.gateway.admission.server import AdmissionOptions, serving_admission
        from proctor.runtime.grpc.serving import Address
    except ModuleNotFoundError as error:
        raise BadInputError(f"the admission webhook needs {error.name}: pip install 'proctor[gateway]'") from None
    options = AdmissionOptions(
        Address(host, choice.port),
        _certificates(choice),
        Terms(OnError(choice.on_error), choice.timeout_s),
        choice.client_ca,
        grace_s,
    )

    def ready(bound: Address) -> None:
        say(f"the admission webhook listens on https://{bound}/admission", err=True)

    @asynccontextmanager
    async def both(front: Any) -> Any:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(beside(front))
            await stack.enter_async_context(serving_admission(front, options, ready))
            yield

    return both


def _certificates(choice: AdmissionChoice) -> CertificateSource:
    from datetime import timedelta

    from proctor.gateway.admission.certificates.keeper import KeptCertificate, Places
    from proctor.gateway.admission.certificates.rotation import SETTLES_IN
    from proctor.gateway.admission.certificates.rotation import Terms as CertificateTerms
    from proctor.gateway.admission.certificates.source import FilePair
    from proctor.runtime.kubernetes.objects import KubernetesObjects, object_name

    if choice.cert is not None and choice.key is not None and choice.secret is None:
        return FilePair(choice.cert, choice.key)
    names = tuple(name for name in map(str.strip, choice.names.split(",")) if name)
    namespace, slash, secret = (choice.secret or "").partition("/")
    if choice.cert or choice.key or not (namespace and slash and secret and choice.webhook and names):
        raise BadInputError(
            "--admission-port needs a certificate, because the API server speaks TLS: give --admission-cert and "
            "--admission-key, or --admission-secret NAMESPACE/NAME with --admission-webhook and --admission-names"
        )
    terms = CertificateTerms(names, timedelta(days=choice.cert_days), SETTLES_IN)
    places = Places(object_name(namespace), object_name(secret), object_name(choice.webhook or ""))
    return KeptCertificate(KubernetesObjects.in_cluster(), places, terms)
