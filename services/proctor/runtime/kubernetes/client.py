"""A client of the API server, bounded in time: a pod's by its service account, else the one of the kubeconfig."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.problems import visible

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

#: To connect, and to be answered. Renewing a lease has to be tried more than once before it is lost.
TIMEOUT_S: Final = (2.0, 3.0)
CONFLICT: Final = 409
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
#: Of what a server says of itself, which may be a page of HTML.
SHOWN_CHARACTERS: Final = 200


class KubernetesError(ProctorError):
    """The API server refuses, or does not answer.

    `status` is its HTTP status; 0 where there was no answer.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def api_client() -> Iterator[ApiClient]:
    """A client while the block lasts. Nothing is asked yet.

    Raises:
        BadInputError: the package is missing, or nothing says where the server is.
    """
    try:
        # Five seconds of a processor and 64 MiB: only where somebody asks for it.
        from kubernetes import client, config
    except ModuleNotFoundError as error:
        raise BadInputError(
            f"Kubernetes cannot be asked, because the package {error.name!r} is missing: pip install "
            "'proctor[kubernetes]'"
        ) from error
    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)
    except config.ConfigException:
        try:
            # As it is set now: the package keeps what it was when it was imported.
            config.load_kube_config(os.environ.get("KUBECONFIG") or None, client_configuration=configuration)
        except (config.ConfigException, OSError) as error:
            raise BadInputError(
                "Kubernetes cannot be asked: this is no pod with a service account's token, and there is no "
                f"kubeconfig: {_shown(str(error))}"
            ) from error
    # Whoever asks tries again by himself, at his own pace.
    configuration.retries = 0
    with client.ApiClient(configuration) as api:
        yield api


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Make one kind of error of what a request may raise.

    Args:
        what: is asked for, for its message.

    Raises:
        KubernetesError: the server refuses, or does not answer.
    """
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ApiException as error:
        status = int(error.status or 0)
        raise KubernetesError(f"{what}: {status} {_shown(_message(error))}", status) from error
    except (HTTPError, OSError) as error:
        raise KubernetesError(f"{what}: no answer ({type(error).__name__})") from error


def _message(error: Any) -> str:
    """What a server gives as its reason: the message of a Status, where the body is one."""
    try:
        status = json.loads(error.body)
        return str(status["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason or "")


def _shown(text: str) -> str:
    return visible(" ".join(text.split()))[:SHOWN_CHARACTERS]
