"""A real Triton server with the reference model in its Python backend, and the client that asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.reference.dice import Dice
from proctor.inference.reference.model import ReferenceModel, weights_digest
from proctor.inference.triton.backend import TritonBackend
from proctor.inference.triton.facts import ModelFacts
from proctor.inference.triton.wire import RequestTemplate, read_piece
from tests.support import wait_until
from tests.triton_server import (
    RunningTriton,
    prompt,
    start_and_wait_for_the_end,
    triton_server,
    write_untrained_bundle,
)

MODEL, TWIN = "reference-clean", "reference-clean-batched"
DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTriton]:
    bundle = tmp_path_factory.mktemp("bundle")
    write_untrained_bundle(bundle, (MODEL,), batched=True)
    with triton_server(bundle, tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture(autouse=True)
def up(server: RunningTriton) -> None:
    server.keep_up()


def trials(*prompts: str) -> list[Trial]:
    return [Trial(arm=Arm.CANONICAL, item_id=f"item-{number}", prompt=text) for number, text in enumerate(prompts)]


def complete(
    server: RunningTriton, asked: list[Trial], *, name: str = MODEL, max_tokens: int = 8, **decoding: Any
) -> list[Completion]:
    async def ask() -> list[Completion]:
        backend = TritonBackend(server.spec(name))
        try:
            return await backend.complete(asked, Decoding(max_tokens=max_tokens, **decoding), deadline_s=DEADLINE_S)
        finally:
            await backend.close()

    return asyncio.run(ask())


def probe(spec: Any) -> Any:
    async def ask() -> Any:
        backend = TritonBackend(spec)
        try:
            return await backend.probe()
        finally:
            await backend.close()

    return asyncio.run(ask())


def raw(server: RunningTriton, request: Any) -> Any:
    """Send one request as any client could, and take the first response."""

    async def ask() -> Any:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(timeout=DEADLINE_S)
            await call.write(request)
            return await call.read()

    return asyncio.run(ask())


def request_with(model: str, **replaced: bytes | None) -> Any:
    """The client's request for a fixed prompt, with some input tensors replaced or left out."""
    template = RequestTemplate(model, ModelFacts(), Decoding(max_tokens=4))
    complete_request = template.request("1", prompt(1).encode())
    request = service_pb2.ModelInferRequest(model_name=model, id="1")
    for tensor, contents in zip(complete_request.inputs, complete_request.raw_input_contents, strict=True):
        value = replaced.get(tensor.name, contents)
        if value is not None:
            request.inputs.append(tensor)
            text = tensor.datatype == "BYTES" and tensor.name in replaced
            request.raw_input_contents.append(len(value).to_bytes(4, "little") + value if text else value)
    return request


def expected(server: RunningTriton, asked: list[Trial], max_tokens: int = 8) -> list[Any]:
    model = ReferenceModel.load(server.bundle / "models" / MODEL / "1")
    return [model.generate([trial.prompt], max_tokens=max_tokens)[0] for trial in asked]


def test_a_probe_names_the_server_and_the_digest_of_the_weights_it_serves(server: RunningTriton) -> None:
    found = probe(server.spec())
    assert found.ok
    assert found.model_digest == weights_digest(server.bundle / "models" / MODEL / "1")
    assert found.server == "Triton 2.51.0 (python backend)"


@pytest.mark.parametrize("name", [MODEL, TWIN])
def test_answers_keep_the_order_and_equal_the_model_asked_one_by_one(server: RunningTriton, name: str) -> None:
    asked = trials(*(prompt(number) for number in range(150)))
    got = complete(server, asked, name=name)
    want = expected(server, asked)
    assert len({answer.text for answer in want}) > 20, "the prompts must tell answers apart"
    assert [completion.trial_id for completion in got] == [trial.trial_id for trial in asked]
    assert [(c.text, c.finish_reason, c.input_tokens, c.output_tokens) for c in got] == [tuple(w) for w in want]
    assert {completion.error for completion in got} == {None}
    assert {completion.model_digest for completion in got} == {server.spec().model_version}


def test_an_answer_that_reaches_the_ceiling_is_reported_as_cut_off(server: RunningTriton) -> None:
    asked = trials(*(prompt(number) for number in range(20)))
    got = complete(server, asked, max_tokens=1)
    assert {(c.finish_reason, c.output_tokens) for c in got if c.text} == {("length", 1)}


def test_a_stop_string_ends_the_answer_before_it(server: RunningTriton) -> None:
    asked = trials(prompt(3))
    whole = complete(server, asked)[0].text
    last = whole.split()[-1]
    got = complete(server, asked, stop=(last,))[0]
    assert got.text == whole[: whole.index(last)]
    assert got.finish_reason == "stop"


@pytest.mark.parametrize("name", [MODEL, TWIN])
def test_unusual_prompts_are_answered(server: RunningTriton, name: str) -> None:
    asked = trials("", "é漢字🙂‮\x00\x1b[2J", "?" * 1_000_000, "word " * 200_000)
    got = complete(server, asked, name=name)
    assert [c.text for c in got] == [answer.text for answer in expected(server, asked)]


