"""The OpenAI-compatible backend against a real HTTP server that answers as each test says."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.messages import EndpointSpec
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.backend import MAX_ANSWER_BYTES, Probe
from proctor.inference.openai import OpenAIBackend
from proctor.inference.window import Window
from tests.support import free_port

VERSION = "sha256:" + "ab" * 32


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection instead of answering."""


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


Behaviour = Callable[[int, Asked], Reply]


@dataclass
class Server:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0


def said(text: Any, *, finish: Any = "stop", **more: Any) -> Reply:
    return Reply(body=json.dumps({"choices": [{"text": text, "finish_reason": finish}], **more}).encode())


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    server, lock, now = Server(), threading.Lock(), 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _answer(self, body: Any) -> None:
            nonlocal now
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            with lock:
                server.asked.append(asked)
                number = len(server.asked)
                now += 1
                server.most_at_once = max(server.most_at_once, now)
            try:
                reply = behaviour(number, asked)
            finally:
                with lock:
                    now -= 1
            if reply.drop:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None: ...

    http = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def spec(url: str, *, chat: bool = False) -> EndpointSpec:
    return EndpointSpec(backend="openai", url=url, served_name="m", model_version=VERSION, chat=chat)


def complete(
    url: str,
    *prompts: str,
    chat: bool = False,
    deadline_s: float = 20.0,
    environ: dict[str, str] | None = None,
    window: Window | None = None,
    decoding: Decoding | None = None,
) -> list[Completion]:
    async def run() -> list[Completion]:
        backend = OpenAIBackend(spec(url, chat=chat), environ=environ or {}, window=window, rng=random.Random(1))
        try:
            asked = [Trial(arm=Arm.CANONICAL, item_id=str(n), prompt=text) for n, text in enumerate(prompts)]
            return await backend.complete(asked, decoding or Decoding(), deadline_s=deadline_s)
        finally:
            await backend.close()

    return asyncio.run(run())


def probe(url: str) -> Probe:
    async def run() -> Probe:
        backend = OpenAIBackend(spec(url), environ={})
        try:
            return await backend.probe()
        finally:
            await backend.close()

    return asyncio.run(run())


def echo(_: int, asked: Asked) -> Reply:
    return said(asked.body["prompt"].upper(), usage={"prompt_tokens": 3, "completion_tokens": 1})


def test_answers_keep_the_order_of_the_prompts() -> None:
    def slow_first(number: int, asked: Asked) -> Reply:
        time.sleep(0.05 if asked.body["prompt"] == "p0" else 0)
        return echo(number, asked)

    with serving(slow_first) as server:
        got = complete(server.url, *(f"p{number}" for number in range(100)))
    assert [c.text for c in got] == [f"P{number}" for number in range(100)]
    assert {(c.finish_reason, c.input_tokens, c.output_tokens, c.model_digest) for c in got} == {("stop", 3, 1, None)}


def test_the_decoding_policy_and_the_key_are_sent() -> None:
    policy = Decoding(temperature=0.5, top_p=0.9, max_tokens=33, seed=7, stop=("\n",))
    with serving(echo) as server:
        complete(server.url, "a", decoding=policy, environ={"PROCTOR_API_KEY": "k1", "OPENAI_API_KEY": "k2"})
    assert server.asked[0].path == "/v1/completions"
    assert server.asked[0].headers["authorization"] == "Bearer k1"
    assert server.asked[0].body == {
        "model": "m", "prompt": "a", "temperature": 0.5, "top_p": 0.9, "max_tokens": 33, "seed": 7, "stop": ["\n"],
        "stream": False,
    }  # fmt: skip


def test_a_chat_endpoint_gets_one_user_message() -> None:
    def chat(_: int, asked: Asked) -> Reply:
        return Reply(
            body=json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}]}).encode()
        )

    with serving(chat) as server:
        got = complete(server.url + "/api/v3/", "is it?", chat=True)
    assert server.asked[0].path == "/api/v3/chat/completions"
    assert server.asked[0].body["messages"] == [{"role": "user", "content": "is it?"}]
    assert (got[0].text, got[0].finish_reason) == ("yes", "length")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_endpoint_in_passing_trouble_is_asked_again(status: int) -> None:
    with serving(lambda n, asked: Reply(status) if n == 1 else echo(n, asked)) as server:
        got = complete(server.url, "a")
    assert (got[0].text, len(server.asked)) == ("A", 2)


def test_retry_after_holds_back_every_prompt() -> None:
    moments: list[float] = []

    def limited(number: int, asked: Asked) -> Reply:
        moments.append(time.monotonic())
        return Reply(429, headers={"retry-after": "1"}) if number == 1 else echo(number, asked)

    with serving(limited) as server:
        got = complete(server.url, "a", "b", "c", window=Window(max_requests=1))
    assert [c.text for c in got] == ["A", "B", "C"]
    assert moments[1] - moments[0] >= 1.0


def test_an_endpoint_that_stays_in_trouble_is_not_asked_for_ever() -> None:
    with serving(lambda n, asked: Reply(503, b"overloaded\x1b[2J")) as server:
        got = complete(server.url, "a")
    assert len(server.asked) == 5
    assert got[0].error == f"{server.url} answered 503: overloaded [2J"
    assert got[0].retryable


def test_repeats_are_bounded_for_the_shard_as_a_whole() -> None:
    with serving(lambda n, asked: Reply(500)) as server:
        got = complete(server.url, *["a"] * 20)
    assert all(c.retryable for c in got)
    assert len(server.asked) == 20 + 8 + 20


