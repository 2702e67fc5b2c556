"""A gRPC server that is none: it answers every call with the bytes that a test wants, whatever gRPC would allow."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.hostile.listening import listening

_DATA, _HEADERS, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_LARGEST_FRAME = 16_384

#: What a call is answered with: the name of its encoding, and its messages as they travel, each with its flag.
Reply = tuple[str, list[tuple[bool, bytes]]]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _headers(*fields: tuple[str, str]) -> bytes:
    """Literal fields without indexing and without Huffman's code (RFC 7541, section 6.2.2)."""
    return b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields
    )


def _replied(stream: int, reply: Reply) -> bytes:
    encoding, messages = reply
    head = _headers((":status", "200"), ("content-type", "application/grpc"), ("grpc-encoding", encoding))
    body = b"".join(bytes([packed]) + struct.pack(">I", len(data)) + data for packed, data in messages)
    frames = [_frame(_HEADERS, _END_HEADERS, stream, head)]
    for start in range(0, len(body), _LARGEST_FRAME):
        frames.append(_frame(_DATA, 0, stream, body[start : start + _LARGEST_FRAME]))
    frames.append(_frame(_HEADERS, _END_HEADERS | _END_STREAM, stream, _headers(("grpc-status", "0"))))
    return b"".join(frames)


@contextmanager
def raw_grpc(reply: Callable[[int], Reply]) -> Iterator[str]:
    """The URL of a server; `reply` gets the number of the call, over all connections."""
    calls = iter(range(1 << 30))

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            _exactly(connection, len(_PREFACE))
            connection.sendall(_frame(_SETTINGS, 0, 0, b""))
            while True:
                head = _exactly(connection, 9)
                payload = _exactly(connection, int.from_bytes(head[:3]))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:]) & 0x7FFFFFFF
                if kind == _SETTINGS and not flags & _ACK:
                    connection.sendall(_frame(_SETTINGS, _ACK, 0, b""))
                elif kind == _PING and not flags & _ACK:
                    connection.sendall(_frame(_PING, _ACK, 0, payload))
                elif kind == _HEADERS:
                    connection.sendall(_replied(stream, reply(next(calls))))

    with listening(serve) as port:
        yield f"grpc://127.0.0.1:{port}"


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        if not (more := connection.recv(length - len(data))):
            raise EOFError
        data += more
    return data