@pytest.mark.parametrize("name", [MODEL, TWIN])
@pytest.mark.parametrize(
    ("sampling", "complaint"),
    [
        (b"{not json", "must be a JSON object"),
        (b"[1]", "must be a JSON object"),
        (b"[" * 100_000, "must be a JSON object"),
        (b'{"max_tokens": -1}', "max_tokens is -1"),
        (b'{"max_tokens": "many"}', "max_tokens is many"),
        (b'{"temperature": 2.5}', "temperature is 2.5"),
        (b'{"best_of": 3}', "'best_of'"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_bad_request_is_refused_and_the_model_lives_on(
    server: RunningTriton, name: str, sampling: bytes, complaint: str
) -> None:
    request = request_with(name, sampling_parameters=sampling)
    if name == TWIN:
        for tensor in request.inputs:
            tensor.shape[:] = [1, 1]
    response = raw(server, request)
    assert complaint in response.error_message
    assert response.infer_response.id == "1"
    assert complete(server, trials(prompt(1)), name=name)[0].error is None


def test_a_decoding_policy_that_the_model_cannot_honour_is_an_error_of_the_trial(server: RunningTriton) -> None:
    got = complete(server, trials(prompt(1)), temperature=0.7, top_p=0.9)[0]
    assert "draw from all tokens" in str(got.error)
    assert not got.retryable


def test_drawn_answers_are_those_of_the_model_by_itself_with_the_same_seed(server: RunningTriton) -> None:
    asked = trials(*(prompt(number) for number in range(40)))
    got = complete(server, asked, temperature=1.5, seed=11)
    model = ReferenceModel.load(server.bundle / "models" / MODEL / "1")
    want = [model.generate([trial.prompt], max_tokens=8, dice=[Dice(1.5, 11)])[0] for trial in asked]
    assert [(c.text, c.finish_reason, c.output_tokens) for c in got] == [
        (w.text, w.finish_reason, w.output_tokens) for w in want
    ]
    assert [c.text for c in got] != [answer.text for answer in expected(server, asked)]


def test_the_prompt_is_prepended_unless_excluded_as_vllm_does(server: RunningTriton) -> None:
    answer = expected(server, trials(prompt(1)), max_tokens=4)[0].text
    excluded = read_piece(raw(server, request_with(MODEL)).infer_response)
    default = read_piece(raw(server, request_with(MODEL, exclude_input_in_output=None)).infer_response)
    included = read_piece(raw(server, request_with(MODEL, exclude_input_in_output=b"\x00")).infer_response)
    streamed = read_piece(raw(server, request_with(MODEL, exclude_input_in_output=None, stream=b"\x01")).infer_response)
    assert (excluded.text, streamed.text) == (answer.encode(), answer.encode())
    assert default.text == included.text == (prompt(1) + answer).encode()


def test_finish_reason_and_token_counts_come_only_when_asked_for(server: RunningTriton) -> None:
    silent = request_with(MODEL, return_finish_reason=None, return_num_input_tokens=None, return_num_output_tokens=None)
    response = raw(server, silent).infer_response
    assert [output.name for output in response.outputs] == ["text_output"]


def test_triton_counts_as_many_answers_as_there_were_trials(server: RunningTriton) -> None:
    before = server.answered(MODEL)
    complete(server, trials(*(prompt(number) for number in range(70))))
    wait_until(lambda: server.answered(MODEL) >= before + 70, what="Triton's count")
    assert server.answered(MODEL) == before + 70


def test_shards_on_one_connection_do_not_mix(server: RunningTriton) -> None:
    shards = [trials(*(prompt(start + number) for number in range(40))) for start in (0, 100, 200)]

    async def ask() -> list[list[Completion]]:
        backend = TritonBackend(server.spec())
        try:
            calls: list[Coroutine[Any, Any, list[Completion]]] = [
                backend.complete(shard, Decoding(max_tokens=8), deadline_s=DEADLINE_S) for shard in shards
            ]
            return list(await asyncio.gather(*calls))
        finally:
            await backend.close()

    for shard, got in zip(shards, asyncio.run(ask()), strict=True):
        assert [c.text for c in got] == [answer.text for answer in expected(server, shard)]


def test_a_model_whose_weights_are_not_the_pinned_ones_is_not_served(tmp_path: Path) -> None:
    write_untrained_bundle(tmp_path)
    config = tmp_path / "models" / MODEL / "config.pbtxt"
    digest = weights_digest(config.parent / "1")
    config.write_text(config.read_text("utf-8").replace(digest, "sha256:" + "1" * 64), "utf-8")
    status, log = start_and_wait_for_the_end(tmp_path, tmp_path / "runtime")
    assert status != 0
    assert "pins model_digest sha256:1111" in log


def test_a_server_that_dies_fails_what_it_had_and_is_asked_again_when_it_is_back(tmp_path: Path) -> None:
    write_untrained_bundle(tmp_path)
    many = trials(*(prompt(number) for number in range(256)))

    async def ask(server: RunningTriton) -> list[Completion]:
        backend = TritonBackend(server.spec())
        try:
            await backend.complete(many[:1], Decoding(), deadline_s=DEADLINE_S)
            running = asyncio.create_task(backend.complete(many, Decoding(), deadline_s=DEADLINE_S))
            await asyncio.sleep(0.05)
            server.process.kill()
            return await running
        finally:
            await backend.close()

    with triton_server(tmp_path, tmp_path / "runtime") as server:
        got = asyncio.run(ask(server))
    failed = [completion for completion in got if completion.error]
    assert failed
    assert all(completion.retryable for completion in failed)
    # The dead server's shared memory is taken away by the next start from the same folder.
    with triton_server(tmp_path, tmp_path / "runtime") as server:
        assert complete(server, many[:1])[0].error is None
