"""A model behind an endpoint: where its replicas are, and how requests are spread over them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from proctor.domain.backends import Backend
from proctor.domain.base import Frozen
from proctor.domain.canonical import short_id
from proctor.domain.chat_template import ChatTemplate
from proctor.domain.versions import added


class Balance(StrEnum):
    """How requests are spread over the replicas of an endpoint."""

    ROUND_ROBIN = "round_robin"
    """In turns, whatever they are worth."""
    WEIGHTED = "weighted"
    """By the weights that the operator gave them."""
    MEASURED = "measured"
    """By the throughput that each was seen to have."""
    LEAST_LOADED = "least_loaded"
    """To the one with the fewest requests before it, by Triton's own queue metrics where it has them."""


class Replica(Frozen):
    """One server of several that serve the same model."""

    url: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0.0, le=1e6)
    """Share of the requests beside the other replicas', for `Balance.WEIGHTED`."""
    metrics_url: str | None = None
    """Where a Triton server's Prometheus metrics are, for `Balance.LEAST_LOADED`."""


class DnsDiscovery(Frozen):
    """Every address that a DNS name has is a replica, e.g. of a headless service."""

    kind: Literal["dns"] = "dns"
    url: str = Field(min_length=1)
    """A URL whose host is looked up; each replica has it with an address in the host's place."""
    refresh_s: float = Field(default=10.0, ge=1.0, le=3600.0)


class EndpointSliceDiscovery(Frozen):
    """Every ready address of a Kubernetes service is a replica."""

    kind: Literal["endpoint_slices"] = "endpoint_slices"
    namespace: str = Field(min_length=1, max_length=63)
    service: str = Field(min_length=1, max_length=63)
    port: str = Field(min_length=1, max_length=15)
    """Name of the port, e.g. `grpc`."""
    scheme: Literal["grpc", "grpcs", "http", "https"] = "grpc"
    path: str = ""
    """Behind the address, e.g. `/v1`."""
    resync_s: float = Field(default=60.0, ge=1.0, le=3600.0)


Discovery = Annotated[DnsDiscovery | EndpointSliceDiscovery, Field(discriminator="kind")]


class EndpointSpec(Frozen):
    """A model behind an endpoint, resolved: what an inference worker needs to ask it."""

    backend: Backend
    url: str
    """Where it is; of several replicas the first, or what the discovery starts from."""
    served_name: str
    model_version: str | None
    """The pinned content hash, or a prefix of it; None where no version is pinned."""
    chat: bool = False
    replicas: tuple[Replica, ...] = Field(default=(), max_length=256)
    """The servers over which requests are spread; empty where there is only `url`."""
    balance: Balance = Balance.MEASURED
    discovery: Discovery | None = None
    """How replicas are found while the audit runs; None where they are listed, or there is only `url`."""
    max_in_flight: int | None = Field(default=None, ge=1, le=4096)
    """Requests in flight to a replica from one worker; None for the default."""
    public_only: bool = False
    """Whether every address that is connected to must be public: a URL that a suite brought and no operator named."""
    gets_keys: bool = False
    """Whether keys that are bound to no host go there: the operator named or covers it, or who sits at the terminal
    started the audit. Said by whoever resolved the endpoint, and never told from its URL."""

    chat_template: ChatTemplate | None = added(None, since=4)
    """With `chat`: what makes the message a text before it is sent, where the server takes text and no messages."""
    server_name: str | None = None
    """Its name in its certificate and among the API keys, where `url` has an address that was found for it."""

    @property
    def pool(self) -> str:
        """Name of the pool of servers that this is, whatever of them is asked: audits that ask the same share it."""
        return short_id([self.backend, self.url, self.served_name])
