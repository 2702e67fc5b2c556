"""An endpoint's URL, taken apart by one reader that refuses what two readers could read in two ways.

What a URL may be is decided from this reading, and a connection is opened by another reader (httpx, gRPC, the
system's resolver). So everything on which readers are known to differ is refused, instead of being mended: user names,
backslashes, percent signs, dot segments, hosts that are neither a name in ASCII nor an address in its usual form.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

from proctor.domain.backends import Backend
from proctor.domain.errors import BadInputError
from proctor.domain.problems import quoted

IN_PROCESS: Final = "in-process"
#: A socket in the file system of this machine; only an operator can name one.
UNIX: Final = "unix"
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
_MAX_CHARACTERS: Final = 2048
_URL: Final = re.compile(r"([A-Za-z-]+)://([^/?#]*)([^?#]*)(.*)", re.ASCII | re.DOTALL)
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@]+)(?::([0-9]{1,5}))?", re.ASCII)
#: Labels of letters, digits, '-' and '_' (which names of containers have), without a dot at the end.
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*", re.ASCII)
#: Readers take a host whose last label is a number for an address: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
_ENDS_IN_A_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)", re.ASCII)
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?", re.ASCII)
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port is None or _UNWRITTEN_PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{host}{'' if usual else f':{self.port}'}{self.path}"

    @property
    def address(self) -> Address | None:
        """The host as an address; None where it is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def is_local(self) -> bool:
        """Whether what is sent there stays on the machine: loopback, a socket, or the worker's own process."""
        if self.scheme in (IN_PROCESS, UNIX):
            return True
        address = self.address
        return self.host == "localhost" if address is None else address.is_loopback

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
    found = _URL.fullmatch(text) if len(text) <= _MAX_CHARACTERS else None
    if found is None:
        raise OddUrlError(text, "is no URL", "write one like grpc://host:8001 or https://host/v1")
    scheme, authority, path, rest = found[1].lower(), found[2], found[3], found[4]
    if scheme not in BACKENDS:
        raise OddUrlError(text, "has no known scheme", "write grpc, grpcs, http or https before ://")
    if rest or "@" in authority:
        raise OddUrlError(text, "has a user name, a query or a fragment", "take it out; keys go in the environment")
    parts = _AUTHORITY.fullmatch(authority)
    if scheme == UNIX and (authority or len(path) < 2):
        raise OddUrlError(text, "names no socket", "write its path behind three slashes, like unix:///run/triton")
    if parts is None and scheme != UNIX:
        raise OddUrlError(
            text, "has no host, or one with a port that is no number", "write it like https://host:8443/v1"
        )
    if not _PATH.fullmatch(path) or any(segment in (".", "..") for segment in path.split("/")):
        raise OddUrlError(
            text, "has a path with '.', '..', '//', '%', a backslash or a space", "write the path that is meant"
        )
    if parts is None:
        return EndpointUrl(scheme, "", None, path.rstrip("/"))
    port = int(parts[2]) if parts[2] else _DEFAULT_PORTS.get(scheme)
    if port is not None and not 1 <= port <= 65535:
        raise OddUrlError(text, f"has port {port}", "a port is a number from 1 to 65535")
    return EndpointUrl(scheme, _host(text, parts[1].lower()), port, path.rstrip("/"))


def backend_of(url: str) -> Backend:
    """How an endpoint is spoken to when nothing says it: by its scheme, and by the path `/infer` of the article.

    Raises:
        OddUrlError: as `endpoint_url` does.
    """
    parts = endpoint_url(url)
    if parts.scheme in ("http", "https") and parts.path.endswith("/infer"):
        return "infer"
    return BACKENDS[parts.scheme]


def shown(url: str) -> str:
    """The URL as a message may repeat it: quoted, without user name, query and fragment."""
    # One expression for both would look for a "@" again behind each "//": in a text of many that takes minutes.
    host, last_at = url.find("//") + len("//"), url.rfind("@")
    query = _QUERY_OR_FRAGMENT.search(url)
    if len("//") <= host <= last_at and (query is None or host < query.start()):
        url = f"{url[:host]}…{url[last_at:]}"
        query = _QUERY_OR_FRAGMENT.search(url, host)
    return quoted(url if query is None else f"{url[: query.start()]}…")


def _host(text: str, written: str) -> str:
    if written.startswith("["):
        try:
            address = ipaddress.IPv6Address(written[1:-1])
        except ValueError:
            raise OddUrlError(text, "has a host that is no IPv6 address", "write it like http://[::1]:8000") from None
        if address.ipv4_mapped is not None:
            raise OddUrlError(text, "hides an IPv4 address in an IPv6 one", f"write {address.ipv4_mapped} for its host")
        return str(address)
    if _ENDS_IN_A_NUMBER.fullmatch(written):
        try:
            return str(ipaddress.IPv4Address(written))
        except ValueError:
            raise OddUrlError(
                text,
                "has a host that some readers take for an address",
                "write an IPv4 address as four decimal numbers without leading zeros, e.g. 127.0.0.1",
            ) from None
    if not _NAME.fullmatch(written):
        raise OddUrlError(
            text,
            "has a host that is no plain name",
            "a name is ASCII letters, digits, '-' and '_' between single dots (xn--… for others), and ends in none",
        )
    return written
