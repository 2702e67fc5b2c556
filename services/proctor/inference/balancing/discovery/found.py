"""A replica as it was found, and how an endpoint's replicas are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from proctor.domain.endpoint import DnsDiscovery, EndpointSpec, Replica


class Found(NamedTuple):
    """A replica, and the name by which it is known where its URL has an address instead."""

    replica: Replica
    server_name: str | None = None

    @property
    def key(self) -> str:
        """What makes it another replica: one with another weight is opened anew."""
        return f"{self.replica.url} {self.replica.weight} {self.replica.metrics_url}"

    def spec_of(self, endpoint: EndpointSpec) -> EndpointSpec:
        """The endpoint as if this were its only server."""
        alone = {"url": self.replica.url, "replicas": (), "discovery": None}
        named = {} if self.server_name is None else {"server_name": self.server_name}
        return endpoint.model_copy(update=alone | named)


class Discovery(Protocol):
    """Finds replicas, until it is cancelled."""

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        """Call `found` with all replicas whenever they are others, and `missed` with the cause when it cannot look."""
        ...


class Listed:
    """The replicas that the operator listed, or the one URL."""

    def __init__(self, spec: EndpointSpec) -> None:
        self._found = [Found(replica) for replica in spec.replicas or (Replica(url=spec.url),)]

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        """See `Discovery.watch`: they stay as they are."""
        found(self._found)


def discovery_of(spec: EndpointSpec) -> Discovery:
    """How the replicas of an endpoint are found."""
    if spec.discovery is None:
        return Listed(spec)
    if isinstance(spec.discovery, DnsDiscovery):
        from proctor.inference.balancing.discovery.dns import DnsNames

        return DnsNames(spec.discovery)
    from proctor.inference.balancing.discovery.endpoint_slices import EndpointSlices

    return EndpointSlices(spec.discovery)
