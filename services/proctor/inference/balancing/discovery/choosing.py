"""How the replicas of an endpoint are found: as its specification says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proctor.domain.endpoint import DnsDiscovery, EndpointSpec, Replica
from proctor.inference.balancing.discovery.dns import DnsNames
from proctor.inference.balancing.discovery.endpoint_slices import EndpointSlices
from proctor.inference.balancing.discovery.found import Discovery, Found


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
        return DnsNames(spec.discovery)
    return EndpointSlices(spec.discovery)
