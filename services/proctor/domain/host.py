"""Hosts: which is this machine, which is of the public internet, and how a URL writes an address.

What a secret may be sent to and what a suite may have asked hang on these answers, so each is given here alone.
"""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Where servers of this machine listen that nobody else is to reach.
LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_NAME: Final = "localhost"
#: Public by their number alone: Azure's machine agent, and IETF's own block, in which Oracle's metadata service is.
_INTERNAL: Final = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
#: IPv4 addresses behind a NAT64 gateway (RFC 6052, section 2.1): the last 32 bits are the address.
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


def address_of(host: str) -> Address | None:
    """The host as an address; None where it is a name. An IPv6 address may stand in brackets."""
    try:
        return ipaddress.ip_address(unbracketed(host))
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone: the name `localhost`, or an address of 127.0.0.0/8 or ::1."""
    address = address_of(host)
    return host == _LOOPBACK_NAME if address is None else address.is_loopback


def is_same_loopback(one: str, other: str) -> bool:
    """Whether two hosts of this machine may be one: its addresses are not, and its name stands for either family's."""
    hosts = unbracketed(one), unbracketed(other)
    return all(map(is_loopback, hosts)) and (hosts[0] == hosts[1] or _LOOPBACK_NAME in hosts)


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet: not private, loopback, link-local, metadata, multicast.

    An IPv6 address that carries an IPv4 address (mapped, 6to4, Teredo, NAT64) is as public as that.
    """
    parsed = address_of(address)
    return parsed is not None and all(
        one.is_global
        and not one.is_multicast
        and not one.is_reserved
        and not any(one in network for network in _INTERNAL)
        for one in _carried(parsed)
    )


def is_address(text: str) -> bool:
    """Whether it is an IP address that any machine understands: one with a zone is another on each."""
    try:
        return getattr(ipaddress.ip_address(text), "scope_id", None) is None
    except ValueError:
        return False


def in_url(host: str) -> str:
    """A host as a URL has it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def unbracketed(host: str) -> str:
    """A host without the brackets that an IPv6 address has in a URL."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _carried(address: Address) -> list[Address]:
    """The address and the IPv4 addresses that it carries."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    carried: list[Address] = [address]
    if address.sixtofour is not None:
        carried.append(address.sixtofour)
    if address.teredo is not None:
        carried.extend(address.teredo)
    return carried
