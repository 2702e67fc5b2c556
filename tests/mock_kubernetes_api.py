"""A mock of the Kubernetes API server: it lists the EndpointSlices of services, and lets them be watched.

It keeps what a watch relies on: versions that grow with each change, a stream of events from a version on, `410 Gone`
for a version that it has forgotten, and an end after `timeoutSeconds`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMESPACE, SERVICE = "models", "triton"


class MockKubernetesApi:
    """The state of the cluster, and who watches it. Runs on the event loop of the test."""

    def __init__(self) -> None:
        self.port = 0
        self.lists = 0
        self.watched_from: list[int] = []
        self.refuses_lists_with = 0
        self._version = 100
        self._oldest = 0
        self._slices: dict[str, dict[str, Any]] = {}
        self._events: list[tuple[int, str, dict[str, Any]]] = []
        self._changed = asyncio.Condition()
        self._writers: set[asyncio.StreamWriter] = set()

    async def put(
        self,
        name: str,
        *addresses: str,
        ready: bool | None = True,
        terminating: bool | None = None,
        ports: dict[str, int] | None = None,
        service: str = SERVICE,
    ) -> None:
        """A slice is there, or is another."""
        kind = "ADDED" if name not in self._slices else "MODIFIED"
        conditions = {"ready": ready, "serving": ready, "terminating": terminating}
        family = "IPv6" if any(":" in address for address in addresses) else "IPv4"
        document = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": service}},
            "addressType": family,
            "endpoints": [{"addresses": [address], "conditions": conditions} for address in addresses],
            "ports": [{"name": key, "port": port} for key, port in (ports or {"grpc": 8001, "http": 8000}).items()],
        }
        await self._happen(kind, name, document)

    async def remove(self, name: str) -> None:
        """A slice is gone."""
        await self._happen("DELETED", name, self._slices[name])

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

    async def _happen(self, kind: str, name: str, document: dict[str, Any]) -> None:
        async with self._changed:
            self._version += 1
            document = document | {"metadata": document["metadata"] | {"resourceVersion": str(self._version)}}
            if kind == "DELETED":
                del self._slices[name]
            else:
                self._slices[name] = document
            self._events.append((self._version, kind, document))
            self._changed.notify_all()

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
        label, _, service = asked["labelSelector"].partition("=")
        assert label == "kubernetes.io/service-name"
        if asked.get("watch", "").lower() == "true":
            await self._watch(service, int(asked["resourceVersion"]), float(asked["timeoutSeconds"]), writer)
            return
        self.lists += 1
        items = [one for one in self._slices.values() if one["metadata"]["labels"][label] == service]
        body = {
            "kind": "EndpointSliceList",
            "apiVersion": "discovery.k8s.io/v1",
            "items": items,
            "metadata": {"resourceVersion": str(self._version)},
        }
        data = json.dumps(body).encode()
        status = b"%d X" % self.refuses_lists_with if self.refuses_lists_with else b"200 OK"
        writer.write(
            b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(data))
        )
        writer.write(data)
        await writer.drain()

    async def _watch(self, service: str, version: int, timeout_s: float, writer: asyncio.StreamWriter) -> None:
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
                        if document["metadata"]["labels"]["kubernetes.io/service-name"] == service:
                            await _chunk(writer, {"type": kind, "object": document})
                        version = number
                    async with self._changed:
                        await self._changed.wait_for(lambda: self._version > version)  # noqa: B023
                    if self._oldest <= version < self._version and not self._events:
                        version = self._version
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _chunk(writer: asyncio.StreamWriter, document: dict[str, Any]) -> None:
    line = json.dumps(document).encode() + b"\n"
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))
    await writer.drain()


@asynccontextmanager
async def mock_kubernetes_api(addresses: Sequence[str] = ()) -> AsyncIterator[MockKubernetesApi]:
    """A cluster whose service has these ready addresses, in one slice `first`."""
    api = MockKubernetesApi()
    if addresses:
        await api.put("first", *addresses)
    server = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
        api.drop()
        await server.wait_closed()
