"""Where an HTTP endpoint is: its URL taken apart, and never printed with what may be a secret."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.host import is_loopback
from proctor.domain.url import Place, UrlFault, read_url, shown


class HttpAddress(NamedTuple):
    """An endpoint's URL without a trailing slash, its host as keys are kept by, and how private the way to it is."""

    url: str
    host: str
    """`host`, or `host:port` where the URL names a port; in lower case."""
    encrypted: bool
    loopback: bool

    @property
    def has_path(self) -> bool:
        """Whether the URL says more than the host."""
        return "/" in self.url.partition("://")[2]


def http_address(url: str, *, example: str, name: str | None = None) -> HttpAddress:
    """Take an endpoint's URL apart.

    Args:
        url: `http://` or `https://`, a host, perhaps a port and a path.
        example: a URL as it should be, for the message.
        name: the host as keys are kept by, where the URL has an address instead.

    Raises:
        BadInputError: it is another kind of URL, one that readers could take for different places, or holds what may
            be a key: user information, a query, a fragment.
    """
    try:
        found = read_url(url)
    except UrlFault:
        found = None
    if found is None or found.scheme not in ("http", "https"):
        raise BadInputError(
            f"the endpoint {shown(url)} is not a URL like {example} without user name, query or fragment (keys go in "
            "the environment)"
        )
    return HttpAddress(
        url=found.text.rstrip("/"),
        host=Place(name or found.host, found.port).text,
        encrypted=found.scheme == "https",
        loopback=is_loopback(found.host),
    )
