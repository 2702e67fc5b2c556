"""The webhook's certificate in a Secret, and those who are to believe it in the webhook's configuration.

Every replica looks, and whoever is first does what is to be done: each write says which version it is a change of, so
of several that write at once one does, and the others look again. No leader is needed, and none is waited for.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from proctor.gateway.admission.certificates.rotation import Kept, Terms, step
from proctor.gateway.admission.certificates.source import Pair
from proctor.runtime.kubernetes.objects import (
    ChangedMeanwhileError,
    KubernetesError,
    KubernetesObjects,
    version_of,
)

logger = logging.getLogger(__name__)

_ROUNDS: Final = 10


class Places(NamedTuple):
    """Where it is kept."""

    namespace: str
    secret: str
    configuration: str
    """Name of the ValidatingWebhookConfiguration."""

    @property
    def secret_path(self) -> str:
        """Of the API."""
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.secret}"

    @property
    def configuration_path(self) -> str:
        """Of the API."""
        return f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{self.configuration}"


class KeptCertificate:
    """A `CertificateSource` that renews itself.

    Args:
        objects: the API server.
        places: where it is kept. Both objects are there already: the chart makes them.
        terms: for whom, and how one follows another.
        every_s: between two looks.
        clock: the time.
    """

    def __init__(
        self,
        objects: KubernetesObjects,
        places: Places,
        terms: Terms,
        *,
        every_s: float = 10.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._places = places
        self._terms = terms
        self._clock = clock
        self.every_s = every_s

    def pair(self) -> Pair:
        """Do what is to be done, and give what is to be served.

        Raises:
            KubernetesError: the API server does not answer, or does not let it be done.
        """
        for _ in range(_ROUNDS):
            try:
                return self._pair()
            except ChangedMeanwhileError:
                continue
        raise KubernetesError(f"{self._places.secret_path} is written by others all the time")

    def _pair(self) -> Pair:
        secret = self._objects.get(self._places.secret_path)
        configuration = self._objects.get(self._places.configuration_path)
        kept = _kept(secret)
        wanted = step(kept, _believed(configuration), self._terms, self._clock())
        if wanted != kept:
            change = {"data": {name: _text(value) for name, value in wanted.data().items()}}
            self._objects.merge(self._places.secret_path, change, version=version_of(secret))
            if wanted.next is not None and kept.next is None:
                logger.info("the admission webhook has a new certificate, which is served once it is believed")
        self._publish(configuration, wanted.bundle)
        assert wanted.served is not None
        return Pair(wanted.served.certificate, wanted.served.key)

    def _publish(self, configuration: dict[str, Any], bundle: bytes) -> None:
        webhooks = configuration.get("webhooks") or []
        wanted = base64.b64encode(bundle).decode()
        changed = [{**one, "clientConfig": {**(one.get("clientConfig") or {}), "caBundle": wanted}} for one in webhooks]
        if changed != webhooks:
            # A merge patch replaces the list as a whole: the version holds off whoever changed another part of it.
            version = version_of(configuration)
            self._objects.merge(self._places.configuration_path, {"webhooks": changed}, version=version)
            logger.info("the authorities of the admission webhook stand in %s", self._places.configuration)


def _kept(secret: dict[str, Any]) -> Kept:
    data = secret.get("data") or {}
    return Kept.of({name: _bytes(value) for name, value in data.items()})


def _believed(configuration: dict[str, Any]) -> bytes:
    """The bundle that every webhook of the configuration has; empty where one has another."""
    bundles = {(one.get("clientConfig") or {}).get("caBundle", "") for one in configuration.get("webhooks") or []}
    return _bytes(bundles.pop()) if len(bundles) == 1 else b""


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


def _text(value: bytes) -> str | None:
    """As a merge patch has it, which takes away what is null."""
    return base64.b64encode(value).decode() if value else None
