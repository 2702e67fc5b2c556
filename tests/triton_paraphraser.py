"""The rewording model of `tests.paraphraser` inside a real Triton server, behind the tensors of its vLLM backend."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.paraphraser import PARAPHRASER, Said

_MODEL_PY = '''"""Says the recorded rewording of the question that stands in the prompt."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = Path(args["model_repository"]) / args["model_version"]
        self._table = json.loads((folder / "replies.json").read_text("utf-8"))

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()[0].decode("utf-8")
            sender.send(self._response(prompt), flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def _response(self, prompt):
        for question, (text, finish_reason, status) in self._table:
            if question in prompt:
                break
        else:
            text, finish_reason, status = "no recorded rewording for this prompt", "stop", 404
        if status != 200:
            code = pb_utils.TritonError.UNAVAILABLE if status >= 500 else pb_utils.TritonError.INVALID_ARG
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(text, code))
        strings = {"text_output": text, "finish_reason": finish_reason}
        tensors = [pb_utils.Tensor(name, np.array([said.encode()], dtype=object)) for name, said in strings.items()]
        tensors += [
            pb_utils.Tensor(name, np.array([1], dtype=np.uint32)) for name in ("num_input_tokens", "num_output_tokens")
        ]
        return pb_utils.InferenceResponse(output_tensors=tensors)
'''


def write_paraphraser(bundle: Path, rewordings: Mapping[str, str | Said], *, digest: str = "") -> None:
    """Lay the model down as `models/<PARAPHRASER>` of a bundle, decoupled as vLLM is.

    Args:
        bundle: the folder whose `models/` Triton serves.
        rewordings: question → what the model says to a prompt that holds it.
        digest: what the model reports as the digest of its weights.
    """
    from proctor.inference.reference.triton_repository import model_config

    folder = bundle / "models" / PARAPHRASER
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(model_config(PARAPHRASER, digest or "sha256:" + "7" * 64), "utf-8")
    (folder / "1" / "model.py").write_text(_MODEL_PY, "utf-8")
    table = [
        (question, said if isinstance(said, Said) else Said(said))
        # The longest match wins: a question may be the beginning of another.
        for question, said in sorted(rewordings.items(), key=lambda row: -len(row[0]))
    ]
    (folder / "1" / "replies.json").write_text(json.dumps(table), "utf-8")
