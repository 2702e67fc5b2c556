"""The Triton client against a gRPC server of the same protocol that misbehaves on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from proctor.domain.answer_bounds import MAX_ANSWER_BYTES
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.triton.backend import TritonBackend
from proctor.inference.triton.wire import worded_failure
from proctor.inference.worker.backend import Probe
from proctor.inference.worker.window import Window

DIGEST = "sha256:" + "ab" * 32
ALL_INPUTS = (
    "text_input", "stream", "sampling_parameters", "exclude_input_in_output",
    "return_finish_reason", "return_num_input_tokens", "return_num_output_tokens",
)  # fmt: skip
#: A status and what is said with it.
Refusal = tuple[grpc.StatusCode, str]
Behaviour = Callable[[AsyncIterator[Any]], AsyncIterator[Any]]


def text_tensor(text: bytes) -> bytes:
    return len(text).to_bytes(4, "little") + text


def prompt_of(request: Any) -> str:
    names = [tensor.name for tensor in request.inputs]
    return str(request.raw_input_contents[names.index("text_input")][4:].decode())


def piece(request_id: str, text: str | None, *, final: bool | None = True, **extra: bytes) -> Any:
    """A response as Triton sends it; `final=None` is a server that says nothing of final responses."""
    response = service_pb2.ModelStreamInferResponse()
    inner = response.infer_response
    inner.id = request_id
    if final is not None:
        inner.parameters["triton_final_response"].bool_param = final
    if text is not None:
        inner.outputs.add(name="text_output", datatype="BYTES", shape=[1])
        inner.raw_output_contents.append(text_tensor(text.encode()))
    for name, value in extra.items():
        inner.outputs.add(name=name, datatype="BYTES" if name == "finish_reason" else "UINT32", shape=[1])
        inner.raw_output_contents.append(value)
    return response


def refusal(request_id: str, message: str) -> Any:
    response = service_pb2.ModelStreamInferResponse(error_message=message)
    response.infer_response.id = request_id
    return response


class Server(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Answers as a behaviour says, and keeps what it was asked."""

    def __init__(
        self, behaviour: Behaviour, inputs: tuple[str, ...], digest: str, refusals: dict[str, Refusal] | None = None
    ) -> None:
        self.behaviour, self.inputs, self.digest, self.refusals = behaviour, inputs, digest, refusals
        self.asked: list[Any] = []
        #: Questions about the model that find their connection cut.
        self.cut = 0

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        return service_pb2.ServerMetadataResponse(name="triton", version="2.99.0")

    async def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=True)

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        if self.cut:
            self.cut -= 1
            await context.abort(grpc.StatusCode.UNAVAILABLE, "Stream removed (sendmsg: Broken pipe (32))")
        response = service_pb2.ModelConfigResponse()
        response.config.backend = "vllm"
        response.config.model_transaction_policy.decoupled = self.refusals is None
        for name in self.inputs:
            response.config.input.add(name=name)
        if self.digest:
            response.config.parameters["model_digest"].string_value = self.digest
        return response

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """What a model that is not decoupled is asked by; on a stream its answers would wait for each other."""
        self.asked.append(request)
        prompt = prompt_of(request)
        if prompt in (self.refusals or {}):
            await context.abort(*(self.refusals or {})[prompt])
        return piece(request.id, prompt.upper(), final=None).infer_response

    async def ModelStreamInfer(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async def recorded() -> AsyncIterator[Any]:
            async for request in requests:
                self.asked.append(request)
                yield request

        async for response in self.behaviour(recorded()):
            yield response


def ask(
    behaviour: Behaviour,
    *prompts: str,
    inputs: tuple[str, ...] = ALL_INPUTS,
    digest: str = DIGEST,
    deadline_s: float = 10.0,
    window: Window | None = None,
    decoding: Decoding | None = None,
    refusals: dict[str, Refusal] | None = None,
    cut: int = 0,
) -> tuple[list[Completion], Server]:
    """Completions of the prompts, and the server that was asked."""
    servicer = Server(behaviour, inputs, digest, refusals)
    servicer.cut = cut

    async def run() -> list[Completion]:
        server = grpc.aio.server()
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        backend = TritonBackend(spec(f"grpc://127.0.0.1:{port}"), window=window)
        try:
            asked = [Trial(arm=Arm.CANONICAL, item_id=str(n), prompt=text) for n, text in enumerate(prompts)]
            return await backend.complete(asked, decoding or Decoding(), deadline_s=deadline_s)
        finally:
            await backend.close()
            await server.stop(None)

    return asyncio.run(run()), servicer


def spec(url: str, version: str = DIGEST) -> EndpointSpec:
    return EndpointSpec(backend="triton", url=url, served_name="model", model_version=version)


async def echo(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield piece(request.id, prompt_of(request).upper())


def test_a_server_without_finish_reason_and_counts_leaves_them_unknown() -> None:
    older = ("text_input", "stream", "sampling_parameters", "exclude_input_in_output")
    got, server = ask(echo, "a", inputs=older, digest="")
    assert (got[0].finish_reason, got[0].input_tokens, got[0].model_digest) == ("unknown", None, None)
    assert [tensor.name for tensor in server.asked[0].inputs] == list(older)


@pytest.mark.parametrize(("times", "error"), [(2, None), (9, "Broken pipe")])
def test_a_connection_that_is_still_found_cut_a_moment_later_costs_no_answer(times: int, error: str | None) -> None:
    [got], _ = ask(echo, "a", cut=times)
    assert got.text == ("" if error else "A")
    assert got.error is None if error is None else error in str(got.error)


def test_a_model_that_cannot_leave_the_prompt_out_has_it_removed() -> None:
    async def parrot(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece(request.id, prompt_of(request) + " four")

    got, _ = ask(parrot, "two and two?", inputs=("text_input", "sampling_parameters"))
    assert got[0].text == " four"


@pytest.mark.parametrize("last", ["", None])
def test_an_answer_in_pieces_is_put_together_up_to_the_final_one(last: str | None) -> None:
    async def streaming(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece(request.id, "one ", final=False)
            yield piece(request.id, "two", final=False)
            yield piece(request.id, last, final=True)

    got, server = ask(streaming, "a")
    assert got[0].text == "one two"
    assert server.asked[0].parameters["triton_enable_empty_final_response"].bool_param


def test_a_character_that_is_split_between_two_pieces_arrives_whole() -> None:
    async def splitting(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            for part, final in (("é".encode()[:1], False), ("é".encode()[1:], True)):
                response = piece(request.id, "", final=final)
                response.infer_response.raw_output_contents[0] = text_tensor(part)
                yield response

    assert ask(splitting, "a")[0][0].text == "é"


def test_pieces_past_the_limit_together_are_refused() -> None:
    async def endless(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            for _ in range(3):
                yield piece(request.id, "x" * (MAX_ANSWER_BYTES // 2), final=False)

    got, _ = ask(endless, "a")
    assert "512 tokens have at most 65,536 bytes" in str(got[0].error)


def test_a_server_that_knows_no_final_responses_is_taken_at_its_first() -> None:
    async def plain(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece(request.id, "x", final=None)

    assert ask(plain, "a", "b")[0][1].text == "x"


def test_an_error_belongs_to_the_request_whose_id_it_carries() -> None:
    async def moody(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            text = prompt_of(request)
            if text == "bad":
                yield refusal(request.id, "prompt is longer than the context\n\x1b[31mred")
            elif text == "full":
                yield refusal(request.id, "Exceeds maximum queue size")
            else:
                yield piece(request.id, text)

    got, _ = ask(moody, "a", "bad", "full", "b")
    assert [c.text for c in got] == ["a", "", "", "b"]
    assert [c.finish_reason for c in got] == ["unknown", "error", "error", "unknown"]
    assert got[1].error == "prompt is longer than the context [31mred"
    assert [c.retryable for c in got] == [False, False, True, False]


#: What Triton says of a model that it had, and has taken down because it ends.
UNLOADED = "Request for unknown model: 'm' has no available versions"
#: What it says to a request that comes a moment before that.
STOPPING = "[request id: 41] Server is stopping, scheduler for model has stopped accepting new inference requests"


@pytest.mark.parametrize("said", [UNLOADED, STOPPING])
def test_a_server_that_ends_is_away_and_its_answers_are_no_answers(said: str) -> None:
    async def leaving(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield refusal(request.id, said)

    got, _ = ask(leaving, "a")
    assert (got[0].error, got[0].retryable) == (said, True)
    assert worded_failure(said).unavailable
    assert not worded_failure("Request for unknown model: 'm' is not found").retryable


def test_a_refusal_in_words_that_are_not_known_is_no_answer_until_it_is_said_again() -> None:
    said = iter(["the engine has met an issue"])

    async def stumbling(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            words = next(said, None)
            yield piece(request.id, prompt_of(request)) if words is None else refusal(request.id, words)

    got, server = ask(stumbling, "a")
    assert (got[0].text, got[0].error) == ("a", None)
    assert len(server.asked) == 2


def test_a_refusal_that_was_said_again_is_believed_of_the_other_prompts_at_once() -> None:
    async def refusing(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield refusal(request.id, f"prompt has {len(prompt_of(request))} tokens too many")

    got, server = ask(refusing, "a", "bb", "ccc", window=Window(max_requests=1))
    assert [c.error for c in got] == [f"prompt has {n} tokens too many" for n in (1, 2, 3)]
    assert not any(c.retryable for c in got)
    assert len(server.asked) == 4


def test_a_model_that_is_not_decoupled_is_asked_by_calls_and_its_refusals_are_told_apart() -> None:
    refusals = {
        "long": (grpc.StatusCode.INTERNAL, "prompt is longer than the context"),
        "sick": (grpc.StatusCode.INTERNAL, "Stub process 'm_0_0' is not healthy."),
        "reset": (grpc.StatusCode.INTERNAL, "Received RST_STREAM with error code 2"),
        "full": (grpc.StatusCode.UNAVAILABLE, "Exceeds maximum queue size"),
        "bad": (grpc.StatusCode.INVALID_ARGUMENT, "unexpected shape"),
        "strange": (grpc.StatusCode.NOT_FOUND, "Request for unknown model: 'm' is not found"),
        **{f"leaving {code.name}": (code, UNLOADED) for code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INTERNAL)},
    }
    got, server = ask(echo, "a", *refusals, refusals=refusals)
    assert [c.text for c in got] == ["A", *[""] * len(refusals)]
    assert [c.retryable for c in got] == [False, False, True, True, True, False, False, True, True]
    assert all(said in str(c.error) for c, (_, said) in zip(got[1:], refusals.values(), strict=True))
    assert "triton_enable_empty_final_response" not in server.asked[0].parameters


def test_an_end_without_an_answer_is_an_error_and_not_an_empty_answer() -> None:
    async def silent(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece(request.id, None)

    got, _ = ask(silent, "a")
    assert got[0].error == "the server ended the request without an answer"


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xff\xff\xff", b"\x05\x00\x00\x00abc", b"\x01"],
    ids=["a length beyond everything", "half a string", "half a length"],
)
def test_a_damaged_tensor_fails_its_own_trial(raw: bytes) -> None:
    async def damaged(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            response = piece(request.id, "fine")
            if prompt_of(request) == "a":
                response.infer_response.raw_output_contents[0] = raw
            yield response

    got, _ = ask(damaged, "a", "b")
    assert "half of a string tensor" in str(got[0].error)
    assert got[1].text == "fine"


def test_invalid_utf8_in_an_answer_is_replaced() -> None:
    async def binary(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            response = piece(request.id, "")
            response.infer_response.raw_output_contents[0] = text_tensor(b"a\xffb")
            yield response

    assert ask(binary, "a")[0][0].text == "a\ufffdb"


def test_unasked_and_repeated_responses_change_nothing() -> None:
    async def noisy(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield piece("nobody", "ghost")
            yield piece(request.id, prompt_of(request))
            yield piece(request.id, "twice")

    assert [c.text for c in ask(noisy, "a", "b", "c")[0]] == ["a", "b", "c"]


def test_a_stream_that_breaks_fails_what_is_open_and_nothing_else() -> None:
    async def dropping(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            if prompt_of(request) == "c":
                return
            yield piece(request.id, prompt_of(request))

    got, _ = ask(dropping, "a", "b", "c", "d", window=Window(max_requests=1))
    assert [c.text for c in got] == ["a", "b", "", ""]
    assert all(c.retryable and "ended the stream" in str(c.error) for c in got[2:])


def test_an_abort_says_why() -> None:
    async def aborting(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for _ in requests:
            raise RuntimeError("boom")
        yield None

    got, _ = ask(aborting, "a")
    assert "UNKNOWN" in str(got[0].error)
    assert got[0].retryable


def test_no_more_requests_are_in_flight_than_the_window_allows() -> None:
    most = 0

    async def counting(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        nonlocal most
        waiting: list[str] = []
        queue: asyncio.Queue[str | None] = asyncio.Queue()

        async def collect() -> None:
            async for request in requests:
                await queue.put(request.id)
            await queue.put(None)

        collector = asyncio.create_task(collect())
        while (request_id := await queue.get()) is not None:
            waiting.append(request_id)
            most = max(most, len(waiting))
            if len(waiting) == 4:
                for one in waiting:
                    yield piece(one, "x")
                waiting.clear()
        await collector

    got, _ = ask(counting, *["p"] * 40, window=Window(max_requests=4))
    assert {c.text for c in got} == {"x"}
    assert most == 4


def test_the_decoding_policy_travels_as_vllms_sampling_parameters() -> None:
    import json

    policy = Decoding(temperature=0.5, top_p=0.9, max_tokens=33, seed=7, stop=("\n\n", "é"))
    _, server = ask(echo, "a", decoding=policy)
    names = [tensor.name for tensor in server.asked[0].inputs]
    raw = server.asked[0].raw_input_contents[names.index("sampling_parameters")]
    assert json.loads(raw[4:]) == {
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 33, "seed": 7, "stop": ["\n\n", "é"]
    }  # fmt: skip


def test_a_model_with_other_tensors_is_refused_by_name() -> None:
    with pytest.raises(EndpointError, match="INPUT0, not text_input"):
        ask(echo, "a", inputs=("INPUT0",))


def test_a_digest_that_is_none_counts_as_unreported() -> None:
    got, _ = ask(echo, "a", digest="latest")
    assert got[0].model_digest is None


@pytest.mark.parametrize("url", ["http://host:8001", "grpc://", "grpc://host:8001/path", "grpc://host:99999999"])
def test_an_url_that_is_not_tritons_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="grpc://host:8001"):
        TritonBackend(spec(url))


def test_a_probe_of_a_server_that_reports_no_digest_is_good_and_unverified() -> None:
    servicer = Server(echo, ALL_INPUTS, "")

    async def run() -> Probe:
        server = grpc.aio.server()
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        backend = TritonBackend(spec(f"grpc://127.0.0.1:{port}"))
        try:
            return await backend.probe()
        finally:
            await backend.close()
            await server.stop(None)

    assert asyncio.run(run()) == Probe(True, None, "Triton 2.99.0 (vllm backend)")
