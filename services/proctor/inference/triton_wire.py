"""The bytes that pass between the Triton client and a model with vLLM's tensors: requests out, responses in.

Built on tritonclient's generated messages instead of its `InferInput` and `InferResult`: those go through numpy, and
hide the request id of an error and the final flag of a decoupled response, which is what results are matched by.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tritonclient.grpc import service_pb2

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Decoding, FinishReason
from proctor.inference.backend import MAX_ANSWER_BYTES, TrialFailure, printable
from proctor.inference.vllm import sampling_parameters

#: Parameter of a model's configuration in which Proctor's models state the digest of their weights.
DIGEST_PARAMETER = "model_digest"

_TRUE, _FALSE = b"\x01", b"\x00"
_LENGTH = struct.Struct("<I")
_FINISH_REASONS: dict[bytes, FinishReason] = {b"stop": "stop", b"length": "length"}
#: What Triton says when a server, not the request, is at fault. Its stream carries a text and no status code.
_PASSING = (
    "not healthy",
    "queue size",
    "unavailable",
    "timeout",
    "timed out",
    "cancelled",
    "out of memory",
    "shutting",
)


class ModelFacts(NamedTuple):
    """What a model's configuration says of it. `inputs` is empty where the server keeps it to itself."""

    digest: str | None
    backend: str
    batched: bool
    inputs: frozenset[str]


class Piece(NamedTuple):
    """One response of possibly several to a request."""

    text: str | None
    finish_reason: FinishReason
    input_tokens: int | None
    output_tokens: int | None
    final: bool


def read_facts(config: Any, model: str, url: str) -> ModelFacts:
    """What Proctor needs to know of a `ModelConfig`.

    Raises:
        EndpointError: the model does not take vLLM's tensors.
    """
    inputs = frozenset(str(tensor.name) for tensor in config.input)
    if inputs and "text_input" not in inputs:
        raise EndpointError(
            f"model {model!r} on {url} takes the inputs {', '.join(sorted(inputs))[:200]}, not text_input; "
            "Proctor speaks to models with the tensors of Triton's vLLM backend"
        )
    digest = config.parameters[DIGEST_PARAMETER].string_value if DIGEST_PARAMETER in config.parameters else ""
    return ModelFacts(
        digest if FULL_DIGEST.fullmatch(digest) else None,
        printable(str(config.backend))[:40],
        config.max_batch_size > 0,
        inputs,
    )


class RequestTemplate:
    """The part of a request that a shard's prompts share."""

    def __init__(self, model: str, facts: ModelFacts, decoding: Decoding) -> None:
        self._request = service_pb2.ModelInferRequest(model_name=model)
        # Without it a server swallows a final response that is empty, and the end of the answer stays unknown.
        self._request.parameters["triton_enable_empty_final_response"].bool_param = True
        try:
            sampling = sampling_parameters(decoding).encode("utf-8")
        except UnicodeEncodeError:
            raise EndpointError("decoding_config.stop is not valid Unicode; remove the lone surrogate") from None
        fields = [
            ("text_input", "BYTES", b""),
            ("stream", "BOOL", _FALSE),
            ("sampling_parameters", "BYTES", _LENGTH.pack(len(sampling)) + sampling),
            ("exclude_input_in_output", "BOOL", _TRUE),
            ("return_finish_reason", "BOOL", _TRUE),
            ("return_num_input_tokens", "BOOL", _TRUE),
            ("return_num_output_tokens", "BOOL", _TRUE),
        ]
        for name, datatype, raw in fields:
            # A vLLM backend from before a tensor was added refuses requests that hold it.
            if not facts.inputs or name in facts.inputs:
                shape = [1, 1] if facts.batched else [1]
                self._request.inputs.add(name=name, datatype=datatype, shape=shape)
                self._request.raw_input_contents.append(raw)
        self._text_index = [tensor.name for tensor in self._request.inputs].index("text_input")

    def request(self, request_id: str, prompt: bytes) -> Any:
        """The request for one prompt."""
        request = service_pb2.ModelInferRequest()
        request.CopyFrom(self._request)
        request.id = request_id
        request.raw_input_contents[self._text_index] = _LENGTH.pack(len(prompt)) + prompt
        return request


def read_piece(response: Any) -> Piece:
    """Read one `ModelInferResponse`.

    Raises:
        TrialFailure: the response does not hold what its header says, or is too large.
    """
    parameters = response.parameters
    # A server that says nothing of final responses sends one response to a request.
    final = parameters["triton_final_response"].bool_param if "triton_final_response" in parameters else True
    tensors = {tensor.name: raw for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False)}
    if response.outputs and len(response.outputs) != len(response.raw_output_contents):
        raise TrialFailure("the response does not carry its tensors as raw contents", retryable=False)
    text = next(_strings(tensors["text_output"]), None) if "text_output" in tensors else None
    reason = next(_strings(tensors.get("finish_reason", b"")), b"")
    return Piece(
        text.decode("utf-8", errors="replace") if text is not None else None,
        _FINISH_REASONS.get(reason, "unknown"),
        _count(tensors.get("num_input_tokens")),
        _count(tensors.get("num_output_tokens")),
        final,
    )


def stream_failure(message: str) -> TrialFailure:
    """The failure that an error message in the stream stands for."""
    lowered = message.lower()
    return TrialFailure(printable(message) or "unnamed error", retryable=any(word in lowered for word in _PASSING))


def _strings(raw: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(raw):
        if len(raw) - offset < _LENGTH.size:
            raise TrialFailure("the response holds half of a string tensor", retryable=False)
        (length,) = _LENGTH.unpack_from(raw, offset)
        offset += _LENGTH.size
        if length > len(raw) - offset:
            raise TrialFailure("the response holds half of a string tensor", retryable=False)
        if length > MAX_ANSWER_BYTES:
            raise TrialFailure(f"the answer has {length:,} bytes, the limit is {MAX_ANSWER_BYTES:,}", retryable=False)
        yield raw[offset : offset + length]
        offset += length


def _count(raw: bytes | None) -> int | None:
    return _LENGTH.unpack_from(raw)[0] if raw is not None and len(raw) >= _LENGTH.size else None
