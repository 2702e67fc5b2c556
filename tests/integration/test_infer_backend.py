"""The article's `/infer` contract against a real HTTP server: what is sent, and what is read."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.http.infer import InferBackend
from proctor.inference.http.infer_wire import task_id
from proctor.inference.worker import retry
from proctor.inference.worker.backend import Probe
from tests.answering_http import Asked, Reply, serving

PINNED = "sha256:" + "ab" * 6
FULL = PINNED + "ab" * 26
OTHER = "sha256:" + "cd" * 32


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "_BASE_S", 0.01)


def spec(url: str, *, version: str | None = PINNED) -> EndpointSpec:
    return EndpointSpec(backend="infer", url=url, served_name="m", model_version=version, gets_keys=True)


def trial(prompt: str, item: str = "0") -> Trial:
    return Trial(arm=Arm.CANONICAL, item_id=item, prompt=prompt)


def complete(url: str, *prompts: str, environ: dict[str, str] | None = None, decoding: Any = None) -> list[Completion]:
    async def run() -> list[Completion]:
        backend = InferBackend(spec(url), environ=environ or {}, rng=random.Random(1))
        try:
            asked = [trial(text, str(number)) for number, text in enumerate(prompts)]
            return await backend.complete(asked, decoding or Decoding(), deadline_s=20.0)
        finally:
            await backend.close()

    return asyncio.run(run())


def probe(url: str) -> Probe:
    async def run() -> Probe:
        backend = InferBackend(spec(url), environ={})
        try:
            return await backend.probe()
        finally:
            await backend.close()

    return asyncio.run(run())


def says(**members: Any) -> Reply:
    return Reply(body=json.dumps(members).encode())


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", "/infer"),
        ("/", "/infer"),
        ("/v1", "/v1/infer"),
        ("/v1/infer", "/v1/infer"),
        ("/v1/infer/", "/v1/infer"),
        ("/infer/model-7", "/infer/model-7/infer"),
        ("/preinfer", "/preinfer/infer"),
    ],
)
def test_the_question_goes_to_the_url_itself_or_to_infer_below_it(path: str, asked: str) -> None:
    with serving(lambda n, _: says(response="x")) as server:
        assert complete(server.url + path, "a")[0].text == "x"
    assert server.asked[0].path == asked


def test_a_prompt_and_a_task_id_are_sent_and_nothing_else() -> None:
    policy = Decoding(temperature=0.5, max_tokens=7, seed=3, stop=("\n",))
    with serving(lambda n, _: says(response="x")) as server:
        complete(server.url, "é\x00🙂", decoding=policy, environ={"OPENAI_API_KEY": "sk-for-openai-alone"})
    [asked] = server.asked
    assert asked.body == {"prompt": "é\x00🙂", "task_id": task_id(trial("é\x00🙂"), spec(server.url))}
    assert asked.headers["content-type"] == "application/json"
    assert "authorization" not in asked.headers


def test_a_task_is_known_by_its_trial_its_prompt_and_the_model_version() -> None:
    one = task_id(trial("a"), spec("http://h"))
    assert one.startswith(trial("a").trial_id)
    assert one == task_id(trial("a"), spec("http://elsewhere"))
    others = [
        task_id(trial("b"), spec("http://h")),
        task_id(trial("a", "1"), spec("http://h")),
        task_id(trial("a"), spec("http://h", version=None)),
    ]
    assert len({one, *others}) == 4


def test_the_key_of_the_environment_is_sent_to_the_endpoint() -> None:
    with serving(lambda n, _: says(response="x")) as server:
        complete(server.url, "a", environ={"PROCTOR_API_KEY": "k"})
    assert server.asked[0].headers["authorization"] == "Bearer k"


def test_a_bare_response_says_nothing_of_its_end_its_tokens_or_its_weights() -> None:
    with serving(lambda n, _: says(response="x")) as server:
        [got] = complete(server.url, "a")
    assert (got.finish_reason, got.input_tokens, got.output_tokens, got.model_digest) == ("unknown", None, None, None)


@pytest.mark.parametrize(
    ("members", "read"),
    [
        ({"finish_reason": "length"}, {"finish_reason": "length"}),
        ({"finish_reason": "content_filter"}, {"finish_reason": "unknown"}),
        ({"finish_reason": None, "input_tokens": None, "model_version": None}, {"finish_reason": "unknown"}),
        ({"input_tokens": 0, "output_tokens": 9}, {"input_tokens": 0, "output_tokens": 9}),
        ({"model_version": FULL}, {"model_digest": FULL}),
        ({"model_version": PINNED}, {"model_digest": None}),
        ({"something": "else"}, {"finish_reason": "unknown"}),
    ],
)
def test_members_beside_the_response_are_read(members: dict[str, Any], read: dict[str, Any]) -> None:
    with serving(lambda n, _: says(response="x", **members)) as server:
        [got] = complete(server.url, "a")
    assert (got.text, got.error) == ("x", None)
    assert read.items() <= got.model_dump().items()


@pytest.mark.parametrize("version", [OTHER, "v7", "sha256:abab", ""])
def test_a_version_that_is_not_the_pinned_one_ends_the_shard(version: str) -> None:
    with (
        serving(lambda n, _: says(response="x", model_version=version)) as server,
        pytest.raises(EndpointError, match=f"the suite pins {PINNED}"),
    ):
        complete(server.url, "a", "b")


@pytest.mark.parametrize(
    ("body", "complaint", "retryable"),
    [
        (b"<html>gateway</html>", "not JSON: '<html>gateway</html>'", True),
        (b"", "not JSON", True),
        (b"[" * 40_000, "not JSON", True),
        (b"[" * 100_000, "more than 50,000 values", False),
        (b"9" * 5_000, "not JSON", True),
        (b'{"response": NaN}', "NaN is no JSON", True),
        (b'{"response": "a", "response": "b"}', "'response' stands in it twice", True),
        (b"\xff\xfe", "not JSON", True),
        (b'"response"', 'is "response", not a JSON object', True),
        (b"{}", "has no response", True),
        (b'{"detail": "model is\\u001b[2J loading"}', "has no response: model is [2J loading", True),
        (b'{"response": null}', "response is null, not a text", False),
        (b'{"response": ["a"]}', "response is a list, not a text", False),
        (b'{"response": "a", "finish_reason": 1}', "finish_reason is 1, not a text", False),
        (b'{"response": "a", "input_tokens": -1}', "input_tokens is -1, not a whole number", False),
        (b'{"response": "a", "output_tokens": true}', "output_tokens is true", False),
        (b'{"response": "a", "output_tokens": "9"}', 'output_tokens is "9"', False),
        (b'{"response": "a", "model_version": 7}', "model_version is 7, not a text", False),
        (b'{"response": "a", "task_id": "another"}', 'to another task, "another"', True),
    ],
    ids=lambda value: value[:24].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_an_answer_outside_the_contract_is_an_error_of_its_trial(body: bytes, complaint: str, retryable: bool) -> None:
    def reply(_: int, asked: Asked) -> Reply:
        return Reply(body=body) if asked.body["prompt"] == "bad" else says(response="fine")

    with serving(reply) as server:
        got = complete(server.url, "a", "bad", "b")
    assert [c.text for c in got] == ["fine", "", "fine"]
    assert complaint in str(got[1].error)
    assert got[1].retryable is retryable


def test_a_redirect_is_not_followed() -> None:
    with serving(lambda n, _: Reply(307, headers={"location": "http://169.254.169.254/infer"})) as server:
        [got] = complete(server.url, "a")
    assert "redirect (307), which is not followed" in str(got.error)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [200, 204, 401, 404, 405, 501, 503])
def test_whoever_answers_http_is_there_and_nothing_is_claimed_of_its_model(status: int) -> None:
    with serving(lambda n, _: Reply(status, headers={"server": "uvicorn"})) as server:
        found = probe(server.url + "/v1/infer")
    assert found.ok
    assert found.model_digest is None
    assert "takes no decoding settings (" in found.server
    assert "unchecked" in found.detail
    assert server.asked[0].path == "/v1/infer"


@pytest.mark.parametrize("url", ["grpc://host:1", "https://", "https://u:pw@host/infer", "https://host/infer?key=pw"])
def test_an_url_that_is_not_http_or_holds_a_secret_is_refused_without_it(url: str) -> None:
    with pytest.raises(BadInputError, match="https://host/v1/infer") as refusal:
        InferBackend(spec(url))
    assert "pw" not in str(refusal.value)
