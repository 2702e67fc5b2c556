"""What a reply may cost before it is an answer: bytes as they come, the pieces they come in, values in its JSON.

An endpoint is a stranger. What it sends is counted raw, before anything is made of it: nothing is unpacked, and nothing
is parsed whose number of values is not known.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx

from proctor.domain.answer_bounds import max_answer_bytes
from proctor.inference.worker.backend import TrialFailure, printable

#: What stands around a text in a reply: usage, ids, a message's other members.
ENVELOPE_BYTES: Final = 64 << 10
#: Of an error page only the beginning is read: 300 characters of it are shown.
MAX_ERROR_BYTES: Final = 64 << 10
#: A list of models; that of the largest market of models has half a megabyte.
MAX_LISTING_BYTES: Final = 4 << 20
#: Pieces of a body as they leave the connection. A slow network cuts the largest reply into 3,000.
MAX_PIECES: Final = 10_000
#: Values in a reply's JSON: a list of 1,000 models has 40,000. A list of four million takes 0.3 s and 160 MB to read.
MAX_VALUES: Final = 50_000
#: From here on a reply is read beside the event loop. Below, the worst one takes a few milliseconds.
LARGE_BYTES: Final = 64 << 10
#: Bytes of a connection that are looked at in one go: 2,700 chunks of one byte, which take 20 ms.
_READ_BYTES: Final = 16 << 10
#: All that a connection brings between two requests: heads, interim responses, chunk sizes and the body.
MAX_CONNECTION_BYTES: Final = 5 << 20
#: Lines of a response's head, which the HTTP library reads in one go: five thousand take it 80 ms.
MAX_HEAD_LINES: Final = 256
_PIECES_A_STEP: Final = 64
#: Events of httpcore with which a stream comes into use.
_OPENED: Final = frozenset({"connection.connect_tcp.complete", "connection.start_tls.complete"})
#: Where the HTTP library sees a head end.
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")
_INTERIM: Final = re.compile(rb"HTTP/1\.[01] 1")
_MARK: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{,]', re.DOTALL)

Trace = Callable[[str, Any], Awaitable[None]]


def max_reply_bytes(max_tokens: int) -> int:
    """Bytes of a reply in JSON to a request with this ceiling of tokens.

    Twice the text: an escape (six bytes) stands for two or three of UTF-8, or the reasoning stands beside the answer.
    """
    return 2 * max_answer_bytes(max_tokens) + ENVELOPE_BYTES


async def read_body(response: httpx.Response, limit: int, url: str, *, cut: bool = False) -> bytes:
    """The body of a response, as it was sent.

    Args:
        response: one whose body was not read.
        limit: bytes.
        url: the endpoint, for messages.
        cut: whether what follows the limit is left unread, instead of being a fault.

    Raises:
        TrialFailure: it is encoded, though nothing but identity was accepted; or longer, or in more pieces, than
            allowed.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        if cut:
            return b""
        raise TrialFailure(
            f"{url} answered in the content-encoding {printable(coding[:80])!r}, though only identity is accepted: "
            "what a few bytes unpack to has no bound; switch compression off there, or in the proxy before it",
            retryable=False,
        )
    body, pieces = bytearray(), 0
    async for piece in response.aiter_raw():
        body += piece
        pieces += 1
        if len(body) > limit:
            if cut:
                return bytes(body[:limit])
            raise TrialFailure(
                f"{url} answered more than {limit:,} bytes, the most that an answer of the allowed tokens can take",
                retryable=False,
            )
        if pieces > MAX_PIECES:
            raise TrialFailure(f"{url} answered in more than {MAX_PIECES:,} pieces", retryable=False)
        if not pieces % _PIECES_A_STEP:
            # Pieces that are there already are handed over without a pause.
            await asyncio.sleep(0)
    return bytes(body)


def load_json(payload: bytes, **hooks: Any) -> Any:
    """The JSON of a reply, if it has no more values than a reply can have.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.
        TrialFailure: it has more than MAX_VALUES values.
    """
    if len(payload) > LARGE_BYTES and _has_many_values(payload):
        raise TrialFailure(
            f"the answer is not JSON as answers have it: more than {MAX_VALUES:,} values", retryable=False
        )
    return json.loads(payload, **hooks)


def bounded_connections(url: str, check: Trace | None = None) -> dict[str, Any]:
    """Extensions of a request that bound the connection which is opened for it.

    Args:
        url: the endpoint, for messages.
        check: is told of every event too, e.g. to look at the peer.
    """

    async def trace(event: str, info: Any) -> None:
        if event in _OPENED:
            _bound(info["return_value"], url)
        if check is not None:
            await check(event, info)

    return {"trace": trace}


def _bound(stream: Any, url: str) -> None:
    """Have a connection's stream read little at a time, and no more between two requests than any reply can have.

    The HTTP library takes interim responses and heads without end, and works through all that was read in one go.
    """
    read, write = stream.read, stream.write
    taken, heads = 0, _Heads(url)

    async def bounded_read(max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore's own
        nonlocal taken
        data: bytes = await read(min(max_bytes, _READ_BYTES), timeout)
        taken += len(data)
        if taken > MAX_CONNECTION_BYTES:
            raise TrialFailure(
                f"{url} sent more than {MAX_CONNECTION_BYTES:,} bytes to one request, answer and all around it",
                retryable=False,
            )
        heads.see(data)
        return data

    async def counted_write(buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        nonlocal taken, heads
        taken, heads = 0, _Heads(url)
        await write(buffer, timeout)

    stream.read, stream.write = bounded_read, counted_write


class _Heads:
    """The heads of a response, as they come: interim ones, and the last, which the body follows."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._unread: bytearray | None = bytearray()

    def see(self, data: bytes) -> None:
        """Raises TrialFailure: one of them has more than MAX_HEAD_LINES lines."""
        if self._unread is None:
            return
        self._unread += data
        while self._unread is not None:
            end = _END_OF_HEAD.search(self._unread)
            if self._unread.count(b"\n", 0, end.start() if end else len(self._unread)) > MAX_HEAD_LINES:
                raise TrialFailure(
                    f"{self._url} answered with more than {MAX_HEAD_LINES:,} lines of headers", retryable=False
                )
            if end is None:
                return
            self._unread = self._unread[end.end() :] if _INTERIM.match(self._unread) else None


def _has_many_values(payload: bytes) -> bool:
    # Those in texts too: nearly always few enough, and counted a hundred times as fast.
    if sum(map(payload.count, (b"[", b"{", b","))) <= MAX_VALUES:
        return False
    return any(count > MAX_VALUES for count, _ in enumerate(_MARK.finditer(payload)))
