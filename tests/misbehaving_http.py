"""An HTTP server that does what prompts tell it: the article's `/infer`, and OpenAI's protocol."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.misbehaviour import BROKEN, BUSY, DEAD, ENGINE_DIED, HALF, Deed, Stage

#: vLLM has answered 400 for a dead engine (vllm-project/vllm#5822), and 500.
_STATUSES = {BUSY: 429, BROKEN: 503, DEAD: 400}


@contextmanager
def misbehaving_http(stage: Stage, *, model: str, version: str | None = None) -> Iterator[int]:
    """The port of a server.

    Args:
        stage: where its prompts' flags are.
        model: the name under which it lists its model.
        version: what `/infer` says of its weights; with it, it says everything that the contract leaves open.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._reply(200 if self.path.endswith("/models") else 405, {"data": [{"id": model}]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            deed = stage.next_deed(asked["prompt"])
            if not stage.wait(deed, deed.wait_for, self._is_abandoned):
                self.close_connection = True
            elif deed.fault in _STATUSES:
                self._reply(_STATUSES[deed.fault], {"error": ENGINE_DIED if deed.fault == DEAD else deed.fault})
            elif self.path.endswith("/infer"):
                self._reply(200, _infer_answer(deed, asked, version), halved=deed if deed.fault == HALF else None)
            else:
                self._reply(200, _openai_answer(deed), halved=deed if deed.fault == HALF else None)

        def _reply(self, status: int, document: dict[str, Any], *, halved: Deed | None = None) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            if status == 429:
                self.send_header("retry-after", "0")
            self.end_headers()
            if halved is None:
                self.wfile.write(data)
                return
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            stage.raise_flag(f"{halved.name}.halved")
            stage.wait(halved, "never", self._is_abandoned)
            self.close_connection = True

        def _is_abandoned(self) -> bool:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None: ...

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _infer_answer(deed: Deed, asked: dict[str, Any], version: str | None) -> dict[str, Any]:
    answer = {"response": deed.text}
    if version is None:
        return answer
    more = {"finish_reason": deed.finish, "input_tokens": 3, "output_tokens": 2, "model_version": version}
    return answer | more | {"task_id": asked["task_id"]}


def _openai_answer(deed: Deed) -> dict[str, Any]:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    return {"choices": [{"text": deed.text, "finish_reason": deed.finish}], "usage": usage}
