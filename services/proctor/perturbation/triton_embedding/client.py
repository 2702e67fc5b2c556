"""A sentence encoder on a Triton server: PROCTOR_ENCODER=grpc://host:8001/model-name, perhaps with @sha256:… after it.

It needs no torch here. `proctor.perturbation.triton_embedding` is the model, which says itself which encoder it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from proctor.domain.canonical import DIGEST_OR_PREFIX, digest_matches
from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder.protocol import Vectors
from proctor.perturbation.triton_embedding.contract import TEXT
from proctor.perturbation.triton_embedding.wire import (
    MEND,
    ModelFacts,
    batches,
    printable,
    read_facts,
    read_vectors,
    text_tensor,
)
from proctor.runtime.progress import note_step
from proctor.runtime.triton_channel import TritonAddress, triton_address

#: For questions about the model, which no run of it delays.
_METADATA_TIMEOUT_S: Final = 10.0
#: A batch takes seconds, the longest text a minute of one core, and other workers' may be before it in the queue.
_DEADLINE_S: Final = 180.0
#: A server that starts anew loads the encoder for 5 to 10 s before it listens.
_RECONNECT_S: Final = 15.0
#: Above the largest batch of the largest dimension in use.
_MAX_RECEIVE_BYTES: Final = 32 << 20
_EXAMPLE: Final = "grpc://host:8001/model-name or grpcs://host:8001/model-name@sha256:…"


class TritonEncoder:
    """An encoder whose vectors come from a Triton server. Its fingerprint is that of the same encoder in process."""

    def __init__(self, setting: str, *, deadline_s: float = _DEADLINE_S, reconnect_s: float = _RECONNECT_S) -> None:
        """Connect, and ask which encoder it is.

        Args:
            setting: `grpc://host:port/model` (port 8001 by default; `grpcs` encrypts), and `@sha256:` with 12 to 64
                hex digits of the weights' digest where they are pinned.
            deadline_s: seconds that a request of up to 256 texts may take, waiting in the server's queue included.
            reconnect_s: seconds for which a lost connection is waited for, once in a request.

        Raises:
            EncoderError: the setting cannot be read, the server or the model is not there, or it is another one.
        """
        address, self._model, self._pinned = _parsed(setting)
        self._url = setting.partition("@")[0]
        self._deadline_s, self._reconnect_s = deadline_s, reconnect_s
        self._embedded = False
        self._connect(address)
        try:
            # Not waited for: whoever mistyped the address should hear of it at once.
            self._facts = self._ask_facts(patient=False)
        except EncoderError:
            self.close()
            raise
        self.name, self.digest, self.fingerprint = self._facts.identity

    @property
    def loaded(self) -> bool:
        """Whether the server was asked to embed anything."""
        return self._embedded

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text. Long texts are the mean over windows of them, which the server makes.

        Raises:
            EncoderError: the server is gone, too slow or refuses; it answers with something else than unit vectors of
                the dimension that it declares; or it serves another encoder than it did at first.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        self._embedded = True
        tensors = [text_tensor(text, place) for place, text in enumerate(texts)]
        blocks = [self._embed(batch) for batch in batches(tensors, self._facts.max_texts)]
        # Asked afterwards: a server that came back with another encoder in between is then seen.
        if (now := self._ask_facts()) != self._facts:
            raise EncoderError(
                f"{self._url} now serves {now}, not {self._facts}: vectors of two encoders cannot be compared; serve "
                "the first one again, or start this process anew"
            )
        return np.concatenate(blocks)

    def close(self) -> None:
        """Give back the connection."""
        self._channel.close()

    def _connect(self, address: TritonAddress) -> None:
        try:
            import grpc
            from tritonclient.grpc import service_pb2, service_pb2_grpc
        except ModuleNotFoundError as error:
            raise EncoderError(
                f"an encoder on Triton needs tritonclient ({error}): pip install 'proctor[triton]'"
            ) from None
        options = address.channel_options(max_receive_bytes=_MAX_RECEIVE_BYTES)
        self._grpc, self._messages = grpc, service_pb2
        self._channel = (
            grpc.secure_channel(address.target, grpc.ssl_channel_credentials(), options=options)
            if address.secure
            else grpc.insecure_channel(address.target, options=options)
        )
        self._stub = service_pb2_grpc.GRPCInferenceServiceStub(self._channel)

    def _embed(self, tensors: Sequence[bytes]) -> Vectors:
        request = self._messages.ModelInferRequest(model_name=self._model)
        request.inputs.add(name=TEXT, datatype="BYTES", shape=[len(tensors), 1])
        request.raw_input_contents.append(b"".join(tensors))
        note_step()
        response = self._call(self._stub.ModelInfer, request, self._deadline_s)
        return read_vectors(response, len(tensors), self._facts.dimension, self._url)

    def _ask_facts(self, *, patient: bool = True) -> ModelFacts:
        request = self._messages.ModelConfigRequest(name=self._model)
        config = self._call(self._stub.ModelConfig, request, _METADATA_TIMEOUT_S, patient=patient).config
        facts = read_facts(config, self._url)
        if self._pinned and not digest_matches(self._pinned, facts.identity.digest):
            raise EncoderError(
                f"{self._url} serves weights with the digest {facts.identity.digest}, PROCTOR_ENCODER pins "
                f"{self._pinned}: serve the pinned ones, or pin those that are to be used"
            )
        return facts

    def _call(self, method: Callable[..., Any], request: Any, timeout_s: float, *, patient: bool = True) -> Any:
        """The answer to a request; asked once more after a lost connection has come back."""
        try:
            return method(request, timeout=timeout_s)
        except self._grpc.RpcError as error:
            if not patient or error.code() is not self._grpc.StatusCode.UNAVAILABLE:
                raise self._failure(error, timeout_s) from None
            self._await_connection(error, timeout_s)
        try:
            return method(request, timeout=timeout_s)
        except self._grpc.RpcError as error:
            raise self._failure(error, timeout_s) from None

    def _await_connection(self, lost: Any, timeout_s: float) -> None:
        ready = self._grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=self._reconnect_s)
        except self._grpc.FutureTimeoutError:
            ready.cancel()
            raise self._failure(lost, timeout_s) from None

    def _failure(self, error: Any, timeout_s: float) -> EncoderError:
        codes, code, details = self._grpc.StatusCode, error.code(), printable(error.details() or "")
        if code is codes.PERMISSION_DENIED or "restricted" in details:
            return EncoderError(f"{self._url}: the server keeps the model's configuration from this client: {details}")
        if code is codes.UNAVAILABLE:
            reason = "connection refused" if "onnection refused" in details else details
            return EncoderError(f"no encoder at {self._url}: {reason}; is the server running and the model ready?")
        if code is codes.DEADLINE_EXCEEDED:
            return EncoderError(f"{self._url} did not answer within {timeout_s:g} s: it is overloaded, or hangs")
        if code is codes.NOT_FOUND:
            return EncoderError(f"{self._url}: the server has no model {self._model!r} ({details}): {MEND}")
        return EncoderError(f"{self._url} answered {code.name}: {details}")


def _parsed(setting: str) -> tuple[TritonAddress, str, str]:
    """The server's address, the model's name, and the pinned digest or ''."""
    url, at, pinned = setting.partition("@")
    try:
        address = triton_address(url)
    except ValueError:
        raise EncoderError(f"PROCTOR_ENCODER is {setting[:200]!r}, which is not like {_EXAMPLE}") from None
    model = address.path.removeprefix("/")
    if not model or "/" in model:
        raise EncoderError(f"PROCTOR_ENCODER is {setting[:200]!r} and must name one model, like {_EXAMPLE}")
    if at and not DIGEST_OR_PREFIX.fullmatch(pinned):
        raise EncoderError(
            f"PROCTOR_ENCODER pins {pinned[:100]!r}, which is not sha256: and 12 to 64 hex digits of the weights' "
            "digest"
        )
    return address, model, pinned
