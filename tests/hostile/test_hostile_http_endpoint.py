"""An endpoint over HTTP that is out to fill the worker's memory, to hold up its event loop, or to lie about tokens."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from proctor.domain.answer_bounds import MAX_ANSWER_BYTES, max_answer_bytes
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.http import infer_wire
from proctor.inference.http.infer import InferBackend
from proctor.inference.http.openai import OpenAIBackend
from proctor.inference.http.reply_bounds import (
    MAX_HEAD_LINES,
    MAX_LISTING_BYTES,
    MAX_PIECES,
    MAX_VALUES,
    load_json,
    max_reply_bytes,
)
from proctor.inference.worker import token_counts
from proctor.inference.worker.backend import MAX_ERROR_CHARACTERS, Probe
from proctor.inference.worker.retry import asked_wait_s
from proctor.inference.worker.token_counts import UNSEEN_TOKENS
from tests.hostile.limited import run_limited
from tests.hostile.loop_watch import LONGEST_STEP_S, loop_watch
from tests.hostile.raw_http import Respond, raw_http, response

BACKENDS: dict[str, type[InferBackend] | type[OpenAIBackend]] = {"infer": InferBackend, "openai": OpenAIBackend}
Attack = Callable[[], Iterable[bytes]]


def spec(url: str, backend: Any = "infer") -> EndpointSpec:
    return EndpointSpec(backend=backend, url=url, served_name="m", model_version=None)


def ask(
    url: str, *, backend: str = "infer", prompts: int = 1, deadline_s: float = 20.0, **decoding: Any
) -> list[Completion]:
    """Completions of prompts, by a backend that has its connections open already."""

    async def run() -> list[Completion]:
        one = BACKENDS[backend](spec(url, backend), environ={})
        asked = [Trial(arm=Arm.CANONICAL, item_id=str(number), prompt="What?") for number in range(prompts)]
        try:
            return list(await one.complete(asked, Decoding(**decoding), deadline_s=deadline_s))
        finally:
            await one.close()

    return asyncio.run(run())


def probed(url: str, backend: str = "openai") -> Probe:
    async def run() -> Probe:
        one = BACKENDS[backend](spec(url, backend), environ={})
        try:
            return await one.probe()
        finally:
            await one.close()

    return asyncio.run(run())


def says(**members: Any) -> bytes:
    return json.dumps(members).encode()


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    token_counts._said.clear()
    yield
    token_counts._said.clear()


ASKED_IN_ONE_GIB = """
import asyncio, sys
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.http.infer import InferBackend

async def main():
    spec = EndpointSpec(backend="infer", url=sys.argv[1], served_name="m", model_version=None)
    one = InferBackend(spec, environ={})
    trials = [Trial(arm=Arm.CANONICAL, item_id=str(n), prompt="?") for n in range(8)]
    found = await one.probe()
    for completion in await one.complete(trials, Decoding(max_tokens=131072), deadline_s=20.0):
        print(completion.error)
    await one.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", lambda data: gzip.compress(gzip.compress(data))),
        ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
        ("deflate", zlib.compress),
        ("zstd", lambda data: b"\x28\xb5\x2f\xfd" + data[:64]),
        ("br", lambda data: data[:64]),
    ],
)
def test_an_answer_that_would_have_to_be_unpacked_is_refused_in_one_gib(
    coding: str, pack: Callable[[bytes], bytes]
) -> None:
    bomb = pack(bytes(32 << 20))
    with raw_http(lambda _: [response(bomb, content_encoding=coding)]) as url:
        ended = run_limited(ASKED_IN_ONE_GIB, url)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count(f"answered in the content-encoding {coding!r}, though only identity is accepted") == 8


def test_identity_is_asked_for_and_accepted_when_it_is_named() -> None:
    heads: list[bytes] = []

    def answer(request: bytes) -> list[bytes]:
        heads.append(request.lower())
        return [response(says(response="B"), content_encoding="identity")]

    with raw_http(answer) as url:
        assert ask(url)[0].text == "B"
    assert b"accept-encoding: identity" in heads[0]


def endless_body() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield bytes(1 << 16)


def test_an_endless_body_is_read_up_to_the_bound_in_one_gib() -> None:
    with raw_http(lambda _: endless_body()) as url:
        ended = run_limited(ASKED_IN_ONE_GIB, url)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count(f"answered more than {max_reply_bytes(131_072):,} bytes") == 8


