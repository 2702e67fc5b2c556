"""Where a Triton server is, as a URL names it, and the settings of a gRPC channel to it. Imports no gRPC."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit

_DEFAULT_PORT: Final = 8001
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class TritonAddress(NamedTuple):
    """A server's place: gRPC's target, whether to encrypt, whether it is this machine, and the path after it."""

    target: str
    secure: bool
    loopback: bool
    path: str

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
    parts = urlsplit(url)
    odd = parts.username is not None or parts.query or parts.fragment or any(mark.isspace() for mark in url)
    if parts.scheme == "unix" and parts.path.startswith("/") and not (parts.netloc or odd):
        return TritonAddress(f"unix:{parts.path}", secure=False, loopback=True, path="")
    if parts.scheme not in ("grpc", "grpcs") or not parts.hostname or odd:
        raise ValueError(url)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return TritonAddress(
        f"{host}:{parts.port or _DEFAULT_PORT}",
        parts.scheme == "grpcs",
        parts.hostname in _LOOPBACK,
        parts.path,
    )
