"""A reference model inside Triton's Python backend, behind the tensors of Triton's vLLM backend.

Names, types and semantics are those of `src/model.py` and `src/utils/request.py` of triton-inference-server's
vllm_backend: without `stream` the prompt is prepended to the answer unless `exclude_input_in_output` says otherwise,
and finish reason and token counts come only when asked for. Imported by Triton's stub alone.

Triton hands a decoupled model one request a call, so batching is done here, as vLLM does it: `execute` only takes
requests in, and one thread answers all that wait in one forward pass. A model that is not decoupled gets its
batches from Triton's dynamic batcher.
"""

from __future__ import annotations

import json
import queue
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import triton_python_backend_utils as pb_utils

from proctor.domain.errors import ProctorError
from proctor.inference.reference.model import Generation, ReferenceModel, weights_digest
from proctor.inference.reference.sampling import Sampling, generate, parse_sampling

#: Prompts in one forward pass: past this a 2-core machine gains nothing, and the first answer waits for the last.
MAX_BATCH = 64

_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class _Question(NamedTuple):
    """One row of a request."""

    prompt: str
    sampling: Sampling
    prepend_prompt: bool


class _Request(NamedTuple):
    """A request as read: its rows (one, unless Triton batches), and which extra outputs it wants."""

    rows: list[_Question]
    extras: frozenset[str]


