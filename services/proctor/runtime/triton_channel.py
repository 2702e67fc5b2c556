"""Where a Triton server is, as a URL names it, and the settings of a gRPC channel to it. Imports no gRPC."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.endpoint_url import OddUrlError, endpoint_url
from proctor.domain.host import is_loopback
from proctor.domain.url import UNIX, Place


class TritonAddress(NamedTuple):
    """A server's place: gRPC's target, whether to encrypt, whether it is this machine, and the path after it."""

    target: str
    secure: bool
    loopback: bool
    path: str
    """Without a slash at its end."""
    host: str = ""
    """Without brackets; empty for a socket."""
    port: int = 0

    def channel_options(self, *, max_receive_bytes: int) -> list[tuple[str, int]]:
        """Options of a channel that sends requests of any size and takes answers of up to `max_receive_bytes`."""
        return [
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", max_receive_bytes),
            # Identity alone: a compressed message has no size before it is unpacked.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            # gRPC's default backs off for up to two minutes, long after a restarted server is back.
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.enable_http_proxy", 0 if self.loopback else 1),
        ]


def triton_address(url: str) -> TritonAddress:
    """Read grpc://host:8001/path or grpcs://host:8001/path; the port and the path may be left out.

    Or unix:///path/of/socket, which is of this machine, needs no encryption, and has no path beside that.

    Raises:
        ValueError: the URL is none of these. It has no message for people: only the caller knows what the URL is of.
    """
    try:
        place = endpoint_url(url)
    except OddUrlError:
        raise ValueError(url) from None
    if place.scheme == UNIX:
        return TritonAddress(f"unix:{place.path}", secure=False, loopback=True, path="")
    if place.scheme not in ("grpc", "grpcs"):
        raise ValueError(url)
    return TritonAddress(
        Place(place.host, place.port).text,
        place.scheme == "grpcs",
        is_loopback(place.host),
        place.path,
        place.host,
        place.port or 0,
    )
