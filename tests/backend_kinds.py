"""The backends that one suite holds to one contract, each with a server that misbehaves as its prompts say."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.domain.endpoint import EndpointSpec, Replica
from proctor.domain.suite import Backend
from tests.forwarder import Forwarder
from tests.misbehaving_triton import DECOUPLED, PLAIN, TENSORRT_LLM
from tests.misbehaviour import Stage

MODEL = "m"
VERSION = "sha256:" + "ab" * 32


@dataclass(frozen=True)
class Kind:
    """A backend and its server, and what their protocol can report."""

    name: str
    backend: Backend
    reports_finish: bool = True
    reports_counts: bool = True
    reports_version: bool = True
    served_name: str = MODEL
    replicas: tuple[str, ...] = ()
    """Hosts by which the server is known, where it stands for several."""


KINDS = [
    Kind("infer", "infer", reports_finish=False, reports_counts=False, reports_version=False),
    Kind("infer-with-all-members", "infer"),
    Kind("openai", "openai", reports_version=False),
    Kind("triton-plain", "triton", served_name=PLAIN),
    Kind("triton-decoupled", "triton", served_name=DECOUPLED),
    # Tells a cut answer by its length, and nothing of one that was not.
    Kind("triton-tensorrt-llm", "triton", served_name=TENSORRT_LLM),
    Kind("openai-of-two-replicas", "openai", reports_version=False, replicas=("127.0.0.1", "localhost")),
    Kind("triton-of-two-replicas", "triton", served_name=DECOUPLED, replicas=("127.0.0.1", "localhost")),
]


@dataclass
class Server:
    """A server that misbehaves on demand, behind a forwarder."""

    kind: Kind
    stage: Stage
    forwarder: Forwarder

    @property
    def url(self) -> str:
        """The endpoint's URL, on the forwarder."""
        scheme = "grpc" if self.kind.backend == "triton" else "http"
        return f"{scheme}://127.0.0.1:{self.forwarder.port}"

    def spec(self, *, version: str | None = VERSION, name: str | None = None, port: int | None = None) -> EndpointSpec:
        """The endpoint, pinned to the version that it serves unless another is asked for."""
        url = self.url if port is None else f"{self.url.rpartition(':')[0]}:{port}"
        served = name or self.kind.served_name
        return EndpointSpec(
            backend=self.kind.backend,
            url=url,
            served_name=served,
            model_version=version,
            replicas=tuple(Replica(url=url.replace("127.0.0.1", host)) for host in self.kind.replicas),
        )
