"""A replica as it was found, and what finds replicas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from proctor.domain.endpoint import EndpointSpec, Replica


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
