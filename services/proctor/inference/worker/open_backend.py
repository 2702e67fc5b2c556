"""Which backend an endpoint needs. A backend's packages are loaded only when an endpoint needs it."""

from __future__ import annotations

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError
from proctor.inference.worker.backend import Backend, Server
from proctor.inference.worker.window import MAX_REQUESTS, Window
from proctor.runtime.settings import Settings


def open_backend(spec: EndpointSpec, settings: Settings) -> Backend:
    """The backend that speaks to an endpoint, over all of its replicas. Connects when first asked.

    Raises:
        BadInputError: the URL does not suit the backend, or a model that has no server is to have several.
        EndpointError: the packages that the backend needs are not installed.
    """
    if not spec.replicas and spec.discovery is None:
        return _server(spec) or _in_process(spec, settings)
    if spec.backend == "in_process":
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
    window = Window(spec.max_in_flight or MAX_REQUESTS)
    try:
        if spec.backend == "triton":
            from proctor.inference.triton.backend import TritonBackend

            return TritonBackend(spec, window=window)
        if spec.backend == "openai":
            from proctor.inference.http.openai import OpenAIBackend

            return OpenAIBackend(spec, window=window)
        if spec.backend == "infer":
            from proctor.inference.http.infer import InferBackend

            return InferBackend(spec, window=window)
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    return None


def _in_process(spec: EndpointSpec, settings: Settings) -> Backend:
    try:
        from proctor.inference.reference.in_process import InProcessBackend
    except ModuleNotFoundError as error:
        raise _missing(spec, error) from error
    return InProcessBackend(spec, settings)


def _missing(spec: EndpointSpec, error: ModuleNotFoundError) -> EndpointError:
    extra = "triton" if spec.backend == "triton" else "reference"
    return EndpointError(
        f"this worker cannot speak to a {spec.backend} endpoint, because the package {error.name!r} is missing; "
        f"install proctor[{extra}]"
    )
