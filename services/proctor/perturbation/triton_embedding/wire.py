"""The bytes that pass between the client and the model on Triton, and what may be wrong with them. Sends nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from proctor.domain.canonical import FULL_DIGEST
from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder.protocol import Vectors
from proctor.perturbation.triton_embedding.contract import (
    DIGEST_PARAMETER,
    EMBEDDING,
    FINGERPRINT_PARAMETER,
    MAX_TEXT_BYTES,
    NAME_PARAMETER,
    TEXT,
    Identity,
)

#: What an operator does about a model that is none of Proctor's.
MEND: Final = "lay the model down with python -m proctor.perturbation.triton_embedding.repository"

#: Of one request's texts together, so that a batch of long texts stays as quick as one of short ones.
_MAX_REQUEST_BYTES: Final = 1 << 18
_MAX_TEXTS: Final = 256
_UNIT_TOLERANCE: Final = 1e-3
_MAX_DETAIL_CHARACTERS: Final = 500
_LENGTH: Final = struct.Struct("<I")


class ModelFacts(NamedTuple):
    """What the served model's configuration says: which encoder it is, and how many texts it takes at a time."""

    identity: Identity
    dimension: int
    max_texts: int


def read_facts(config: Any, url: str) -> ModelFacts:
    """Read a `ModelConfig`.

    Raises:
        EncoderError: it is another kind of model, or does not state which encoder it is.
    """
    inputs = {tensor.name for tensor in config.input}
    outputs = {tensor.name: list(tensor.dims) for tensor in config.output}
    if TEXT not in inputs or EMBEDDING not in outputs:
        names = printable(f"{', '.join(sorted(inputs))} → {', '.join(sorted(outputs))}")
        raise EncoderError(f"{url} is another kind of model ({names}), not {TEXT} → {EMBEDDING}: {MEND}")
    stated = {
        key: printable(config.parameters[key].string_value) if key in config.parameters else ""
        for key in (NAME_PARAMETER, DIGEST_PARAMETER, FINGERPRINT_PARAMETER)
    }
    digests = (DIGEST_PARAMETER, FINGERPRINT_PARAMETER)
    lacks = [key for key in stated if not stated[key] or (key in digests and not FULL_DIGEST.fullmatch(stated[key]))]
    dimensions = outputs[EMBEDDING]
    if len(dimensions) != 1 or dimensions[0] < 1:
        lacks.append(f"the dimension of {EMBEDDING}")
    if config.max_batch_size < 1:
        lacks.append("max_batch_size")
    if lacks:
        raise EncoderError(f"{url} does not state {', '.join(lacks)} in its configuration: {MEND}")
    identity = Identity(stated[NAME_PARAMETER], stated[DIGEST_PARAMETER], stated[FINGERPRINT_PARAMETER])
    return ModelFacts(identity, dimensions[0], min(config.max_batch_size, _MAX_TEXTS))


def text_tensor(text: str, place: int) -> bytes:
    """A text as a BYTES tensor holds it: its length, then UTF-8. `place` counts from 0 and is for the message.

    Raises:
        EncoderError: the text is too long, or no Unicode.
    """
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncoderError(f"text {place + 1} holds half of a surrogate pair at character {error.start}") from None
    if len(encoded) > MAX_TEXT_BYTES:
        raise EncoderError(f"text {place + 1} has {len(encoded):,} bytes, the limit is {MAX_TEXT_BYTES:,}")
    return _LENGTH.pack(len(encoded)) + encoded


def batches(tensors: Sequence[bytes], max_texts: int) -> Iterator[list[bytes]]:
    """The tensors in order, in requests of bounded number and size; one that is larger goes alone."""
    batch: list[bytes] = []
    size = 0
    for tensor in tensors:
        if batch and (len(batch) == max_texts or size + len(tensor) > _MAX_REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(tensor)
        size += len(tensor)
    if batch:
        yield batch


def read_vectors(response: Any, count: int, dimension: int, url: str) -> Vectors:
    """The unit vectors of a `ModelInferResponse`, of shape (count, dimension).

    Raises:
        EncoderError: they are missing, of another shape, not finite, or not of length 1.
    """
    found = [
        (tensor, raw)
        for tensor, raw in zip(response.outputs, response.raw_output_contents, strict=False)
        if tensor.name == EMBEDDING and tensor.datatype == "FP32"
    ]
    if not found:
        raise EncoderError(f"{url} answered without the FP32 tensor {EMBEDDING}: {MEND}")
    tensor, raw = found[0]
    shape = list(tensor.shape)
    if shape != [count, dimension] or len(raw) != 4 * count * dimension:
        raise EncoderError(
            f"{url} answered with vectors of shape {shape} ({len(raw):,} bytes), but {count} texts and the declared "
            f"dimension make {[count, dimension]}"
        )
    vectors: Vectors = np.frombuffer(raw, dtype="<f4").astype(np.float32).reshape(shape)
    if not np.isfinite(vectors).all():
        raise EncoderError(f"{url} answered with numbers that are not finite: the model on the server is damaged")
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    # Windows that cancel out have no mean direction; such a text's vector is 0 in process, too.
    if not np.all((np.abs(norms - 1.0) <= _UNIT_TOLERANCE) | (norms == 0.0)):
        raise EncoderError(f"{url} answered with vectors that are not of length 1: {MEND}")
    return vectors


def printable(text: str) -> str:
    """A server's words on one line, bounded, without control characters."""
    kept = "".join(character if character.isprintable() else " " for character in text[: 2 * _MAX_DETAIL_CHARACTERS])
    return " ".join(kept.split())[:_MAX_DETAIL_CHARACTERS]
