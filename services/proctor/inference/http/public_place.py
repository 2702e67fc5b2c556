"""Keeping a worker from being sent to a private address by a URL that no operator named.

A name is looked up and every address that it has is checked, at the moment of connecting: what a name had when the
suite was accepted may be another address by now (DNS rebinding). The connection then goes to a checked address, or its
peer is checked again before a byte is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.host import is_public
from proctor.domain.url import Place
from proctor.inference.look_up import addresses_of
from proctor.runtime.triton_channel import TritonAddress


class Target(NamedTuple):
    """Where a gRPC channel connects to, and the options that keep the name for what is not the address."""

    target: str
    options: tuple[tuple[str, str | int], ...] = ()


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
        addresses = await addresses_of(host, port)
    except OSError as error:
        raise EndpointError(f"the host {host!r} has no address: {error}") from None
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


async def place_of(address: TritonAddress, server_name: str | None, *, public_only: bool) -> Target:
    """Where to connect to for an address: itself, or the checked addresses that its name has now.

    Args:
        address: the server's.
        server_name: its name in the certificate where that is not the address's host.
        public_only: whether every address must be public.

    Raises:
        EndpointError: only public addresses are allowed, and one of them is not.
    """
    named: tuple[tuple[str, str | int], ...] = ()
    if address.secure and (public_only or server_name is not None):
        name = server_name or address.host
        named = (("grpc.ssl_target_name_override", name), ("grpc.default_authority", name))
    if not public_only:
        return Target(address.target, named)
    addresses = await public_addresses(address.host, address.port)
    four = [one for one in addresses if ":" not in one]
    # gRPC's address lists are of one family.
    listed = ",".join(Place(one, address.port).text for one in four or addresses)
    # A proxy would look the name up again.
    return Target(f"{'ipv4' if four else 'ipv6'}:{listed}", (*named, ("grpc.enable_http_proxy", 0)))


def _check(host: str, address: str) -> None:
    if not is_public(address):
        raise EndpointError(
            f"the host {host!r} is at {address}, which is not a public address; a private endpoint must be named by "
            "the operator in the worker's configuration"
        )
