"""Replicas by DNS: every address of a name."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from proctor.domain.endpoint import DnsDiscovery, Replica
from proctor.inference.balancing.discovery.found import Found

LookUp = Callable[[str], Awaitable[Sequence[str]]]

#: A resolver that hangs must not keep the replicas from ever being looked up again.
_TIMEOUT_S: Final = 10.0


class DnsNames:
    """Looks a name up every so often. When it cannot, or the name has no address, what was known stays."""

    def __init__(self, settings: DnsDiscovery, *, look_up: LookUp | None = None) -> None:
        """
        Args:
            settings: the URL whose host is looked up, and how often.
            look_up: the addresses of a host; by the system's resolver where None. Raises OSError.
        """
        self._settings = settings
        self._look_up = look_up or addresses_of

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        """See `Discovery.watch`."""
        known: list[Found] = []
        host = urlsplit(self._settings.url).hostname or ""
        while True:
            try:
                async with asyncio.timeout(_TIMEOUT_S):
                    addresses = await self._look_up(host)
            except TimeoutError:
                missed(f"{host} was not looked up within {_TIMEOUT_S:.0f} s")
            except (OSError, UnicodeError) as error:
                missed(f"{host} has no address: {error}")
            else:
                usable = sorted({one for one in addresses if is_address(one)})
                now = [Found(Replica(url=with_host(self._settings.url, one)), host) for one in usable]
                if now and now != known:
                    known = now
                    found(known)
            await asyncio.sleep(self._settings.refresh_s)


async def addresses_of(host: str) -> Sequence[str]:
    """The addresses that a host has now. Raises OSError where it has none."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


def with_host(url: str, address: str) -> str:
    """A URL with an address in its host's place; an IPv6 address in brackets."""
    parts = urlsplit(url)
    port = "" if parts.port is None else f":{parts.port}"
    return parts._replace(netloc=in_url(address) + port).geturl()


def is_address(text: str) -> bool:
    """Whether it is an IP address that any machine understands: one with a zone is another on each."""
    try:
        return getattr(ipaddress.ip_address(text), "scope_id", None) is None
    except ValueError:
        return False


def in_url(address: str) -> str:
    """An address as a URL has it."""
    return f"[{address}]" if ":" in address else address
