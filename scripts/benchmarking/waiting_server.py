"""An endpoint of the article's contract that answers each request a given time after it came, however many there are.

Run as a process: `python waiting_server.py PORT SECONDS`. Imports the standard library alone.
"""

from __future__ import annotations

import asyncio
import sys

_ANSWER = b'{"response": "The answer is 42."}'
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(_ANSWER), _ANSWER)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """One connection, until the client leaves."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_content_length(head))
            # Whoever only asks whether anybody is there need not wait.
            if head.startswith(b"POST"):
                await asyncio.sleep(seconds)
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
    server = await asyncio.start_server(lambda reader, writer: serve(reader, writer, seconds), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
