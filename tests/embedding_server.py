"""A gRPC server with the protocol of Triton and an embedding model that misbehaves on purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

MODEL = "tiny"
DIGEST = "sha256:" + "ab" * 32
FINGERPRINT = "sha256:" + "cd" * 32
DIMENSION = 4
Answer = Callable[["EmbeddingServer", Any, Any], Any]


def texts_of(request: Any) -> list[str]:
    """The texts in a request."""
    raw, texts = request.raw_input_contents[0], []
    while raw:
        size = int.from_bytes(raw[:4], "little")
        texts.append(raw[4 : 4 + size].decode())
        raw = raw[4 + size :]
    return texts


def vector(text: str) -> np.ndarray[Any, Any]:
    """A text's own unit vector."""
    direction = np.random.default_rng(list(text.encode())).normal(size=DIMENSION)
    return (direction / np.linalg.norm(direction)).astype(np.float32)


def response(vectors: np.ndarray[Any, Any], *, name: str = "EMBEDDING", datatype: str = "FP32") -> Any:
    """An answer with these vectors."""
    answer = service_pb2.ModelInferResponse(model_name=MODEL)
    answer.outputs.add(name=name, datatype=datatype, shape=list(vectors.shape))
    answer.raw_output_contents.append(vectors.astype("<f4").tobytes())
    return answer


def right(server: EmbeddingServer, request: Any, context: Any) -> Any:
    """What the model should answer."""
    return response(np.stack([vector(text) for text in texts_of(request)]))


@dataclass
class EmbeddingServer(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """Answers as it is told, states what it is told, and keeps the batches it was asked for."""

    answer: Answer = right
    digest: str = DIGEST
    fingerprint: str = FINGERPRINT
    name: str = "tiny-encoder"
    max_batch_size: int = 8
    tensors: tuple[str, str] = ("TEXT", "EMBEDDING")
    dimensions: tuple[int, ...] = (DIMENSION,)
    asked: list[list[str]] = field(default_factory=list)

    def ModelConfig(self, request: Any, context: Any) -> Any:
        if request.name != MODEL:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Request for unknown model: '{request.name}' is not found")
        answer = service_pb2.ModelConfigResponse()
        answer.config.max_batch_size = self.max_batch_size
        answer.config.input.add(name=self.tensors[0], dims=[1])
        answer.config.output.add(name=self.tensors[1], dims=self.dimensions)
        stated = {"model_digest": self.digest, "encoder_fingerprint": self.fingerprint, "encoder_name": self.name}
        for key, value in stated.items():
            answer.config.parameters[key].string_value = value
        return answer

    def ModelInfer(self, request: Any, context: Any) -> Any:
        self.asked.append(texts_of(request))
        return self.answer(self, request, context)


@contextmanager
def serving(servicer: EmbeddingServer, port: int = 0) -> Iterator[int]:
    """Serve on loopback; yields the port."""
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool, options=[("grpc.so_reuseport", 0)])
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(servicer, server)
        bound = server.add_insecure_port(f"127.0.0.1:{port}")
        server.start()
        try:
            yield bound
        finally:
            server.stop(None).wait()
