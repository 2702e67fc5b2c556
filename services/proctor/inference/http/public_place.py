"""Keeping a worker from being sent to a private address by a URL that no operator named.

A name is looked up and every address that it has is checked, at the moment of connecting: what a name had when the
suite was accepted may be another address by now (DNS rebinding). The connection then goes to a checked address, or its
peer is checked again before a byte is sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from proctor.domain.errors import BadInputError, EndpointError
from proctor.runtime.triton_channel import TritonAddress

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Public by their number alone: Azure's machine agent, and IETF's own block, in which Oracle's metadata service is.
_INTERNAL = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
#: IPv4 addresses behind a NAT64 gateway (RFC 6052, section 2.1): the last 32 bits are the address.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Place(NamedTuple):
    """Where a gRPC channel connects to, and the options that keep the name for what is not the address."""

    target: str
    options: tuple[tuple[str, str | int], ...] = ()


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet: not private, loopback, link-local, metadata, multicast.

    An IPv6 address that carries an IPv4 address (mapped, 6to4, Teredo, NAT64) is as public as that.
    """
    try:
        parsed: _Address = ipaddress.ip_address(address)
    except ValueError:
        return False
    return all(
        one.is_global
        and not one.is_multicast
        and not one.is_reserved
        and not any(one in network for network in _INTERNAL)
        for one in _carried(parsed)
    )


def check_encrypted(url: str, *, encrypted: bool) -> None:
    """Raises BadInputError: a URL that no operator named is not encrypted."""
    if not encrypted:
        raise BadInputError(
            f"the endpoint {url[:200]!r} is not encrypted; use https (or grpcs), or ask the operator to name the "
            "endpoint in the worker's configuration"
        )


async def public_addresses(host: str, port: int) -> list[str]:
    """The addresses that a name has now.

    Raises:
        EndpointError: one of them is not public, or it has none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise EndpointError(f"the host {host!r} has no address: {error}") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        _check(host, address)
    return addresses


def peer_check() -> Callable[[str, Any], Awaitable[None]]:
    """A trace function for httpx (the extension `trace`): checks addresses before connecting, and the peer after."""
    connecting = {"host": ""}

    async def trace(event: str, info: Any) -> None:
        if event == "connection.connect_tcp.started":
            connecting["host"] = info["host"]
            await public_addresses(info["host"], info["port"])
        elif event == "connection.connect_tcp.complete":
            stream = info["return_value"]
            peer = stream.get_extra_info("server_addr")
            try:
                _check(connecting["host"], str(peer[0]) if peer else "an unknown address")
            except EndpointError:
                await stream.aclose()
                raise

    return trace


async def place_of(address: TritonAddress, server_name: str | None, *, public_only: bool) -> Place:
    """Where to connect to for an address: itself, or the checked addresses that its name has now.

    Args:
        address: the server's.
        server_name: its name in the certificate where that is not the address's host.
        public_only: whether every address must be public.

    Raises:
        EndpointError: only public addresses are allowed, and one of them is not.
    """
    host, _, port = address.target.rpartition(":")
    named: tuple[tuple[str, str | int], ...] = ()
    if address.secure and (public_only or server_name is not None):
        name = server_name or host.strip("[]")
        named = (("grpc.ssl_target_name_override", name), ("grpc.default_authority", name))
    if not public_only:
        return Place(address.target, named)
    addresses = await public_addresses(host.strip("[]"), int(port))
    four = [one for one in addresses if ":" not in one]
    # gRPC's address lists are of one family.
    listed = ",".join(f"{one}:{port}" for one in four) or ",".join(f"[{one}]:{port}" for one in addresses)
    # A proxy would look the name up again.
    return Place(f"{'ipv4' if four else 'ipv6'}:{listed}", (*named, ("grpc.enable_http_proxy", 0)))


def _check(host: str, address: str) -> None:
    if not is_public(address):
        raise EndpointError(
            f"the host {host!r} is at {address}, which is not a public address; a private endpoint must be named by "
            "the operator in the worker's configuration"
        )


def _carried(address: _Address) -> list[_Address]:
    """The address and the IPv4 addresses that it carries."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    carried: list[_Address] = [address]
    if address.sixtofour is not None:
        carried.append(address.sixtofour)
    if address.teredo is not None:
        carried.extend(address.teredo)
    return carried
