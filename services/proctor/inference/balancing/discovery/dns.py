"""Replicas by DNS: every address of a name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from proctor.domain.endpoint import DnsDiscovery, Replica
from proctor.domain.host import is_address
from proctor.domain.url import read_url
from proctor.inference.balancing.discovery.found import Found
from proctor.inference.look_up import addresses_of

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
        host = read_url(self._settings.url).host
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


def with_host(url: str, address: str) -> str:
    """A URL with an address in its host's place; an IPv6 address in brackets."""
    return read_url(url)._replace(host=address).text
