"""The OpenAI-compatible backend against a real HTTP server that answers as each test says."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

import pytest

from proctor.domain.answer_bounds import MAX_ANSWER_BYTES
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.http.openai import OpenAIBackend
from proctor.inference.worker import retry
from proctor.inference.worker.backend import Probe
from proctor.inference.worker.window import Window
from tests.answering_http import Asked, Reply, serving

VERSION = "sha256:" + "ab" * 32


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_BASE_S", 0.01)


def said(text: Any, *, finish: Any = "stop", **more: Any) -> Reply:
    return Reply(body=json.dumps({"choices": [{"text": text, "finish_reason": finish}], **more}).encode())


def spec(url: str, *, chat: bool = False) -> EndpointSpec:
    return EndpointSpec(backend="openai", url=url, served_name="m", model_version=VERSION, chat=chat, gets_keys=True)


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


def probe(url: str, environ: dict[str, str] | None = None) -> Probe:
    async def run() -> Probe:
        backend = OpenAIBackend(spec(url), environ=environ or {})
        try:
            return await backend.probe()
        finally:
            await backend.close()

    return asyncio.run(run())


def echo(_: int, asked: Asked) -> Reply:
    return said(asked.body["prompt"].upper(), usage={"prompt_tokens": 3, "completion_tokens": 1})


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


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "1"}, 1.0),
        ({"retry-after-ms": "300", "retry-after": "600"}, 0.3),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "300ms",
                "x-ratelimit-remaining-tokens": "7",
                "x-ratelimit-reset-tokens": "10m0s",
            },
            0.3,
        ),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "0m0.3s"}, 0.3),
    ],
    ids=["seconds", "milliseconds", "requests", "tokens"],
)
def test_a_rate_limit_holds_back_every_prompt_for_as_long_as_it_says(headers: dict[str, str], seconds: float) -> None:
    moments: list[float] = []

    def limited(number: int, asked: Asked) -> Reply:
        moments.append(time.monotonic())
        return Reply(429, headers=headers) if number == 1 else echo(number, asked)

    with serving(limited) as server:
        got = complete(server.url, "a", "b", "c", window=Window(max_requests=1))
    # The other waits, of ten minutes, would have ended at the deadline.
    assert [c.text for c in got] == ["A", "B", "C"]
    assert moments[1] - moments[0] >= seconds


def test_a_wait_past_the_deadline_is_named_as_the_cause() -> None:
    with serving(lambda n, asked: Reply(429, headers={"retry-after": "60"})) as server:
        got = complete(server.url, "a", deadline_s=0.3)
    assert got[0].error == f"no answer from {server.url} before the deadline: it asked to be left alone for longer"
    assert got[0].retryable


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


def test_a_connection_that_always_drops_is_an_error() -> None:
    with serving(lambda n, asked: Reply(drop=True)) as server:
        got = complete(server.url, "a")
    assert len(server.asked) == 3
    assert "broke" in str(got[0].error)
    assert got[0].retryable


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (Reply(body=b"<html>gateway</html>"), "not JSON: '<html>gateway</html>'"),
        (Reply(body=b"[" * 100_000), "not JSON"),
        (Reply(body=b"{}"), "no choices"),
        (Reply(body=b'{"choices": []}'), "no choices"),
        (Reply(body=b'{"error": {"message": "no"}}'), "no choices: no"),
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


@pytest.mark.parametrize(
    "url",
    ["grpc://host:1", "http://", "http://user:pw@host/v1", "http://host:x/v1", "http://host/v1?key=pw", "http://[/v1"],
)
def test_an_url_that_is_not_http_or_holds_a_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(BadInputError, match="https://host/v1") as refusal:
        OpenAIBackend(spec(url))
    assert "pw" not in str(refusal.value)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_that_the_endpoint_repeats_is_taken_out_of_what_is_kept(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-proctor-0123456789"

    def repeating(_: int, asked: Asked) -> Reply:
        heard = asked.headers["authorization"]
        return said(f"you said {heard}") if status == 200 else Reply(status, f"not {heard}".encode())

    caplog.set_level("DEBUG")
    with serving(repeating) as server:
        [got] = complete(server.url, "a", environ={"PROCTOR_API_KEY": key})
        found = probe(server.url, environ={"PROCTOR_API_KEY": key})
    assert server.asked[0].headers["authorization"] == f"Bearer {key}"
    assert key not in got.model_dump_json() + str(found) + caplog.text
    if status == 200:
        assert got.text == "you said Bearer [API key]"
