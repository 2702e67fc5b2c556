"""The tensors of a request: vLLM's, and those of TensorRT-LLM's ensemble in its old and new forms."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from tritonclient.grpc import model_config_pb2

from proctor.domain.errors import EndpointError
from proctor.domain.trial import Decoding
from proctor.inference.triton.facts import Dialect, ModelFacts, read_facts
from proctor.inference.triton.tensors import finished, request_tensors
from proctor.inference.triton.wire import RequestTemplate
from proctor.inference.worker.backend import Answer

NEW = {
    "text_input": "STRING", "max_tokens": "INT32", "bad_words?": "STRING", "stop_words?": "STRING",
    "exclude_input_in_output?": "BOOL", "top_k?": "INT32", "top_p?": "FP32", "temperature?": "FP32", "seed?": "UINT64",
    "return_num_input_tokens?": "BOOL", "return_num_output_tokens?": "BOOL", "stream?": "BOOL", "beam_width?": "INT32",
}  # fmt: skip
#: Before 2024: words had to be given, numbers were unsigned, and nothing could be left out of the answer.
OLD = {
    "text_input": "STRING", "max_tokens": "UINT32", "bad_words": "STRING", "stop_words": "STRING",
    "top_k?": "UINT32", "top_p?": "FP32", "temperature?": "FP32", "random_seed?": "UINT64", "stream?": "BOOL",
}  # fmt: skip
VLLM = {"text_input": "STRING", "stream?": "BOOL", "sampling_parameters?": "STRING", "exclude_input_in_output?": "BOOL"}


def facts(inputs: dict[str, str], *, batched: bool = True) -> ModelFacts:
    config = model_config_pb2.ModelConfig(name="m", platform="ensemble", max_batch_size=4 if batched else 0)
    for name, kind in inputs.items():
        number = model_config_pb2.DataType.Value(f"TYPE_{kind}")
        config.input.add(name=name.rstrip("?"), data_type=number, optional=name.endswith("?"))
    return read_facts(config, "m", "grpc://host")


def sent(inputs: dict[str, str], decoding: Decoding) -> dict[str, tuple[str, Any]]:
    """Each tensor's type and its value."""
    formats = {"INT32": "<i", "UINT32": "<I", "UINT64": "<Q", "FP32": "<f", "BOOL": "<?"}
    found: dict[str, tuple[str, Any]] = {}
    for tensor in request_tensors(facts(inputs), decoding):
        if tensor.datatype == "BYTES":
            texts, rest = [], tensor.raw
            while rest:
                end = 4 + int.from_bytes(rest[:4], "little")
                texts.append(rest[4:end].decode())
                rest = rest[end:]
            assert len(texts) == tensor.elements
            found[tensor.name] = ("BYTES", texts)
        else:
            assert tensor.elements == 1
            found[tensor.name] = (tensor.datatype, struct.unpack(formats[tensor.datatype], tensor.raw)[0])
    return found


def test_the_dialect_is_told_from_the_inputs() -> None:
    assert [facts(inputs).dialect for inputs in (NEW, OLD, VLLM)] == [Dialect.TENSORRT_LLM] * 2 + [Dialect.VLLM]
    assert ModelFacts().dialect is Dialect.VLLM


def test_greedy_decoding_is_the_first_of_the_likeliest_tokens() -> None:
    assert sent(NEW, Decoding(max_tokens=33)) == {
        "text_input": ("BYTES", [""]),
        "max_tokens": ("INT32", 33),
        "top_k": ("INT32", 1),
        "stream": ("BOOL", False),
        "exclude_input_in_output": ("BOOL", True),
        "return_num_input_tokens": ("BOOL", True),
        "return_num_output_tokens": ("BOOL", True),
    }


def test_a_sampling_policy_is_sent_in_full() -> None:
    got = sent(NEW, Decoding(temperature=0.5, top_p=0.75, max_tokens=9, seed=2**53 - 1, stop=("\n\n", "é")))
    assert got["temperature"] == ("FP32", 0.5)
    assert got["top_p"] == ("FP32", 0.75)
    assert got["seed"] == ("UINT64", 2**53 - 1)
    assert got["stop_words"] == ("BYTES", ["\n\n", "é"])
    assert "top_k" not in got
    assert "bad_words" not in got


def test_an_early_ensemble_gets_its_own_types_and_the_words_that_it_cannot_do_without() -> None:
    assert sent(OLD, Decoding(max_tokens=33, seed=7)) == {
        "text_input": ("BYTES", [""]),
        "max_tokens": ("UINT32", 33),
        "top_k": ("UINT32", 1),
        "random_seed": ("UINT64", 7),
        "bad_words": ("BYTES", [""]),
        "stop_words": ("BYTES", [""]),
        "stream": ("BOOL", False),
    }


@pytest.mark.parametrize(
    ("changed", "decoding", "complaint"),
    [
        ({"temperature?": None}, Decoding(temperature=0.5), "no input temperature"),
        ({"top_p?": None}, Decoding(temperature=0.5, top_p=0.5), "no input top_p"),
        ({"seed?": "INT32"}, Decoding(seed=2**40), "does not fit the model's input of type INT32"),
        ({"max_tokens": "STRING"}, Decoding(), "max_tokens is of type BYTES, not a number"),
        ({}, Decoding(stop=("\ud83d",)), "not valid Unicode"),
    ],
)
def test_a_setting_that_the_model_cannot_honour_is_refused(
    changed: dict[str, str | None], decoding: Decoding, complaint: str
) -> None:
    inputs = {name: kind for name, kind in (NEW | changed).items() if kind is not None}
    with pytest.raises(EndpointError, match=complaint):
        request_tensors(facts(inputs), decoding)


def test_a_batched_model_gets_rows() -> None:
    for batched, shapes in ((True, [[1, 1], [1, 2]]), (False, [[1], [2]])):
        template = RequestTemplate("m", facts(NEW, batched=batched), Decoding(stop=("a", "b")))
        request = template.request("7", b"prompt")
        by_name = {tensor.name: list(tensor.shape) for tensor in request.inputs}
        assert [by_name["text_input"], by_name["stop_words"]] == shapes
        assert request.raw_input_contents[0] == b"\x06\x00\x00\x00prompt"


def test_vllms_tensors_are_sent_as_far_as_the_model_knows_them() -> None:
    got = sent(VLLM, Decoding(max_tokens=5))
    assert list(got) == ["text_input", "stream", "sampling_parameters", "exclude_input_in_output"]
    assert json.loads(got["sampling_parameters"][1][0])["max_tokens"] == 5


@pytest.mark.parametrize(
    ("inputs", "answer", "text", "reason"),
    [
        (NEW, Answer("yes. Q: more", output_tokens=9), "yes.", "stop"),
        (NEW, Answer("yes", output_tokens=9), "yes", "length"),
        (NEW, Answer("yes", output_tokens=8), "yes", "unknown"),
        (NEW, Answer("yes"), "yes", "unknown"),
        (OLD, Answer("yes", output_tokens=20), "yes", "unknown"),
        (VLLM, Answer("yes. Q: more", "stop", output_tokens=9), "yes. Q: more", "stop"),
    ],
)
def test_the_end_of_an_answer_is_told_from_its_text_and_length_where_the_model_does_not_say(
    inputs: dict[str, str], answer: Answer, text: str, reason: str
) -> None:
    got = finished(answer, facts(inputs), Decoding(max_tokens=9, stop=("Q:", " Q")))
    assert (got.text, got.finish_reason) == (text, reason)
