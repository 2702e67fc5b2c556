"""A TCP forwarder between a client and a server: it counts connections, and can break all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from proctor.inference.worker.event_loop import EventLoopThread


class Forwarder:
    """A port that stands for another one on this machine."""

    def __init__(self, port: int) -> None:
        self.port = 0
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._connections = 0
        self._loop = EventLoopThread()
        self._server = self._loop.run(self._listen())

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return self._connections

    def drop(self) -> None:
        """Break every connection, as a lost network would."""
        self._loop.run(self._drop())

    def close(self) -> None:
        """Break every connection and accept no more."""
        self._loop.run(self._end())
        self._loop.stop()

    async def _listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        writers = {writer}
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            writers.add(far_writer)
            self._writers |= writers
            directions = [
                asyncio.ensure_future(_carry(reader, far_writer)),
                asyncio.ensure_future(_carry(far_reader, writer)),
            ]
            # Either side that ends, ends both: neither protocol speaks on over a half-closed connection.
            _, open_still = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in open_still:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        finally:
            self._writers -= writers
            for one in writers:
                one.transport.abort()
            self._connections -= 1

    async def _end(self) -> None:
        self._server.close()

    async def _drop(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


@contextmanager
def forwarding(port: int) -> Iterator[Forwarder]:
    """A forwarder to a port of this machine."""
    forwarder = Forwarder(port)
    try:
        yield forwarder
    finally:
        forwarder.close()
