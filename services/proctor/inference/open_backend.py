"""Which backend an endpoint needs. A backend's packages are loaded only when an endpoint needs it."""

from __future__ import annotations

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.inference.backend import Backend
from proctor.runtime.settings import Settings


def open_backend(spec: EndpointSpec, settings: Settings) -> Backend:
    """The backend that speaks to an endpoint. Connects when first asked.

    Raises:
        BadInputError: the URL does not suit the backend.
        EndpointError: the packages that the backend needs are not installed.
    """
    try:
        if spec.backend == "triton":
            from proctor.inference.triton import TritonBackend

            return TritonBackend(spec)
        if spec.backend == "openai":
            from proctor.inference.openai import OpenAIBackend

            return OpenAIBackend(spec)
        if spec.backend == "infer":
            from proctor.inference.infer import InferBackend

            return InferBackend(spec)
        from proctor.inference.in_process import InProcessBackend

        return InProcessBackend(spec, settings)
    except ModuleNotFoundError as error:
        extra = "triton" if spec.backend == "triton" else "reference"
        raise EndpointError(
            f"this worker cannot speak to a {spec.backend} endpoint, because the package {error.name!r} is missing; "
            f"install proctor[{extra}]"
        ) from error
