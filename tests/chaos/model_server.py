"""The arithmetic model behind HTTP, in a process of its own that can be killed, slow, broken, abrupt or out of order.

Speaks OpenAI's completions protocol. What it does wrong it is told by standing orders in the control folder.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import suppress
from pathlib import Path

from tests.chaos import arithmetic
from tests.chaos.control import Control
from tests.chaos.hooks import BROKEN_MODEL, SLOW_MODEL

ABRUPT_MODEL, DISORDERED_MODEL = "abrupt-model", "disordered-model"
#: Longest wait of an answer that is to come after later ones.
_DISORDER_S = 0.05


class ModelServer:
    """Answers `/v1/models` and `/v1/completions`."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._rng = random.Random(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lengths = [
                    line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length")
                ]
                body = await reader.readexactly(int(lengths[0])) if lengths else b""
                if not await self._answer(head, body, writer):
                    break
        writer.close()

    async def _answer(self, head: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        if head.startswith("GET"):
            _reply(writer, 200, {"data": [{"id": arithmetic.MODEL}]})
            return True
        if (wait := self._control.standing(SLOW_MODEL)) is not None:
            await asyncio.sleep(float(wait))
        if self._control.standing(DISORDERED_MODEL) is not None:
            await asyncio.sleep(self._rng.random() * _DISORDER_S)
        if self._control.standing(BROKEN_MODEL) is not None:
            _reply(writer, 503, {"error": {"message": "the model server is broken"}})
            return True
        asked = json.loads(body)
        text = arithmetic.answer(asked["prompt"], asked.get("seed"))
        document = {
            "choices": [{"text": text, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5},
        }
        if self._control.standing(ABRUPT_MODEL) is not None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
            return False
        _reply(writer, 200, document)
        return True


def _reply(writer: asyncio.StreamWriter, status: int, document: object) -> None:
    data = json.dumps(document).encode()
    writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)


async def main(port: int, control: Path) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(ModelServer(Control(control)).serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
