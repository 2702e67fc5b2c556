"""An endpoint of the article's contract that answers one request after another, each in a given time.

Run as a process: `python paced_server.py PORT SECONDS`. Imports the standard library alone.
"""

from __future__ import annotations

import asyncio
import sys
import time

_ANSWER = b'{"response": "The answer is 42."}'
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)


class PacedServer:
    """Keeps a queue of one: requests are answered in the order in which they came, `seconds` apart at the least."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free_at = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the client leaves."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_content_length(head))
                # A timetable and not sleeps in turn: a sleep that ends late must not make the server slower.
                self._free_at = max(self._free_at, time.monotonic()) + self._seconds
                await asyncio.sleep(self._free_at - time.monotonic())
                writer.write(_REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _content_length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


async def main(port: int, seconds: float) -> None:
    """Serve until told to leave."""
    server = await asyncio.start_server(PacedServer(seconds).serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
