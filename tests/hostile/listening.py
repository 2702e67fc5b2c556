"""A socket on loopback, for servers that say bytes which no library would."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port; `serve` gets each connection in a thread of its own. Nobody new gets in when the block ends."""
    server = socket.create_server(("127.0.0.1", 0), backlog=128)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()
