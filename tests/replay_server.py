"""A local OpenAI-compatible server that replays recorded answers: a real HTTP endpoint without a model behind it.

It knows each GSM8K question in its canonical and its reworded form and gives the recorded answer to both, so it
behaves like a model whose accuracy does not depend on the wording.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.paraphraser import PARAPHRASER, Paraphraser, Said

MODEL = "replayed-qwen2.5-1.5b"


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def recorded_answers(data: Path) -> dict[str, str]:
    """Question text (canonical or reworded) → the recorded generation."""
    results = json.loads((data / "case_study" / "instruct_max_new768.json").read_text("utf-8"))["results"]
    texts = {int(row["id"].removeprefix("gsm8k-")): row.get("gen_text", "") for row in results}
    test, rephrased = _rows(data / "gsm8k" / "test.jsonl"), _rows(data / "gsm8k" / "rephrased.jsonl")
    answers = {}
    for index, text in texts.items():
        answers[test[index]["question"]] = text
        answers[rephrased[index]["rephrased"]] = text
    return answers


@dataclass
class Replay:
    """A running replay server."""

    url: str
    asked: list[str] = field(default_factory=list)
    asked_to_reword: list[str] = field(default_factory=list)
    pause: threading.Event = field(default_factory=threading.Event)
    """While this is cleared, answers after the first `free_answers` wait: an audit can be caught half done."""
    free_answers: int = 10**9
    dies_after: int = 10**9
    """Past this many questions every connection is dropped without an answer."""
    refuses: str | None = None
    """While this is set, every question is answered with 400 and these words."""


@contextmanager
def replay_server(
    answers: dict[str, str], paraphraser: Paraphraser | None = None, *, rewords: str = PARAPHRASER
) -> Iterator[Replay]:
    """Serve recorded answers on a free loopback port, and beside them a model that rewords, named `rewords`."""
    # The longest match wins: a question may be the beginning of another.
    questions = sorted(answers, key=len, reverse=True)
    replay = Replay(url="")
    replay.pause.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            names = [MODEL] if paraphraser is None else [MODEL, rewords]
            self._reply(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = body.get("prompt") or body["messages"][-1]["content"]
            if self.path.endswith("/infer"):
                self._infer(prompt)
                return
            if paraphraser is not None and body.get("model") == rewords:
                replay.asked_to_reword.append(prompt)
                self._say(body, prompt, paraphraser(prompt))
                return
            replay.asked.append(prompt)
            if replay.refuses is not None:
                self._reply(400, {"error": {"message": replay.refuses}})
                return
            if len(replay.asked) > replay.dies_after:
                self.close_connection = True
                self.connection.close()
                return
            if len(replay.asked) > replay.free_answers:
                replay.pause.wait(timeout=60)
            text = next((answers[question] for question in questions if question in prompt), None)
            if text is None:
                self._reply(404, {"error": {"message": "no recorded answer for this prompt"}})
                return
            self._say(body, prompt, Said(text))

        def _infer(self, prompt: str) -> None:
            """The article's contract, which names no model: what is no plain question is to be reworded."""
            if paraphraser is not None and not prompt.startswith("Question:"):
                replay.asked_to_reword.append(prompt)
                said = paraphraser(prompt)
            else:
                replay.asked.append(prompt)
                text = next((answers[question] for question in questions if question in prompt), None)
                said = Said("no recorded answer for this prompt", status=404) if text is None else Said(text)
            self._reply(said.status, {"response": said.text} if said.status == 200 else {"error": said.text})

        def _say(self, body: dict[str, Any], prompt: str, said: Said) -> None:
            if said.status != 200:
                self._reply(said.status, {"error": {"message": said.text}})
                return
            choice: dict[str, Any] = {"index": 0, "finish_reason": said.finish_reason}
            if "messages" in body:
                choice["message"] = {"role": "assistant", "content": said.text}
            else:
                choice["text"] = said.text
            usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(said.text.split())}
            self._reply(200, {"id": "replay", "model": body.get("model", MODEL), "choices": [choice], "usage": usage})

        def _reply(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that was killed mid-request is what some tests do on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    replay.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield replay
    finally:
        replay.pause.set()
        server.shutdown()
        server.server_close()
