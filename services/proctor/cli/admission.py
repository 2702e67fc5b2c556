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
    from proctor.gateway.admission.certificates.source import FilePair

    if choice.cert is None or choice.key is None:
        raise BadInputError("--admission-port needs --admission-cert and --admission-key: the API server speaks TLS")
    return FilePair(choice.cert, choice.key)
