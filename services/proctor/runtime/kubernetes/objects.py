"""Single objects of the Kubernetes API that are there already, by their names: read, and written where nobody else did.

With plain HTTP: the package `kubernetes` takes seconds to import and 60 MiB of each gateway, for three calls. What is
needed may be granted by name (`resourceNames`): nothing is listed, watched, made or deleted.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import httpx

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.host import in_url
from proctor.domain.problems import quoted, visible

#: Where a pod finds who it is.
SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: An object has at most 3 MiB.
MAX_ANSWER_BYTES: Final = 4 << 20
_TIMEOUT_S: Final = 10.0
_MERGE_PATCH: Final = "application/merge-patch+json"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)


class KubernetesError(ProctorError):
    """The API server does not answer, or does not let it be done."""


class ChangedMeanwhileError(KubernetesError):
    """Somebody else has written the object since it was read."""


class KubernetesObjects:
    """The API server, for who has a token or a certificate.

    Args:
        url: of the API server.
        tls: whom is believed, and the client's certificate, where it has one.
        token: file of a bearer token, which is read each time because it changes; None shows none.
    """

    def __init__(self, url: str, tls: ssl.SSLContext, token: Path | None = None) -> None:
        self._client = httpx.Client(base_url=url, verify=tls, timeout=_TIMEOUT_S, trust_env=False)
        self._token = token

    @classmethod
    def in_cluster(cls, environ: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT) -> Self:
        """As the service account of this pod.

        Raises:
            BadInputError: this is no pod, or one without a service account's token.
        """
        host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "443")
        try:
            tls = ssl.create_default_context(cafile=str(account / "ca.crt"))
        except (OSError, ssl.SSLError):
            host = ""
        if not host:
            raise BadInputError(
                "what is kept in Kubernetes needs a pod with its service account's token "
                "(automountServiceAccountToken): run it in the cluster"
            )
        return cls(f"https://{in_url(host)}:{port}", tls, account / "token")

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def get(self, path: str) -> dict[str, Any]:
        """An object.

        Args:
            path: of the API, e.g. `/api/v1/namespaces/a/secrets/b`.

        Raises:
            KubernetesError: there is none, or it is not given.
        """
        return self._ask("GET", path, None, "application/json")

    def merge(self, path: str, change: Mapping[str, Any], *, version: str) -> dict[str, Any]:
        """Change an object by a JSON merge patch, if it is still as it was read; as it is then.

        Args:
            path: as in `get`.
            change: what is to be otherwise.
            version: the `resourceVersion` that was read.

        Raises:
            ChangedMeanwhileError: it was written since.
            KubernetesError: as in `get`.
        """
        metadata = {**change.get("metadata", {}), "resourceVersion": version}
        return self._ask("PATCH", path, {**change, "metadata": metadata}, _MERGE_PATCH)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
        try:
            headers = {"content-type": kind, "accept": "application/json"}
            if self._token is not None:
                headers["authorization"] = f"Bearer {self._token.read_text('ascii').strip()}"
            content = None if body is None else json.dumps(body).encode()
            with self._client.stream(method, path, content=content, headers=headers) as response:
                answer = bytearray()
                for piece in response.iter_bytes():
                    answer += piece
                    if len(answer) > MAX_ANSWER_BYTES:
                        raise KubernetesError(f"{path}: the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
                status = response.status_code
            plain = json.loads(bytes(answer))
        except (httpx.HTTPError, OSError, ValueError, RecursionError) as error:
            words = visible(" ".join(str(error).split())[:200])
            raise KubernetesError(f"{path}: the API server does not answer ({type(error).__name__}: {words})") from None
        if not isinstance(plain, dict):
            raise KubernetesError(f"{path}: the API server's answer is no object")
        if status == HTTPStatus.OK:
            return plain
        said = visible(" ".join(str(plain.get("message", "")).split())[:300])
        if status == HTTPStatus.CONFLICT:
            raise ChangedMeanwhileError(f"{path}: {said}")
        raise KubernetesError(f"{path}: the API server says {status}: {said}")


def object_name(text: str) -> str:
    """A name of an object or namespace, which can stand in a path.

    Raises:
        BadInputError: it is none.
    """
    if not _NAME.fullmatch(text) or ".." in text:
        raise BadInputError(f"{quoted(text)} is no name of a Kubernetes object: small letters, digits, '-' and '.'")
    return text


def version_of(thing: Mapping[str, Any]) -> str:
    """The `resourceVersion` of an object.

    Raises:
        KubernetesError: it has none.
    """
    found = (thing.get("metadata") or {}).get("resourceVersion")
    if not isinstance(found, str):
        raise KubernetesError("an object of the API server has no resourceVersion")
    return found
