"""Where an HTTP endpoint is: its URL taken apart, and never printed with what may be a secret."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from proctor.domain.errors import BadInputError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_USER_INFO = re.compile(r"//[^/]*@")


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
        BadInputError: it is another kind of URL, or holds what may be a key: user information, a query, a fragment.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in ("http", "https") or parts.username is not None:
        raise _refusal(url, example)
    if parts.query or parts.fragment or any(character.isspace() for character in url):
        raise _refusal(url, example)
    known_as = name or host
    bracketed = f"[{known_as}]" if ":" in known_as else known_as
    return HttpAddress(
        url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}",
        host=bracketed if port is None else f"{bracketed}:{port}",
        encrypted=parts.scheme == "https",
        loopback=host in LOOPBACK,
    )


def _refusal(url: str, example: str) -> BadInputError:
    shown = _USER_INFO.sub("//…@", re.split(r"[?#]", url, maxsplit=1)[0])[:200]
    return BadInputError(
        f"the endpoint {shown!r} is not a URL like {example} without user name, query or fragment (keys go in the "
        "environment)"
    )
