"""What endpoints and the servers around them send: answers, model configurations, tensors, metrics, addresses."""

from __future__ import annotations

import json
import struct
from typing import Any

from google.protobuf.message import DecodeError
from tritonclient.grpc import model_config_pb2, service_pb2

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.balancing.queue_watch import pending_requests
from proctor.inference.http import infer_wire, openai_wire
from proctor.inference.triton.facts import read_facts
from proctor.inference.triton.pieces import AnswerBounds, Pieces
from proctor.inference.triton.stub import read_streamed
from proctor.inference.triton.tensors import finished
from proctor.inference.triton.wire import RequestTemplate, read_piece
from proctor.inference.worker.backend import Answer, TrialFailure, answered
from proctor.inference.worker.retry import asked_wait_s
from tests.fuzz.target import Target

_SPEC = EndpointSpec(
    backend="infer", url="http://127.0.0.1:1/infer", served_name="m", model_version="sha256:" + "a1b2c3d4e5f6"
)
_TRIAL = Trial(arm=Arm.CANONICAL, item_id="a", prompt="How many?")
_DECODING = Decoding(max_tokens=16)


def _check(answer: Answer) -> None:
    """What is read can be stored, and read again."""
    completion = answered(_TRIAL, _SPEC, answer, max_tokens=_DECODING.max_tokens, latency_s=0.1)
    assert type(completion).model_validate_json(completion.model_dump_json()) == completion
    for count in (completion.input_tokens, completion.output_tokens):
        assert count is None or 0 <= count < 1 << 18, f"a count of {count} is believed"


def _feed_infer(data: bytes) -> None:
    _check(infer_wire.read_answer(data, _TRIAL, _SPEC))


def _feed_openai(data: bytes) -> None:
    for chat in (True, False):
        try:
            _check(openai_wire.read_answer(data, chat=chat))
        except TrialFailure:
            continue


def _infer_answers() -> list[bytes]:
    task = infer_wire.task_id(_TRIAL, _SPEC)
    full = {"response": "7", "finish_reason": "stop", "input_tokens": 3, "output_tokens": 1, "task_id": task}
    return [b'{"response": "7"}', json.dumps({**full, "model_version": "sha256:" + "a1b2c3d4e5f6" + "0" * 52}).encode()]


def _openai_answers() -> list[bytes]:
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    return [
        json.dumps({"choices": [{"message": {"content": "7"}, "finish_reason": "stop"}], "usage": usage}).encode(),
        json.dumps({"choices": [{"text": "7\\ud83d\\ude00", "finish_reason": "length"}], "usage": usage}).encode(),
        b'{"error": {"message": "no such model", "code": 404}}',
    ]


def _config(*names: str, **fields: Any) -> Any:
    config = model_config_pb2.ModelConfig(name="m", **fields)
    for name in names:
        kind = model_config_pb2.TYPE_INT32 if name == "max_tokens" else model_config_pb2.TYPE_STRING
        config.input.add(name=name.rstrip("?"), data_type=kind, optional=name.endswith("?"))
    return config


def _configs() -> list[bytes]:
    vllm = _config("text_input", "stream?", "sampling_parameters?", backend="vllm")
    vllm.parameters["model_digest"].string_value = "sha256:" + "0" * 64
    vllm.model_transaction_policy.decoupled = True
    tensorrt = _config("text_input", "max_tokens", "bad_words?", "stop_words?", platform="ensemble", max_batch_size=4)
    return [vllm.SerializeToString(), tensorrt.SerializeToString()]


def _feed_config(data: bytes) -> None:
    facts = read_facts(model_config_pb2.ModelConfig.FromString(data), "m", "grpc://host:8001")
    RequestTemplate("m", facts, _DECODING).request("1", b"How many?")
    assert len(facts.backend) <= 40


def _response(text: bytes, *, final: bool, **counts: int) -> Any:
    response = service_pb2.ModelInferResponse(model_name="m", id="1")
    response.parameters["triton_final_response"].bool_param = final
    for name, raw in (
        ("text_output", struct.pack("<I", len(text)) + text),
        ("finish_reason", struct.pack("<I", 4) + b"stop"),
        *((name, struct.pack("<I", count)) for name, count in counts.items()),
    ):
        response.outputs.add(name=name, datatype="BYTES", shape=[1])
        response.raw_output_contents.append(raw)
    return response


def _responses() -> list[bytes]:
    whole = _response(b"It is 7.", final=True, num_input_tokens=3, num_output_tokens=4)
    responses = (whole, _response(b"\xe2\x82", final=False))
    return [service_pb2.ModelStreamInferResponse(infer_response=one).SerializeToString() for one in responses]


def _feed_response(data: bytes) -> None:
    facts = read_facts(model_config_pb2.ModelConfig.FromString(_configs()[0]), "m", "grpc://host:8001")
    pieces = Pieces(AnswerBounds(_DECODING.max_tokens))
    pieces.add(read_piece(read_streamed(data).infer_response))
    _check(finished(pieces.answer(), facts, _DECODING))


def _feed_metrics(data: bytes) -> None:
    waiting = pending_requests(data, "m")
    assert waiting is None or waiting >= 0


def _feed_retry_headers(data: bytes) -> None:
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset-requests", "x-ratelimit-remaining-requests")
    lines = data.decode("latin-1").split("\n")
    wait = asked_wait_s(dict(zip(names, lines, strict=False)), now=1_800_000_000.0)
    assert wait is None or 0 <= wait <= 600, f"{wait} s would be waited"


TARGETS = (
    Target(
        "infer_answer",
        ("proctor.inference.http.infer_wire",),
        _feed_infer,
        _infer_answers,
        (TrialFailure, EndpointError),
        words=(b'"response"', b'"task_id"', b'"model_version"', b'"finish_reason"', b'"input_tokens"'),
    ),
    Target(
        "openai_answer",
        ("proctor.inference.http.openai_wire",),
        _feed_openai,
        _openai_answers,
        words=(b'"choices"', b'"message"', b'"content"', b'"usage"', b'"finish_reason"'),
    ),
    Target(
        "triton_config",
        ("proctor.inference.triton.facts", "proctor.inference.triton.tensors"),
        _feed_config,
        _configs,
        (DecodeError, EndpointError),
        words=(b"text_input", b"max_tokens", b"model_digest", b"sampling_parameters"),
    ),
    Target(
        "triton_response",
        ("proctor.inference.triton.stub", "proctor.inference.triton.wire", "proctor.inference.triton.pieces"),
        _feed_response,
        _responses,
        (TrialFailure,),
        words=(b"text_output", b"finish_reason", b"num_output_tokens", b"triton_final_response"),
    ),
    Target(
        "triton_metrics",
        ("proctor.inference.balancing.queue_watch",),
        _feed_metrics,
        lambda: [b'# HELP x y\nnv_inference_pending_request_count{model="m",version="1"} 3\nnv_x{a="b"} 1e309\n'],
        words=(b"nv_inference_pending_request_count{", b'model="m"', b"NaN", b"+Inf", b"\\n", b"# TYPE"),
    ),
    Target(
        "retry_headers",
        ("proctor.inference.worker.retry",),
        _feed_retry_headers,
        lambda: [b"3\n", b"\n250\n", b"Wed, 21 Oct 2026 07:28:00 GMT\n", b"\n\n1m30s\n0", b"\n\n6m0s\n0"],
        words=(b"1e308", b"-1", b"nan", b"inf", b"999999999999h", b"GMT", b"ms"),
        max_bytes=2048,
    ),
)  # fmt: skip
