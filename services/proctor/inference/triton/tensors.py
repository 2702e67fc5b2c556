"""The tensors that carry a decoding policy: in the names of Triton's vLLM backend, and in TensorRT-LLM's."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from proctor.domain.errors import EndpointError
from proctor.domain.trial import Decoding
from proctor.inference.triton.facts import WEIGHTS_INPUT, Dialect, ModelFacts
from proctor.inference.triton.vllm import sampling_parameters
from proctor.inference.worker.backend import Answer

LENGTH = struct.Struct("<I")
_TRUE, _FALSE = b"\x01", b"\x00"
_NUMBERS = {"INT32": "<i", "UINT32": "<I", "INT64": "<q", "UINT64": "<Q", "FP32": "<f", "FP64": "<d"}


class Tensor(NamedTuple):
    """An input tensor of a request, of one row: name, the protocol's data type, elements, and their bytes."""

    name: str
    datatype: str
    elements: int
    raw: bytes


def text(name: str, values: Sequence[str]) -> Tensor:
    """A tensor of texts."""
    return Tensor(name, "BYTES", len(values), b"".join(packed(value.encode("utf-8")) for value in values))


def packed(data: bytes) -> bytes:
    """One element of a BYTES tensor: its length, then itself."""
    return LENGTH.pack(len(data)) + data


def request_tensors(facts: ModelFacts, decoding: Decoding) -> list[Tensor]:
    """The input tensors of a request, `text_input` empty among them.

    Raises:
        EndpointError: the model has no tensor for a setting without which its answers are others.
    """
    if facts.dialect is Dialect.TENSORRT_LLM:
        return _tensorrt_llm(facts, decoding)
    return _vllm(facts, decoding)


def finished(answer: Answer, facts: ModelFacts, decoding: Decoding) -> Answer:
    """The answer as vLLM would have ended it, from a model that reports no finish reason: TensorRT-LLM's.

    Its answers hold the stop text that ended them, and one of as many tokens as were allowed was cut off.
    """
    if facts.dialect is not Dialect.TENSORRT_LLM:
        return answer
    ends = [place for stop in decoding.stop if stop and (place := answer.text.find(stop)) >= 0]
    if ends:
        return answer._replace(text=answer.text[: min(ends)], finish_reason="stop")
    # A model that repeats the prompt may count its tokens too.
    if not facts.repeats_the_prompt and (answer.output_tokens or 0) >= decoding.max_tokens:
        return answer._replace(finish_reason="length")
    return answer


def _vllm(facts: ModelFacts, decoding: Decoding) -> list[Tensor]:
    tensors = [
        text("text_input", [""]),
        Tensor("stream", "BOOL", 1, _FALSE),
        text("sampling_parameters", [sampling_parameters(decoding)]),
        *(
            Tensor(name, "BOOL", 1, _TRUE)
            for name in (
                "exclude_input_in_output",
                "return_finish_reason",
                "return_num_input_tokens",
                "return_num_output_tokens",
            )
        ),
    ]
    if facts.states_weights:
        tensors.append(Tensor(WEIGHTS_INPUT, "BOOL", 1, _TRUE))
    # A vLLM backend from before a tensor was added refuses requests that hold it.
    return [tensor for tensor in tensors if not facts.inputs or tensor.name in facts.inputs]


def _tensorrt_llm(facts: ModelFacts, decoding: Decoding) -> list[Tensor]:
    """Names of `all_models/inflight_batcher_llm/ensemble/config.pbtxt` in NVIDIA/TensorRT-LLM, of old and new versions.

    Greedy decoding is `top_k` 1: a temperature of 0 is refused by some versions.
    """
    numbers: dict[str, float] = {"max_tokens": decoding.max_tokens}
    if decoding.temperature == 0.0:
        if "top_k" not in facts.inputs:
            raise EndpointError("the model has no input top_k, so decoding_config.temperature 0 cannot be honoured")
        numbers |= {"top_k": 1}
    else:
        numbers |= {"temperature": decoding.temperature}
    if decoding.top_p < 1.0 or ("top_p" in facts.inputs and decoding.temperature > 0.0):
        numbers |= {"top_p": decoding.top_p}
    for name in ("temperature", "top_p"):
        if name in numbers and name not in facts.inputs:
            raise EndpointError(f"the model has no input {name}, so decoding_config.{name} cannot be honoured")
    if decoding.seed is not None:
        if not facts.inputs.keys() & {"seed", "random_seed"}:
            raise EndpointError("the model has no input seed, so decoding_config.seed cannot be honoured; leave it out")
        numbers |= {"seed": decoding.seed, "random_seed": decoding.seed}
    tensors = [text("text_input", [""])]
    tensors += [_number(name, value, facts) for name, value in numbers.items() if name in facts.inputs]
    for name, words in (("bad_words", ()), ("stop_words", decoding.stop)):
        declared = facts.inputs.get(name)
        if declared is not None and (words or not declared.optional):
            try:
                tensors.append(text(name, words or [""]))
            except UnicodeEncodeError:
                raise EndpointError("decoding_config.stop is not valid Unicode; remove the lone surrogate") from None
    flags = {
        "stream": _FALSE,
        "exclude_input_in_output": _TRUE,
        "return_num_input_tokens": _TRUE,
        "return_num_output_tokens": _TRUE,
    }
    return tensors + [Tensor(name, "BOOL", 1, raw) for name, raw in flags.items() if name in facts.inputs]


def _number(name: str, value: float, facts: ModelFacts) -> Tensor:
    datatype = facts.inputs[name].datatype
    if datatype not in _NUMBERS:
        raise EndpointError(f"the model's input {name} is of type {datatype or 'unknown'}, not a number")
    kind = _NUMBERS[datatype]
    try:
        raw = struct.pack(kind, float(value) if kind in ("<f", "<d") else int(value))
    except struct.error:
        raise EndpointError(f"{name} {value} does not fit the model's input of type {datatype}") from None
    return Tensor(name, datatype, 1, raw)
