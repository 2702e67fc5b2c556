"""Which backend an endpoint needs. A backend's packages are loaded only when an endpoint needs it."""

from __future__ import annotations

from typing import Any, Final

from proctor.domain.backends import BACKENDS
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError, PluginError
from proctor.domain.log_origin import LOG_BACKEND
from proctor.inference.worker.backend import Backend, Server
from proctor.inference.worker.window import MAX_REQUESTS, Window
from proctor.runtime.settings import Settings

#: The one backend that has no server.
IN_PROCESS: Final = "in_process"
_CONTRACT: Final = ("probe", "complete", "session", "close")


def open_backend(spec: EndpointSpec, settings: Settings) -> Backend:
    """The backend that speaks to an endpoint, over all of its replicas. Connects when first asked.

    Raises:
        BadInputError: there is no such backend here, the URL does not suit it, or a model that has no server is to
            have several.
        EndpointError: the packages that the backend needs are not installed.
    """
    if spec.backend == LOG_BACKEND:
        # Before the registry is looked into: no plug-in of that name may stand in for what was checked when it was
        # taken in.
        from proctor.inference.logged import LogBackend

        return LogBackend(spec, settings)
    if not spec.replicas and spec.discovery is None:
        return _server(spec) or _in_process(spec, settings)
    if spec.backend == IN_PROCESS:
        raise BadInputError(f"a model in process has no replicas; remove them from the endpoint {spec.url!r}")
    from proctor.inference.balancing.balanced import BalancedBackend

    return BalancedBackend(spec, open_server)


def open_server(spec: EndpointSpec) -> Server:
    """The backend of one server, which can be asked trial by trial.

    Raises:
        BadInputError: the URL does not suit the backend.
        EndpointError: the packages that the backend needs are not installed.
    """
    server = _server(spec)
    assert server is not None, "a model in process has no server"
    return server


def _server(spec: EndpointSpec) -> Server | None:
    """None where the model runs in this process."""
    if spec.backend == IN_PROCESS:
        return None
    try:
        opened: Server = server_class(spec.backend)(spec, window=Window(spec.max_in_flight or MAX_REQUESTS))
    except PluginError as error:
        raise PluginError(f"the inference worker cannot ask {spec.url}: {error.fault}", error.mend) from error
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    return opened


def server_class(name: str) -> type[Any]:
    """The class of a backend that has a server, Proctor's own or a plug-in's.

    Raises:
        PluginError: there is no backend of this name here, or its plug-in does not bring what it should.
        ModuleNotFoundError: the packages that one of Proctor's own needs are not installed.
    """
    found = BACKENDS.get(name)
    missing = [part for part in _CONTRACT if not hasattr(found, part)]
    if missing:
        raise PluginError(
            f"the backend {name!r} of {BACKENDS.origin(name)} has no {', '.join(missing)}",
            "have it keep the contract of proctor.inference.worker.backend.Server",
        )
    return found


def _in_process(spec: EndpointSpec, settings: Settings) -> Backend:
    try:
        kind = BACKENDS.get(spec.backend)
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    opened: Backend = kind(spec, settings)
    return opened


def _missing(spec: EndpointSpec, error: ModuleNotFoundError) -> EndpointError:
    extra = "triton" if spec.backend == "triton" else "reference"
    origin = BACKENDS.origin(spec.backend)
    return EndpointError(
        f"this worker cannot speak to a {spec.backend} endpoint, because the package {error.name!r} is missing; "
        f"install {f'proctor[{extra}]' if origin is None else f'what {origin} needs'}"
    )
