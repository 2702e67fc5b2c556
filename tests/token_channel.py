"""A gRPC channel on which every call shows a token, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from proctor.runtime.grpc.own_servers import token_of_own_server


class _Shows(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # grpc has no type information
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]
    grpc.StreamStreamClientInterceptor,  # type: ignore[misc]
):
    def __init__(self, token: str) -> None:
        self._metadata = [("authorization", f"Bearer {token}")]

    def _call(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details._replace(metadata=[*(details.metadata or ()), *self._metadata]), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = intercept_stream_stream = _call


@contextmanager
def token_channel(address: str, token: str | None) -> Iterator[grpc.Channel]:
    """A channel in plain text; None shows nothing."""
    with grpc.insecure_channel(address) as channel:
        yield channel if token is None else grpc.intercept_channel(channel, _Shows(token))


def own_token_of(home: Path, service: str, address: str) -> str | None:
    """What a server of a home that listens at `host:port` asks its own user for."""
    host, _, port = address.rpartition(":")
    return token_of_own_server(home, service, host, int(port))
