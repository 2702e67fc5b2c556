"""The sentence encoder inside Triton's Python backend: the code that embeds in process. Imported by the stub alone.

Triton's dynamic batcher puts the requests of several workers together; they go through the encoder in one call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import triton_python_backend_utils as pb_utils

from proctor.domain.errors import EncoderError
from proctor.perturbation.encoder import SentenceEncoder, Vectors
from proctor.perturbation.triton_embedding.contract import EMBEDDING, MAX_TEXT_BYTES, NAME_PARAMETER, TEXT, Identity
from proctor.perturbation.triton_embedding.repository import dimension_of, encoder_folder

_MEND: Final = "restore it, or lay the model down again: python -m proctor.perturbation.triton_embedding.repository"


class TritonPythonModel:
    """What Triton's stub instantiates, one a model instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the encoder and hold it to what config.pbtxt states.

        Raises:
            EncoderError: it is missing, or another one than stated; Triton then refuses the model.
        """
        config = json.loads(args["model_config"])
        stated = {key: value["string_value"] for key, value in config.get("parameters", {}).items()}
        dimensions = {output["name"]: [int(size) for size in output["dims"]] for output in config["output"]}
        folder = encoder_folder(Path(args["model_repository"]) / args["model_version"])
        device = f"cuda:{args['model_instance_device_id']}" if args["model_instance_kind"] == "GPU" else "cpu"
        self._encoder = SentenceEncoder(folder, name=stated.get(NAME_PARAMETER, ""), device=device)
        found = Identity.of(self._encoder).parameters()
        if not found.items() <= stated.items():
            raise EncoderError(
                f"config.pbtxt of {args['model_name']!r} states {stated}, but the encoder in {folder} is "
                f"{found}: {_MEND}"
            )
        dimension = dimension_of(self._encoder)
        if dimensions.get(EMBEDDING) != [dimension]:
            raise EncoderError(
                f"config.pbtxt of {args['model_name']!r} states the dimensions {dimensions}, but the vectors of the "
                f"encoder in {folder} have {dimension}: {_MEND}"
            )

    def execute(self, requests: list[Any]) -> list[Any]:
        """One response a request. A bad request is refused alone."""
        read = [_read_or_refuse(request) for request in requests]
        asked = [texts for texts in read if isinstance(texts, list)]
        try:
            answers = iter(self._embed(asked))
        except Exception:
            # Whatever it is: one of them may hold what cannot be embedded, and the others must not suffer for the
            # batch that they were put into.
            answers = iter([self._embed_or_refuse(texts) for texts in asked])
        return [next(answers) if isinstance(texts, list) else texts for texts in read]

    def _embed(self, asked: list[list[str]]) -> list[Any]:
        vectors = self._encoder.encode([text for texts in asked for text in texts])
        responses, start = [], 0
        for texts in asked:
            responses.append(_response(vectors[start : start + len(texts)]))
            start += len(texts)
        return responses

    def _embed_or_refuse(self, texts: list[str]) -> Any:
        try:
            return self._embed([texts])[0]
        except Exception as error:
            return _refusal(f"the encoder failed: {type(error).__name__}: {error}", internal=True)


def _response(vectors: Vectors) -> Any:
    return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(EMBEDDING, np.ascontiguousarray(vectors))])


def _read_or_refuse(request: Any) -> Any:
    """The request's texts, or the error response it gets."""
    texts = []
    for raw in pb_utils.get_input_tensor_by_name(request, TEXT).as_numpy().ravel():
        if len(raw) > MAX_TEXT_BYTES:
            return _refusal(f"a text has {len(raw):,} bytes, the limit is {MAX_TEXT_BYTES:,}")
        try:
            texts.append(raw.decode("utf-8"))
        except UnicodeDecodeError:
            return _refusal(f"{TEXT} is not UTF-8")
    return texts


def _refusal(message: str, *, internal: bool = False) -> Any:
    # The stub adds TritonError to the module after it has imported this one, so it is no default argument.
    code = pb_utils.TritonError.INTERNAL if internal else pb_utils.TritonError.INVALID_ARG
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(message[:1000], code))
