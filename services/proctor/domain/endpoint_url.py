"""An endpoint's URL: which schemes there are, how each is spoken to, and whether two URLs are one place."""

from __future__ import annotations

from typing import Final, NamedTuple

from proctor.domain.backends import Backend
from proctor.domain.errors import BadInputError
from proctor.domain.host import Address, address_of, in_url, is_loopback
from proctor.domain.url import UNIX, UrlFault, parts_of, shown, url_of

IN_PROCESS: Final = "in-process"
#: URL scheme of an endpoint → how it is spoken to.
BACKENDS: Final[dict[str, Backend]] = {
    "grpc": "triton",
    "grpcs": "triton",
    "http": "openai",
    "https": "openai",
    IN_PROCESS: "in_process",
    UNIX: "triton",
}
ENCRYPTED: Final = ("https", "grpcs")
#: gRPC has no port of its own; 8001 is Triton's.
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "grpc": 8001, "grpcs": 8001}
#: Those that people leave out; Triton's is written by custom.
_UNWRITTEN_PORTS: Final = {"http": 80, "https": 443}


class OddUrlError(BadInputError):
    """A URL that cannot be an endpoint's: what is wrong with it, and what to do."""

    def __init__(self, url: str, fault: str, mend: str) -> None:
        self.fault = fault
        self.mend = mend
        super().__init__(f"the endpoint {shown(url)} {fault}; {mend}")


class EndpointUrl(NamedTuple):
    """An endpoint's URL in its parts. Equal places have equal parts, however they were written."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without its brackets."""
    port: int | None
    """The scheme's default where the URL names none; None in process."""
    path: str
    """Without a slash at its end; empty for the root."""

    @property
    def text(self) -> str:
        """The URL in one form for each place, so that suites that ask the same place share its pool."""
        if self.scheme == UNIX:
            return f"{UNIX}://{self.path}"
        usual = self.port is None or _UNWRITTEN_PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{in_url(self.host)}{'' if usual else f':{self.port}'}{self.path}"

    @property
    def address(self) -> Address | None:
        """The host as an address; None where it is a name."""
        return address_of(self.host)

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on the machine: loopback, a socket, or the worker's own process."""
        return self.scheme in (IN_PROCESS, UNIX) or is_loopback(self.host)

    def covers(self, other: EndpointUrl) -> bool:
        """Whether the other is this place, or a path below it."""
        same_server = self[:3] == other[:3]
        return same_server and (other.path == self.path or other.path.startswith(f"{self.path}/"))


def endpoint_url(text: str) -> EndpointUrl:
    """Take an endpoint's URL apart.

    Args:
        text: `scheme://host:port/path`; the scheme grpc, grpcs, http, https or in-process, port and path may be absent.
            Or `unix:///path`.

    Raises:
        OddUrlError: it is no such URL, or one that readers could take for different places. What may be a secret
            (user name, query, fragment) is not repeated.
    """
    try:
        parts = parts_of(text)
        if parts.scheme not in BACKENDS:
            raise UrlFault("has no known scheme", "write grpc, grpcs, http or https before ://")
        url = url_of(parts)
    except UrlFault as odd:
        raise OddUrlError(text, odd.fault, odd.mend) from None
    port = url.port or _DEFAULT_PORTS.get(url.scheme)
    return EndpointUrl(url.scheme, url.host, port, url.path.rstrip("/"))


def backend_of(url: str) -> Backend:
    """How an endpoint is spoken to when nothing says it: by its scheme, and by the path `/infer` of the article.

    Raises:
        OddUrlError: as `endpoint_url` does.
    """
    parts = endpoint_url(url)
    if parts.scheme in ("http", "https") and parts.path.endswith("/infer"):
        return "infer"
    return BACKENDS[parts.scheme]
