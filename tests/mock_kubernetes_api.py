"""A mock of the Kubernetes API server that does what a real one cannot be made to do when a test wants it.

It forgets versions (`410 Gone`), breaks every connection, refuses lists, and counts what it is asked. It knows one
EndpointSlice; what a real one tells of many is tried on a real one (`tests/cluster`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMESPACE, SERVICE = "models", "triton"
_SERVICE_LABEL = "kubernetes.io/service-name"


class MockKubernetesApi:
    """The state of the cluster, and who watches it. Runs on the event loop of the test."""

    def __init__(self) -> None:
        self.port = 0
        self.lists = 0
        self.watched_from: list[int] = []
        self.refuses_lists_with = 0
        self._version = 100
        self._oldest = 0
        self._slices: list[dict[str, Any]] = []
        self._events: list[tuple[int, str, dict[str, Any]]] = []
        self._changed = asyncio.Condition()
        self._writers: set[asyncio.StreamWriter] = set()

    async def put(self, *addresses: str) -> None:
        """The slice is there, or is another."""
        async with self._changed:
            self._version += 1
            document = _slice(self._version, addresses)
            self._events.append((self._version, "MODIFIED" if self._slices else "ADDED", document))
            self._slices = [document]
            self._changed.notify_all()

    async def forget(self) -> None:
        """Compact: versions so far are too old, and watches end with 410."""
        async with self._changed:
            self._version += 1
            self._oldest = self._version
            self._events = []
            self._changed.notify_all()

    def drop(self) -> None:
        """Break every connection."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self._writers.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.split(b" ")[1].decode(), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(target)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        assert parts.path == f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        assert asked["labelSelector"] == f"{_SERVICE_LABEL}={SERVICE}"
        if asked.get("watch", "").lower() == "true":
            await self._watch(int(asked["resourceVersion"]), float(asked["timeoutSeconds"]), writer)
            return
        self.lists += 1
        body = {
            "kind": "EndpointSliceList",
            "apiVersion": "discovery.k8s.io/v1",
            "items": self._slices,
            "metadata": {"resourceVersion": str(self._version)},
        }
        data = json.dumps(body).encode()
        status = b"%d X" % self.refuses_lists_with if self.refuses_lists_with else b"200 OK"
        writer.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(data))
        )
        writer.write(data)
        await writer.drain()

    async def _watch(self, version: int, timeout_s: float, writer: asyncio.StreamWriter) -> None:
        self.watched_from.append(version)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    if version < self._oldest:
                        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
                        await _chunk(writer, {"type": "ERROR", "object": gone})
                        break
                    for number, kind, document in [event for event in self._events if event[0] > version]:
                        await _chunk(writer, {"type": kind, "object": document})
                        version = number
                    async with self._changed:
                        await self._changed.wait_for(lambda: self._version > version)  # noqa: B023
                    if self._oldest <= version < self._version and not self._events:
                        version = self._version
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _slice(version: int, addresses: Sequence[str]) -> dict[str, Any]:
    labels = {_SERVICE_LABEL: SERVICE}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "first", "namespace": NAMESPACE, "labels": labels, "resourceVersion": str(version)},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "grpc", "port": 8001}],
    }


async def _chunk(writer: asyncio.StreamWriter, document: dict[str, Any]) -> None:
    line = json.dumps(document).encode() + b"\n"
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))
    await writer.drain()


@asynccontextmanager
async def mock_kubernetes_api(addresses: Sequence[str] = ()) -> AsyncIterator[MockKubernetesApi]:
    """A cluster whose service has these ready addresses, in one slice `first`."""
    api = MockKubernetesApi()
    if addresses:
        await api.put(*addresses)
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
        api.drop()
        await server.wait_closed()