class TritonPythonModel:
    """What Triton's stub instantiates, one a model instance."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the weights and check them against the digest that config.pbtxt pins.

        Raises:
            ProctorError: the weights are missing or are not the pinned ones; Triton then refuses the model.
        """
        config = json.loads(args["model_config"])
        parameters = {name: value["string_value"] for name, value in config.get("parameters", {}).items()}
        folder = Path(args["model_repository"]) / parameters.get("weights_folder", args["model_version"])
        found, pinned = weights_digest(folder), parameters.get("model_digest", "")
        if found != pinned:
            raise ProctorError(
                f"model {args['model_name']!r} pins model_digest {pinned or '(none)'}, but the weights in {folder} "
                f"are {found}; restore the weights, or write config.pbtxt again: "
                "proctor.inference.reference.triton_repository"
            )
        device = "cpu"
        if args["model_instance_kind"] == "GPU":
            device = f"cuda:{args['model_instance_device_id']}"
        self._model = ReferenceModel.load(folder, device)
        # What was computed here, and never what the configuration says.
        self._digest = found.encode()
        self._batched = int(config.get("max_batch_size", 0)) > 0
        self._decoupled = pb_utils.using_decoupled_model_transaction_policy(config)
        self._waiting: queue.SimpleQueue[tuple[_Request, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._answer_waiting, name="answers", daemon=True)
        if self._decoupled:
            self._thread.start()

    def execute(self, requests: list[Any]) -> list[Any] | None:
        """Take requests in (decoupled), or answer a batch that Triton put together."""
        if not self._decoupled:
            return self._answer([_read_or_refuse(request) for request in requests])
        for request in requests:
            sender = request.get_response_sender()
            read = _read_or_refuse(request)
            if isinstance(read, _Request):
                self._waiting.put((read, sender))
            else:
                sender.send(read, flags=_FINAL)
        return None

    def finalize(self) -> None:
        """Answer what still waits, then end."""
        if self._decoupled:
            self._waiting.put(None)
            self._thread.join()

    def _answer_waiting(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch = [first]
            ends = False
            while len(batch) < MAX_BATCH and not self._waiting.empty():
                following = self._waiting.get()
                if following is None:
                    ends = True
                    break
                batch.append(following)
            self._answer_batch(batch)
            if ends:
                return

    def _answer_batch(self, batch: list[tuple[_Request, Any]]) -> None:
        wanted = []
        for request, sender in batch:
            if sender.is_cancelled():
                sender.send(flags=_FINAL)
            else:
                wanted.append((request, sender))
        responses = self._answer([request for request, _ in wanted])
        for (_, sender), response in zip(wanted, responses, strict=True):
            sender.send(response, flags=_FINAL)

    def _answer(self, requests: list[Any]) -> list[Any]:
        """One response a request, in order; what already is a response (a refusal) passes through."""
        rows = [row for request in requests if isinstance(request, _Request) for row in request.rows]
        try:
            answers = iter(generate(self._model, [(row.prompt, row.sampling) for row in rows]))
        except Exception as error:
            # Whatever it is: every request needs a response, and the thread must live on for the next.
            failure = _refusal(f"the reference model failed: {type(error).__name__}: {error}", internal=True)
            return [failure if isinstance(request, _Request) else request for request in requests]
        return [
            self._response(request, [next(answers) for _ in request.rows]) if isinstance(request, _Request) else request
            for request in requests
        ]

    def _response(self, request: _Request, answers: list[Generation]) -> Any:
        texts = [
            ((row.prompt if row.prepend_prompt else "") + answer.text).encode("utf-8")
            for row, answer in zip(request.rows, answers, strict=True)
        ]
        outputs = [self._tensor("text_output", texts, np.object_)]
        if "return_finish_reason" in request.extras:
            reasons = [answer.finish_reason.encode() for answer in answers]
            outputs.append(self._tensor("finish_reason", reasons, np.object_))
        if "return_num_input_tokens" in request.extras:
            counts = [answer.input_tokens for answer in answers]
            outputs.append(self._tensor("num_input_tokens", counts, np.uint32))
        if "return_num_output_tokens" in request.extras:
            counts = [answer.output_tokens for answer in answers]
            outputs.append(self._tensor("num_output_tokens", counts, np.uint32))
        if "return_weights_digest" in request.extras:
            outputs.append(self._tensor("weights_digest", [self._digest] * len(answers), np.object_))
        return pb_utils.InferenceResponse(output_tensors=outputs)

    def _tensor(self, name: str, values: list[Any], dtype: Any) -> Any:
        array = np.array(values, dtype=dtype)
        return pb_utils.Tensor(name, array.reshape(-1, 1) if self._batched else array)


def _read_or_refuse(request: Any) -> Any:
    """The request as read, or the error response it gets. A bad request must not end the model for the others."""
    try:
        return _read(request)
    except ProctorError as error:
        return _refusal(str(error))
    except UnicodeDecodeError:
        return _refusal("text_input or sampling_parameters is not UTF-8")


def _read(request: Any) -> _Request:
    prompts = _values(request, "text_input")
    streams = _values(request, "stream") or [False] * len(prompts)
    excludes = _values(request, "exclude_input_in_output") or [None] * len(prompts)
    parameters = _values(request, "sampling_parameters") or [b""] * len(prompts)
    if not len(prompts) == len(streams) == len(excludes) == len(parameters):
        raise ProctorError("text_input and the tensors beside it must have the same number of rows")
    rows = []
    for prompt, stream, exclude, sampling in zip(prompts, streams, excludes, parameters, strict=True):
        if stream and exclude is not None and not exclude:
            raise ProctorError("exclude_input_in_output must not be false when stream is true")
        prepend = not stream if exclude is None else not exclude
        rows.append(_Question(prompt.decode("utf-8"), parse_sampling(sampling.decode("utf-8")), prepend))
    extras = ("return_finish_reason", "return_num_input_tokens", "return_num_output_tokens", "return_weights_digest")
    return _Request(rows, frozenset(name for name in extras if any(_values(request, name))))


def _values(request: Any, name: str) -> list[Any]:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return [] if tensor is None else list(tensor.as_numpy().ravel())


def _refusal(message: str, *, internal: bool = False) -> Any:
    code = pb_utils.TritonError.INTERNAL if internal else pb_utils.TritonError.INVALID_ARG
    return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(message[:1000], code))
