"""The calls of Triton's protocol that Proctor makes, with responses that are looked at before they are parsed.

gRPC would parse what comes on the event loop, and a message of empty submessages is a hundred times as large in memory
as it was on the wire. So the calls hand over bytes, and what is parsed is known to be small but for its raw contents,
which are not parsed at all.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from tritonclient.grpc import service_pb2

from proctor.domain.answer_bounds import MAX_ANSWER_BYTES
from proctor.inference.worker.backend import MAX_PROMPT_BYTES, TrialFailure

_SERVICE: Final = "/inference.GRPCInferenceService/"
#: All of a response but its raw contents: names, shapes and parameters of its tensors, an id, an error's words.
MAX_ENVELOPE_BYTES: Final = 64 << 10
#: Tensors of a response; TensorRT-LLM's ensemble has a dozen.
MAX_TENSORS: Final = 256
#: A model's configuration; that of an ensemble with all its steps has 30 KB.
MAX_CONFIG_BYTES: Final = 256 << 10
#: The longest answer behind the longest prompt, which some models repeat, and what is around them.
MAX_MESSAGE_BYTES: Final = MAX_ANSWER_BYTES + MAX_PROMPT_BYTES + (1 << 20)

#: Field numbers of grpc_service.proto: `ModelInferResponse.raw_output_contents`, and the response inside
#: `ModelStreamInferResponse`.
_RAW_CONTENTS: Final = 6
_INNER: Final = 2
_LENGTH_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
_LONGEST_VARINT: Final = 10
_NO_MESSAGE: Final = TrialFailure("the server sent what is no message of Triton's protocol", retryable=True)


class TritonStub:
    """The calls on a channel; what they return and take is the generated messages'."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._infer = self._unary("ModelInfer", service_pb2.ModelInferRequest)
        self._asked = {
            name: (self._unary(name, request), response)
            for name, request, response in (
                ("ServerMetadata", service_pb2.ServerMetadataRequest, service_pb2.ServerMetadataResponse),
                ("ModelReady", service_pb2.ModelReadyRequest, service_pb2.ModelReadyResponse),
                ("ModelConfig", service_pb2.ModelConfigRequest, service_pb2.ModelConfigResponse),
            )
        }

    async def ask(self, method: str, request: Any, *, timeout_s: float) -> Any:
        """Ask a question about the server or a model.

        Raises:
            grpc.RpcError: there is no answer.
            TrialFailure: the answer cannot be read, or is larger than one can be.
        """
        call, response = self._asked[method]
        data = await call(request, timeout=timeout_s)
        if len(data) > MAX_CONFIG_BYTES:
            raise TrialFailure(
                f"the server's answer to {method} has {len(data):,} bytes, the limit is {MAX_CONFIG_BYTES:,}",
                retryable=False,
            )
        return _parsed(response, data)

    async def infer(self, request: Any) -> Any:
        """Ask a model; raises as `ask` does."""
        data = await self._infer(request)
        _check(memoryview(data))
        return _parsed(service_pb2.ModelInferResponse, data)

    def stream(self) -> Any:
        """A stream of requests to models, whose responses are bytes for `read_streamed`."""
        return self._channel.stream_stream(
            f"{_SERVICE}ModelStreamInfer", request_serializer=service_pb2.ModelInferRequest.SerializeToString
        )()

    def _unary(self, name: str, request: Any) -> Any:
        return self._channel.unary_unary(_SERVICE + name, request_serializer=request.SerializeToString)


def read_streamed(data: bytes) -> Any:
    """The `ModelStreamInferResponse` in the bytes of one.

    Raises:
        TrialFailure: it cannot be read, or has more beside its raw contents than a response can have.
    """
    _check(memoryview(data), streamed=True)
    return _parsed(service_pb2.ModelStreamInferResponse, data)


def _parsed(kind: type[Message], data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise _NO_MESSAGE.again() from None


def _check(data: memoryview, *, streamed: bool = False) -> None:
    """Walk over the fields of a response, and of the one inside, without parsing them."""
    left, fields = MAX_ENVELOPE_BYTES, 4 * MAX_TENSORS
    todo = [(data, streamed)]
    while todo:
        message, outer = todo.pop()
        offset = 0
        while offset < len(message):
            fields -= 1
            number, start, end = _field(message, offset)
            if number == (_INNER if outer else _RAW_CONTENTS):
                if outer:
                    todo.append((message[start:end], False))
                left -= start - offset
            else:
                left -= end - offset
            offset = end
            if left < 0 or fields < 0:
                raise TrialFailure(
                    f"the response has more than {MAX_ENVELOPE_BYTES:,} bytes or {4 * MAX_TENSORS:,} fields beside its "
                    "texts",
                    retryable=False,
                )


def _field(message: memoryview, offset: int) -> tuple[int, int, int]:
    """Number, start and end of the content of the field at an offset."""
    tag, start = _varint(message, offset)
    number, kind = tag >> 3, tag & 7
    if kind == _LENGTH_DELIMITED:
        length, start = _varint(message, start)
        end = start + length
    elif kind == 0:
        _, end = _varint(message, start)
    else:
        # Groups (3, 4) are in none of these messages.
        end = start + _FIXED.get(kind, len(message) + 1)
    if end > len(message):
        raise _NO_MESSAGE.again()
    return number, start, end


def _varint(message: memoryview, offset: int) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(message[offset : offset + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, offset + place + 1
    raise _NO_MESSAGE.again()
