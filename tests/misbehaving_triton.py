"""Models for a real Triton that do what prompts tell them: decoupled, not decoupled, and with TensorRT-LLM's names."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests import misbehaviour

PLAIN, DECOUPLED, TENSORRT_LLM = "plain", "decoupled", "tensorrt-llm"

_VLLM_INPUTS = (
    ("text_input", "STRING", "1", False),
    ("stream", "BOOL", "1", True),
    ("sampling_parameters", "STRING", "1", True),
    ("exclude_input_in_output", "BOOL", "1", True),
    ("return_finish_reason", "BOOL", "1", True),
    ("return_num_input_tokens", "BOOL", "1", True),
    ("return_num_output_tokens", "BOOL", "1", True),
)
#: Of all_models/inflight_batcher_llm/ensemble/config.pbtxt in NVIDIA/TensorRT-LLM, with words that must be given as in
#: its early versions.
_TENSORRT_INPUTS = (
    ("text_input", "STRING", "1", False),
    ("max_tokens", "INT32", "1", False),
    ("bad_words", "STRING", "-1", False),
    ("stop_words", "STRING", "-1", False),
    ("exclude_input_in_output", "BOOL", "1", True),
    ("top_k", "INT32", "1", True),
    ("top_p", "FP32", "1", True),
    ("temperature", "FP32", "1", True),
    ("seed", "UINT64", "1", True),
    ("stream", "BOOL", "1", True),
    ("return_num_input_tokens", "BOOL", "1", True),
    ("return_num_output_tokens", "BOOL", "1", True),
)

_MODEL = '''
"""A model that does what its prompts tell it."""

import json
import threading
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

from misbehaviour import BROKEN, BUSY, DEAD, ENGINE_DIED, HALF, Stage

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.stage = Stage(Path(config["parameters"]["stage"]["string_value"]))
        self.decoupled = pb_utils.using_decoupled_model_transaction_policy(config)
        self.batched = config["max_batch_size"] > 0
        self.inputs = [tensor["name"] for tensor in config["input"]]

    def execute(self, requests):
        if not self.decoupled:
            return [self.answer(request, request.is_cancelled, None) for request in requests]
        for request in requests:
            threading.Thread(target=self.stream, args=(request,), daemon=True).start()
        return None

    def stream(self, request):
        sender = request.get_response_sender()
        sender.send(self.answer(request, sender.is_cancelled, sender), flags=FINAL)

    def answer(self, request, is_cancelled, sender):
        given = {}
        for name in self.inputs:
            tensor = pb_utils.get_input_tensor_by_name(request, name)
            if tensor is not None:
                given[name] = [one.decode() if isinstance(one, bytes) else one for one in tensor.as_numpy().ravel()]
        deed = self.stage.next_deed(given["text_input"][0])
        if not self.stage.wait(deed, deed.wait_for, is_cancelled):
            return self.refusal("abandoned")
        if deed.fault == BUSY:
            return self.refusal("Exceeds maximum queue size")
        if deed.fault == BROKEN:
            # What Triton says of a model whose process has died; a real death would be the end of the model.
            return self.refusal("Stub process 'm_0_0' is not healthy.")
        if deed.fault == DEAD:
            # As vLLM's backend says it.
            return self.refusal("Error generating stream: " + ENGINE_DIED)
        data = deed.text.encode()
        # In the middle of a character, if there is one.
        half = len(data) // 2
        if deed.fault == HALF:
            if sender is not None:
                sender.send(self.says(deed, data[:half], given))
            self.stage.raise_flag(deed.name + ".halved")
            self.stage.wait(deed, "never", is_cancelled)
            return self.refusal("abandoned")
        if sender is None:
            return self.says(deed, data, given)
        sender.send(self.says(deed, data[:half], given))
        return self.says(deed, data[half:], given)

    def says(self, deed, data, given):
        tensors = [self.tensor("text_output", [data], np.object_)]
        if given.get("return_finish_reason"):
            tensors.append(self.tensor("finish_reason", [deed.finish.encode()], np.object_))
        if given.get("return_num_input_tokens"):
            tensors.append(self.tensor("num_input_tokens", [3], np.uint32))
        if given.get("return_num_output_tokens"):
            count = given["max_tokens"][0] if "max_tokens" in given and deed.finish == "length" else 1
            tensors.append(self.tensor("num_output_tokens", [count if self.decoupled else max(count, 2)], np.uint32))
        return pb_utils.InferenceResponse(output_tensors=tensors)

    def tensor(self, name, values, dtype):
        array = np.array(values, dtype=dtype)
        return pb_utils.Tensor(name, array.reshape(1, -1) if self.batched else array)

    def refusal(self, message):
        return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(message))
'''


def write_misbehaving_bundle(bundle: Path, stage: Path, *, version: str) -> None:
    """A model repository of the three models, whose configurations state the version as their weights' digest."""
    for name in (PLAIN, DECOUPLED, TENSORRT_LLM):
        folder = bundle / "models" / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.py").write_text(_MODEL, "utf-8")
        shutil.copy(misbehaviour.__file__, folder / "misbehaviour.py")
        (folder.parent / "config.pbtxt").write_text(_config(name, stage, version), "utf-8")


def _config(name: str, stage: Path, version: str) -> str:
    inputs = ",\n".join(
        f'  {{ name: "{tensor}" data_type: TYPE_{kind} dims: [ {dims} ]{" optional: true" if optional else ""} }}'
        for tensor, kind, dims, optional in (_TENSORRT_INPUTS if name == TENSORRT_LLM else _VLLM_INPUTS)
    )
    outputs = ",\n".join(
        f'  {{ name: "{tensor}" data_type: TYPE_{kind} dims: [ -1 ] }}'
        for tensor, kind in (
            ("text_output", "STRING"),
            ("finish_reason", "STRING"),
            ("num_input_tokens", "UINT32"),
            ("num_output_tokens", "UINT32"),
        )
    )
    # One instance is held up by a prompt that waits; the other answers meanwhile.
    return f"""name: "{name}"
backend: "python"
max_batch_size: {4 if name == TENSORRT_LLM else 0}
model_transaction_policy {{ decoupled: {str(name == DECOUPLED).lower()} }}
input [
{inputs}
]
output [
{outputs}
]
instance_group [ {{ kind: KIND_CPU count: {1 if name == DECOUPLED else 2} }} ]
parameters {{ key: "model_digest" value {{ string_value: "{version}" }} }}
parameters {{ key: "stage" value {{ string_value: "{stage}" }} }}
"""
