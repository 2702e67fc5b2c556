"""What the EndpointSlices of a service say together. Pure."""

from __future__ import annotations

from typing import Any

from proctor.domain.endpoint import EndpointSliceDiscovery, Replica
from proctor.domain.host import in_url, is_address
from proctor.inference.balancing.discovery.found import Found


class SliceTable:
    """The slices of a service by name: one service has several, and an address moves from one to another."""

    def __init__(self, settings: EndpointSliceDiscovery) -> None:
        self._settings = settings
        self._slices: dict[str, frozenset[str]] = {}

    def put(self, one: Any) -> None:
        """A slice is there, or is another: a V1EndpointSlice of the Kubernetes client."""
        self._slices[one.metadata.name] = frozenset(self._urls(one))

    def remove(self, one: Any) -> None:
        """A slice is gone."""
        self._slices.pop(one.metadata.name, None)

    def found(self) -> tuple[Found, ...]:
        """The replicas, each once, in the order of their URLs."""
        urls = sorted(set().union(*self._slices.values()))
        name = f"{self._settings.service}.{self._settings.namespace}.svc"
        return tuple(Found(Replica(url=url), name) for url in urls)

    def _urls(self, one: Any) -> list[str]:
        settings = self._settings
        port = next((port.port for port in one.ports or [] if (port.name or "") == settings.port), None)
        if port is None or one.address_type == "FQDN":
            return []
        return [
            f"{settings.scheme}://{in_url(address)}:{port}{settings.path}"
            for endpoint in one.endpoints or []
            if _is_ready(endpoint.conditions)
            for address in endpoint.addresses or []
            if is_address(address)
        ]


def _is_ready(conditions: Any) -> bool:
    """Whether new requests may go to an endpoint: unknown counts as ready, as the API has it."""
    return conditions is None or (conditions.ready is not False and not conditions.terminating)
