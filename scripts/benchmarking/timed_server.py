"""An endpoint of the article's contract that answers each request in a given time.

Run as a process: `python timed_server.py in-turn PORT SECONDS` answers one request after another, so that its pace has
a ceiling; `at-once` answers each so long after it came, however many there are. Imports the standard library alone.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

_ANSWER = b'{"response": "The answer is 42."}'
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)

Wait = Callable[[], Awaitable[None]]
"""What a request waits for before it is answered."""


def in_turn(seconds: float) -> Wait:
    """A queue of one: requests are answered in the order in which they came, `seconds` apart at the least."""
    free_at = 0.0

    async def wait() -> None:
        nonlocal free_at
        # A timetable and not sleeps in turn: a sleep that ends late must not make the server slower.
        free_at = max(free_at, time.monotonic()) + seconds
        await asyncio.sleep(free_at - time.monotonic())

    return wait


def at_once(seconds: float) -> Wait:
    """No queue: each request waits `seconds`, beside all others."""
    return lambda: asyncio.sleep(seconds)


_WAYS = {"in-turn": in_turn, "at-once": at_once}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: Wait) -> None:
    """One connection, until the client leaves."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_content_length(head))
            # Whoever only asks whether anybody is there need not wait.
            if head.startswith(b"POST"):
                await wait()
            writer.write(_REPLY)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def _content_length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


async def main(port: int, wait: Wait) -> None:
    """Serve until told to leave."""
    server = await asyncio.start_server(lambda reader, writer: serve(reader, writer, wait), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[2]), _WAYS[sys.argv[1]](float(sys.argv[3]))))