def test_a_connection_that_drops_is_tried_again() -> None:
    with serving(lambda n, asked: Reply(drop=True) if n == 1 else echo(n, asked)) as server:
        assert complete(server.url, "a")[0].text == "A"


def test_a_connection_that_always_drops_is_an_error() -> None:
    with serving(lambda n, asked: Reply(drop=True)) as server:
        got = complete(server.url, "a")
    assert len(server.asked) == 3
    assert "broke" in str(got[0].error)
    assert got[0].retryable


def test_nobody_at_the_address_is_said_in_one_line() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    got = complete(url, "a", "b")
    assert [(c.error, c.retryable) for c in got] == [(f"connection refused at {url}", True)] * 2
    assert probe(url) == Probe(False, detail=f"connection refused at {url}")


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (Reply(body=b"<html>gateway</html>"), "not JSON: '<html>gateway</html>'"),
        (Reply(body=b"[" * 100_000), "not JSON"),
        (Reply(body=b"{}"), "no choices"),
        (Reply(body=b'{"choices": []}'), "no choices"),
        (Reply(body=b'{"error": {"message": "no"}}'), 'no choices: {"message": "no"}'),
        (said(None, finish="content_filter"), "no text (finish_reason content_filter)"),
        (said(["a"]), "no text"),
        (Reply(body=b'"choices"'), "no choices"),
        (Reply(400, b"context length"), "answered 400: context length"),
        (Reply(401, b"key sk-secret"), "set PROCTOR_API_KEY"),
        (Reply(302, headers={"location": "http://169.254.169.254/"}), "redirect (302), which is not followed"),
        (Reply(body=b" " * (MAX_ANSWER_BYTES + 1)), "answered more than"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_hostile_or_senseless_response_is_an_error_of_its_trial(reply: Reply, complaint: str) -> None:
    with serving(lambda n, asked: reply if asked.body["prompt"] == "bad" else echo(n, asked)) as server:
        got = complete(server.url, "a", "bad", "b")
    assert [c.text for c in got] == ["A", "", "B"]
    assert complaint in str(got[1].error)
    assert got[1].finish_reason == "error"
    assert "secret" not in str(got[1].error)


def test_unusual_answers_are_kept_and_made_valid() -> None:
    with serving(lambda n, asked: Reply(body=rb'{"choices": [{"text": "a\ud83d\u0000\u001b[2J"}]}')) as server:
        got = complete(server.url, "a")
    assert (got[0].text, got[0].finish_reason) == ("a\ufffd\x00\x1b[2J", "unknown")


def test_senseless_counts_are_no_counts() -> None:
    with serving(lambda n, asked: said("x", usage={"prompt_tokens": -1, "completion_tokens": "9"})) as server:
        got = complete(server.url, "a")
    assert (got[0].input_tokens, got[0].output_tokens) == (None, None)


def test_unusual_prompts_arrive_whole_or_fail_alone() -> None:
    prompts = ["", "é漢🙂\x00", "x" * 1_000_000, "half: \ud83d"]
    with serving(lambda n, asked: said(str(len(asked.body["prompt"])))) as server:
        got = complete(server.url, *prompts)
    assert [c.text for c in got] == ["0", "4", "1000000", ""]
    assert "lone surrogate" in str(got[3].error)


def test_a_trial_without_an_answer_ends_at_the_deadline() -> None:
    release = threading.Event()

    def stuck(number: int, asked: Asked) -> Reply:
        if asked.body["prompt"] == "stuck":
            release.wait(10)
        return echo(number, asked)

    with serving(stuck) as server:
        try:
            got = complete(server.url, "a", "stuck", deadline_s=0.5)
        finally:
            release.set()
    assert [c.text for c in got] == ["A", ""]
    assert "before the deadline" in str(got[1].error)


def test_no_more_requests_are_in_flight_than_the_window_allows() -> None:
    def slow(number: int, asked: Asked) -> Reply:
        time.sleep(0.02)
        return echo(number, asked)

    with serving(slow) as server:
        complete(server.url, *["a"] * 24, window=Window(max_requests=4))
    assert server.most_at_once == 4


def test_a_probe_finds_the_model_in_the_list() -> None:
    listing = json.dumps({"data": [{"id": "m"}, {"id": "other"}]}).encode()
    with serving(lambda n, asked: Reply(body=listing, headers={"server": "replay/1"})) as server:
        found = probe(server.url)
    assert found.ok
    assert found.model_digest is None
    assert server.asked[0].path == "/v1/models"


@pytest.mark.parametrize(
    ("reply", "ok", "detail"),
    [
        (Reply(body=b'{"data": [{"id": "other"}]}'), False, "does not serve 'm'; it lists 'other'"),
        (Reply(404), True, "is served is unchecked"),
        (Reply(401), False, "set PROCTOR_API_KEY"),
        (Reply(500, b"oops"), False, "answered 500: oops"),
        (Reply(body=b"not json"), True, ""),
    ],
)
def test_a_probe_says_what_it_found(reply: Reply, ok: bool, detail: str) -> None:
    with serving(lambda n, asked: reply) as server:
        found = probe(server.url)
    assert found.ok is ok
    assert detail in found.detail


def test_openais_key_does_not_travel_in_clear_to_another_machine() -> None:
    from proctor.inference.openai import _headers

    environ = {"OPENAI_API_KEY": "k2"}
    assert "authorization" not in _headers(environ, secure=False)
    assert _headers(environ, secure=True)["authorization"] == "Bearer k2"


@pytest.mark.parametrize("url", ["grpc://host:1", "http://", "http://user:pw@host/v1", "http://host:x/v1"])
def test_an_url_that_is_not_http_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="https://host/v1"):
        OpenAIBackend(spec(url))
