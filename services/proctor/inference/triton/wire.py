"""The bytes that pass between the Triton client and a model: requests out, responses in.

Built on tritonclient's generated messages instead of its `InferInput` and `InferResult`: those go through numpy, and
hide the request id of an error and the final flag of a decoupled response, which is what results are matched by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tritonclient.grpc import service_pb2

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.trial import Decoding, FinishReason
from proctor.inference.triton.facts import WEIGHTS_OUTPUT, ModelFacts
from proctor.inference.triton.tensors import LENGTH, packed, request_tensors
from proctor.inference.worker.backend import TrialFailure, printable
from proctor.inference.worker.server_faults import engine_died, lacks_memory

#: What Triton says of a model that it has taken down, which it does first of all when it ends: it has answered no
#: request by that. Of a model that it never had it says "is not found".
UNLOADED = "has no available versions"
#: What it says to a request that comes while it begins to end, before its models are taken down.
STOPPING = "server is stopping"
_FINISH_REASONS: dict[bytes, FinishReason] = {b"stop": "stop", b"length": "length"}
_MAX_COUNT = 1 << 31
#: What Triton or gRPC says when a server, not the request, is at fault. A stream carries a text and no status code.
_PASSING = (
    "not healthy",
    "queue size",
    "unavailable",
    "timeout",
    "timed out",
    "cancelled",
    "shutting",
    STOPPING,
    "rst_stream",
    UNLOADED,
)
#: Those of them that say that the server is away for every request.
_AWAY = ("not healthy", "unavailable", "shutting", STOPPING, "rst_stream", UNLOADED)


class Piece(NamedTuple):
    """One response of possibly several to a request."""

    text: bytes | None
    """UTF-8; a character may be split between two responses."""
    finish_reason: FinishReason
    input_tokens: int | None
    output_tokens: int | None
    final: bool
    weights: str | None = None
    """Digest of the weights, where the model says what it computed."""


class RequestTemplate:
    """The part of a request that a shard's prompts share."""

    def __init__(self, model: str, facts: ModelFacts, decoding: Decoding) -> None:
        """Raises EndpointError: the model has no tensor for a setting without which its answers are others."""
        self._request = service_pb2.ModelInferRequest(model_name=model)
        if facts.streamed:
            # Without it a server swallows a final response that is empty, and the end of the answer stays unknown.
            self._request.parameters["triton_enable_empty_final_response"].bool_param = True
        for tensor in request_tensors(facts, decoding):
            shape = [1, tensor.elements] if facts.batched else [tensor.elements]
            self._request.inputs.add(name=tensor.name, datatype=tensor.datatype, shape=shape)
            self._request.raw_input_contents.append(tensor.raw)
        self._text_index = [tensor.name for tensor in self._request.inputs].index("text_input")

    def request(self, request_id: str, prompt: bytes) -> Any:
        """The request for one prompt."""
        request = service_pb2.ModelInferRequest()
        request.CopyFrom(self._request)
        request.id = request_id
        request.raw_input_contents[self._text_index] = packed(prompt)
        return request


def read_piece(response: Any) -> Piece:
    """Read one `ModelInferResponse`.

    Raises:
        TrialFailure: the response does not hold what its header says.
    """
    parameters = response.parameters
    # A server that says nothing of final responses sends one response to a request.
    final = parameters["triton_final_response"].bool_param if "triton_final_response" in parameters else True
    tensors = {tensor.name: raw for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False)}
    if response.outputs and len(response.outputs) != len(response.raw_output_contents):
        raise TrialFailure("the response does not carry its tensors as raw contents", retryable=False)
    odd = [one for one in response.outputs if one.name == "text_output" and one.datatype not in ("", "BYTES")]
    if odd:
        raise TrialFailure(f"text_output is of type {printable(odd[0].datatype)[:20]}, not BYTES", retryable=False)
    # The first of them alone: an answer is one text, and the others are not looked at.
    text = next(_strings(tensors["text_output"]), None) if "text_output" in tensors else None
    reason = next(_strings(tensors.get("finish_reason", b"")), b"")
    return Piece(
        text,
        _FINISH_REASONS.get(reason, "unknown"),
        _count(tensors.get("num_input_tokens")),
        _count(tensors.get("num_output_tokens")),
        final,
        _digest(tensors.get(WEIGHTS_OUTPUT)),
    )


def worded_failure(message: str) -> TrialFailure:
    """The failure that an error message stands for which comes without a telling code.

    Words that are not known to be a server's fault are no proof that they are a prompt's: see `TrialFailure.doubtful`.
    """
    lowered = message.lower()
    died = engine_died(message)
    passing = died or lacks_memory(message) or any(word in lowered for word in _PASSING)
    return TrialFailure(
        printable(message) or "unnamed error",
        retryable=passing,
        unavailable=died or any(word in lowered for word in _AWAY),
        doubtful=not passing,
    )


def _strings(raw: bytes) -> Iterator[bytes]:
    offset = 0
    while offset < len(raw):
        if len(raw) - offset < LENGTH.size:
            raise TrialFailure("the response holds half of a string tensor", retryable=False)
        (length,) = LENGTH.unpack_from(raw, offset)
        offset += LENGTH.size
        if length > len(raw) - offset:
            raise TrialFailure("the response holds half of a string tensor", retryable=False)
        yield raw[offset : offset + length]
        offset += length


def _digest(raw: bytes | None) -> str | None:
    said = b"" if raw is None else next(_strings(raw), b"")
    text = said.decode("ascii", "replace")
    return text if FULL_DIGEST.fullmatch(text) else None


def _count(raw: bytes | None) -> int | None:
    if raw is None or len(raw) < LENGTH.size:
        return None
    # TensorRT-LLM's counts are signed; a negative one is none.
    count: int = LENGTH.unpack_from(raw)[0]
    return count if count < _MAX_COUNT else None