def test_an_endless_error_page_is_read_at_its_beginning() -> None:
    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 400 Bad Request\r\n\r\n"
        while True:
            yield b"no " * 20_000

    with raw_http(lambda _: endless()) as url:
        [got] = ask(url)
    assert "answered 400: no no no" in str(got.error)
    assert len(str(got.error)) <= MAX_ERROR_CHARACTERS


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "text", ["x" * (max_answer_bytes(8) + 1), "й" * (max_answer_bytes(8) // 2 + 1)], ids=["ascii", "two"]
)
def test_an_answer_longer_than_its_tokens_can_be_is_a_failure_with_the_reason_and_is_not_kept(
    backend: str, text: str
) -> None:
    body = says(response=text, choices=[{"text": text}])
    with raw_http(lambda _: [response(body)]) as url:
        [got] = ask(url, backend=backend, max_tokens=8)
    assert got.text == ""
    assert not got.retryable
    assert "answer" in str(got.error)
    assert "bytes" in str(got.error)


def always(body: bytes) -> Respond:
    return lambda _: [response(body)]


def test_the_longest_answer_of_the_tokens_is_kept_however_its_json_writes_it() -> None:
    longest = " " * (512 * 128)
    wordy = "Ж\n" * (max_answer_bytes(512) // 3)
    for text in (longest, wordy):
        body = json.dumps({"response": text}, ensure_ascii=len(json.dumps(text)) < max_reply_bytes(512) - 100).encode()
        with raw_http(always(body)) as url:
            assert ask(url, max_tokens=512)[0].text == text


@pytest.mark.parametrize(
    "count", [2**53 - 1, 2**53 - 2, UNSEEN_TOKENS + 512 + 1, UNSEEN_TOKENS + 4 * len("What?") + 513]
)
def test_a_count_that_no_such_request_can_have_is_left_out_and_said_once(
    count: int, caplog: pytest.LogCaptureFixture
) -> None:
    body = says(
        response="B", input_tokens=count, output_tokens=count,
        choices=[{"text": "B"}], usage={"prompt_tokens": count, "completion_tokens": count},
    )  # fmt: skip
    for backend in BACKENDS:
        caplog.clear()
        token_counts._said.clear()
        with raw_http(lambda _: [response(body)]) as url, caplog.at_level(logging.WARNING):
            got = ask(url, backend=backend, prompts=3)
        assert [one.text for one in got] == ["B"] * 3, "the answer itself is none the worse"
        assert {one.output_tokens for one in got} == {None}
        assert caplog.text.count("output tokens, and this request can have") == 1


def test_counts_that_a_request_can_have_are_kept() -> None:
    body = says(response="B", input_tokens=UNSEEN_TOKENS, output_tokens=UNSEEN_TOKENS + 512)
    with raw_http(lambda _: [response(body)]) as url:
        [got] = ask(url)
    assert (got.input_tokens, got.output_tokens) == (UNSEEN_TOKENS, UNSEEN_TOKENS + 512)


def doubled_key(members: int) -> bytes:
    names = [*(f"k{number}" for number in range(members)), f"k{members - 1}"]
    return b"{" + ",".join(f'"{name}":0' for name in names).encode() + b"}"


def tiny_chunks() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    for _ in range(10):
        yield b"1\r\n \r\n" * 5_000


def many_headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n" + b"".join(b"a%d: b\r\n" % n for n in range(5_000)) + b"content-length: 2\r\n\r\n{}"


def interim_responses() -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000


def body_of(data: bytes) -> Attack:
    return lambda: [response(data)]


ATTACKS: dict[str, tuple[Attack, str]] = {
    "a doubled key": (body_of(doubled_key(15_000)), "stands in it twice"),
    "empty lists": (body_of(b"[" + b"[]," * 1_300_000 + b"1]"), f"more than {MAX_VALUES:,} values"),
    "empty texts": (body_of(b"[" + b'"",' * 1_300_000 + b"1]"), f"more than {MAX_VALUES:,} values"),
    "numbers": (body_of(b"[" + b"1," * 2_000_000 + b"1]"), f"more than {MAX_VALUES:,} values"),
    "one long number": (body_of(b'{"response": ' + b"9" * 60_000 + b"}"), "not JSON"),
    "deep lists": (body_of(b"[" * 100_000), "not JSON"),
    "chunks of one byte": (tiny_chunks, f"in more than {MAX_PIECES:,} pieces"),
    "five thousand headers": (many_headers, f"more than {MAX_HEAD_LINES:,} lines of headers"),
    "five thousand headers after an interim response": (
        lambda: [b"HTTP/1.1 100 Continue\r\n\r\n", *many_headers()],
        f"more than {MAX_HEAD_LINES:,} lines of headers",
    ),
    "escapes": (body_of(b'{"response": "' + b"\\n" * (1 << 20) + b'"}'), ""),
    "a long text": (body_of(b'{"response": "' + "Ж".encode() * (1 << 20) + b'"}'), ""),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_answer_holds_the_event_loop_up(attack: str) -> None:
    respond, complaint = ATTACKS[attack]
    with raw_http(lambda _: [response(says(response="B"))]) as url:
        ask(url)  # what is loaded on first use is not the answer's doing
    with raw_http(lambda _: respond()) as url, loop_watch() as watch:
        [got] = ask(url, max_tokens=131_072)
    assert complaint in str(got.error)
    assert (got.error is None) == (not complaint)
    assert watch.longest_s < LONGEST_STEP_S


def test_interim_responses_without_end_are_ended_long_before_the_deadline() -> None:
    with raw_http(lambda _: [response(says(response="B"))]) as url:
        ask(url)  # what is loaded on first use is not the answer's doing
    with raw_http(lambda _: interim_responses()) as url, loop_watch() as watch:
        [got] = ask(url, deadline_s=120.0)
    assert "bytes to one request" in str(got.error)
    assert not got.retryable
    assert watch.longest_s < LONGEST_STEP_S


def test_a_doubled_key_is_found_in_linear_time_and_named() -> None:
    # Past what is read at all: quadratic, it would take half an hour.
    with pytest.raises(ValueError, match="'k199999' stands in it twice"):
        json.loads(doubled_key(200_000), object_pairs_hook=infer_wire._once)


def test_values_in_texts_are_no_values() -> None:
    text = "[{,}]" * 60_000
    assert load_json(says(response=text))["response"] == text


def test_cookies_are_not_kept_nor_sent_back() -> None:
    heads: list[bytes] = []

    def answer(request: bytes) -> list[bytes]:
        heads.append(request.lower())
        named = b"".join(b"set-cookie: a%d-%d=b; Max-Age=99999\r\n" % (len(heads), n) for n in range(200))
        body = says(response="B")
        return [b"HTTP/1.1 200 OK\r\n" + named + b"content-length: %d\r\n\r\n" % len(body) + body]

    with raw_http(answer) as url:
        assert [one.text for one in ask(url, prompts=20)] == ["B"] * 20
    assert not any(b"\r\ncookie:" in head for head in heads)


@pytest.mark.parametrize(
    "value",
    [
        "1e308", "inf", "nan", "-1", "9" * 50_000, "0x10", "Thu, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 0001 00:00:00 +2359", "Thu, 31 Dec " + "9" * 5_000 + " 23:59:59 GMT", "," * 50_000,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "name", ["retry-after", "retry-after-ms", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]
)
def test_whatever_a_header_asks_for_the_wait_is_finite(name: str, value: str) -> None:
    headers = {"x-ratelimit-remaining-tokens": "0", name: value}
    wait_s = asked_wait_s(headers, now=1_700_000_000.0)
    assert wait_s is None or 0.0 <= wait_s <= 600.0


def test_an_answer_that_drips_ends_at_the_deadline() -> None:
    def drip() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
        while True:
            yield b" "
            time.sleep(0.02)

    with raw_http(lambda _: drip()) as url:
        [got] = ask(url, deadline_s=0.3)
    assert "before the deadline" in str(got.error)
    assert got.latency_ms < 5_000


@pytest.mark.parametrize(
    "choice",
    [{"text": None, "finish_reason": "x" * 300_000}, {"text": 3, "finish_reason": [1]}, {"finish_reason": 1e308}],
    ids=["long", "list", "number"],
)
def test_a_finish_reason_of_any_kind_is_shown_briefly(choice: dict[str, Any]) -> None:
    with raw_http(lambda _: [response(says(choices=[choice]))]) as url:
        [got] = ask(url, backend="openai", max_tokens=4096)
    assert "holds no text" in str(got.error)
    assert len(str(got.error)) < 200


def test_a_finish_reason_that_is_too_deep_to_be_written_fails_its_own_trial() -> None:
    body = b'{"choices": [{"finish_reason": ' + b"[" * 900 + b"]" * 900 + b"}]}"
    with raw_http(lambda _: [response(body)]) as url:
        [got] = ask(url, backend="openai")
    assert "holds no text (finish_reason list)" in str(got.error)


def test_a_list_of_models_has_a_bound_and_long_names_are_cut() -> None:
    listing = says(data=[{"id": "other" * 50_000}])
    with raw_http(lambda _: [response(listing, server="s" * 50_000)]) as url:
        found = probed(url)
    assert not found.ok
    assert len(found.detail) < 300
    assert len(found.server) < 200
    with raw_http(lambda _: endless_body()) as url:
        assert f"more than {MAX_LISTING_BYTES:,} bytes" in probed(url).detail


def test_the_bounds_leave_room_for_the_largest_reply() -> None:
    assert max_reply_bytes(131_072) > 2 * MAX_ANSWER_BYTES
