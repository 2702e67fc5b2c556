"""The addresses that a host has now, by the system's resolver."""

from __future__ import annotations

import asyncio
import socket


async def addresses_of(host: str, port: int | None = None) -> list[str]:
    """The addresses of a host, each once. Raises OSError where it has none."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))
