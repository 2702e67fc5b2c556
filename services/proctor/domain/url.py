"""URLs, taken apart by one reader that refuses what two readers could read in two ways.

What a URL may be is decided from this reading, and a connection is opened by another reader (httpx, gRPC, the
system's resolver). So everything on which readers are known to differ is refused, instead of being mended:
backslashes, percent signs and dot segments in paths, hosts that are neither a name in ASCII nor an address in its
usual form.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

from proctor.domain.host import in_url
from proctor.domain.problems import quoted

#: A socket in the file system of this machine: no host stands in such a URL.
UNIX: Final = "unix"
_MAX_CHARACTERS: Final = 2048
_URL: Final = re.compile(r"([A-Za-z-]+)://([^/?#]*)([^?#]*)(.*)", re.ASCII | re.DOTALL)
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@]+)(?::([0-9]{1,5}))?", re.ASCII)
#: Labels of letters, digits, '-' and '_' (which names of containers have), without a dot at the end.
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*", re.ASCII)
#: Readers take a host whose last label is a number for an address: 127.1, 2130706433, 0x7f.1, 0177.0.0.1.
_ENDS_IN_A_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0x[0-9a-f]*)", re.ASCII)
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@-]+)*/?", re.ASCII)
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")


class UrlFault(ValueError):
    """What is wrong with a URL, and what to do. Repeats nothing of it: only the caller knows what it is of."""

    def __init__(self, fault: str, mend: str) -> None:
        self.fault = fault
        self.mend = mend
        super().__init__(f"{fault}; {mend}")


class Place(NamedTuple):
    """A host in lower case, an IPv6 address without its brackets; and the port, None where none is written."""

    host: str
    port: int | None

    @property
    def text(self) -> str:
        """As it stands in a URL."""
        return in_url(self.host) if self.port is None else f"{in_url(self.host)}:{self.port}"


class UrlParts(NamedTuple):
    """A URL in the parts that every reader finds in it; none of them is judged yet but by the methods."""

    scheme: str
    """In lower case."""
    user: str | None
    """What stands before an @: a name, and perhaps a password behind a colon. None without an @."""
    authority: str
    """Host and port as written."""
    path: str
    rest: str
    """Query and fragment with their marks."""

    @property
    def says_more(self) -> bool:
        """Whether it holds what may be a secret: a user name, a query or a fragment."""
        return bool(self.rest) or self.user is not None

    def place(self) -> Place:
        """The host and the port.

        Raises:
            UrlFault: there is none, or one that readers could take for another.
        """
        return read_place(self.authority)

    def credentials(self) -> tuple[str, str | None]:
        """User name and password as written; an empty name and None where there is none.

        Raises:
            UrlFault: readers could take them for a part of the place.
        """
        user, colon, password = (self.user or "").partition(":")
        if "\\" in user + password or not (user + password).isprintable():
            raise UrlFault("has a user name or password with a backslash or a control character", "write it as %xx")
        return user, password if colon else None

    def plain_path(self) -> str:
        """The path as written.

        Raises:
            UrlFault: readers could take it for another.
        """
        if not _PATH.fullmatch(self.path) or any(segment in (".", "..") for segment in self.path.split("/")):
            raise UrlFault(
                "has a path with '.', '..', '//', '%', a backslash or a space", "write the path that is meant"
            )
        return self.path


class Url(NamedTuple):
    """A URL that all readers take for the same place: nothing but a scheme, a host, perhaps a port and a path."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without its brackets. Empty where the path is a socket's."""
    port: int | None
    """As written; None where none is."""
    path: str
    """As written."""

    @property
    def text(self) -> str:
        """The URL again."""
        return f"{self.scheme}://{Place(self.host, self.port).text}{self.path}"


def read_url(text: str) -> Url:
    """Take a URL apart that says where something is and nothing more.

    Raises:
        UrlFault: it is no such URL, or one that readers could take for different places.
    """
    return url_of(parts_of(text))


def url_of(parts: UrlParts) -> Url:
    """See `read_url`; for a caller that judges the scheme first."""
    if parts.says_more:
        raise UrlFault("has a user name, a query or a fragment", "take it out; keys go in the environment")
    if parts.scheme == UNIX:
        if parts.authority or len(parts.path) < len("/x"):
            raise UrlFault("names no socket", "write its path behind three slashes, like unix:///run/triton")
        return Url(UNIX, "", None, parts.plain_path())
    if _AUTHORITY.fullmatch(parts.authority) is None:
        raise _no_place()
    path = parts.plain_path()
    return Url(parts.scheme, *parts.place(), path)


def parts_of(text: str, *, most_characters: int | None = _MAX_CHARACTERS) -> UrlParts:
    """Part a URL at the marks on which all readers agree. Judges nothing.

    Args:
        text: what may be a URL.
        most_characters: that it may have; None for any.

    Raises:
        UrlFault: it has no scheme and no `//`, or is too long.
    """
    found = _URL.fullmatch(text) if most_characters is None or len(text) <= most_characters else None
    if found is None:
        raise UrlFault("is no URL", "write one like grpc://host:8001 or https://host/v1")
    user, at, authority = found[2].rpartition("@")
    return UrlParts(found[1].lower(), user if at else None, authority, found[3], found[4])


def read_place(text: str, *, lowest_port: int = 1) -> Place:
    """Read `host` or `host:port`; an IPv6 host stands in brackets.

    Args:
        text: the two, as a URL has them.
        lowest_port: 0 where a server may be given any free one.

    Raises:
        UrlFault: it is of another form, or readers could take the host for another.
    """
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        raise _no_place()
    port = int(found[2]) if found[2] else None
    if port is not None and not lowest_port <= port <= 65535:
        raise UrlFault(f"has port {port}", f"a port is a number from {lowest_port} to 65535")
    return Place(_host(found[1].lower()), port)


def without_secrets(url: str) -> str:
    """The text with … for what may be a secret: user name, query and fragment."""
    # One expression for both would look for a "@" again behind each "//": in a text of many that takes minutes.
    host, last_at = url.find("//") + len("//"), url.rfind("@")
    query = _QUERY_OR_FRAGMENT.search(url)
    if len("//") <= host <= last_at and (query is None or host < query.start()):
        url = f"{url[:host]}…{url[last_at:]}"
        query = _QUERY_OR_FRAGMENT.search(url, host)
    return url if query is None else f"{url[: query.start()]}…"


def shown(url: str) -> str:
    """The URL as a message may repeat it: quoted, without user name, query and fragment."""
    return quoted(without_secrets(url))


def _no_place() -> UrlFault:
    return UrlFault("has no host, or one with a port that is no number", "write it like https://host:8443/v1")


def _host(written: str) -> str:
    if written.startswith("["):
        try:
            address = ipaddress.IPv6Address(written[1:-1])
        except ValueError:
            raise UrlFault("has a host that is no IPv6 address", "write it like http://[::1]:8000") from None
        if address.ipv4_mapped is not None:
            raise UrlFault("hides an IPv4 address in an IPv6 one", f"write {address.ipv4_mapped} for its host")
        return str(address)
    if _ENDS_IN_A_NUMBER.fullmatch(written):
        try:
            return str(ipaddress.IPv4Address(written))
        except ValueError:
            raise UrlFault(
                "has a host that some readers take for an address",
                "write an IPv4 address as four decimal numbers without leading zeros, e.g. 127.0.0.1",
            ) from None
    if not _NAME.fullmatch(written):
        raise UrlFault(
            "has a host that is no plain name",
            "a name is ASCII letters, digits, '-' and '_' between single dots (xn--… for others), and ends in none",
        )
    return written
