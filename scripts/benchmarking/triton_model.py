"""Two models in Triton's Python backend behind the vLLM backend's tensors: one that waits, one bound by the processor.

Runs in Triton's stub, which has numpy and nothing of Proctor's. `waits` answers each request after so many
milliseconds, all at the same time, as a GPU's continuous batching would; without a wait it answers at once, and is then
as fast as the server's and the client's processors are.
"""

from __future__ import annotations

import heapq
import json
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """What Triton's stub instantiates."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the answers, and start the thread that gives them."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._wait_s = float(parameters["wait_ms"]["string_value"]) / 1_000
        folder = Path(args["model_repository"]) / args["model_version"]
        self._texts = json.loads((folder / "answers.json").read_text("utf-8"))
        self._due: list[tuple[float, int, Any, str]] = []
        self._changed = threading.Condition()
        self._count = 0
        threading.Thread(target=self._answer_when_due, daemon=True).start()

    def execute(self, requests: list[Any]) -> None:
        """Take requests in."""
        for request in requests:
            sender = request.get_response_sender()
            (raw,) = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()
            text = self._texts[zlib.crc32(raw) % len(self._texts)]
            if self._wait_s:
                with self._changed:
                    self._count += 1
                    heapq.heappush(self._due, (time.monotonic() + self._wait_s, self._count, sender, text))
                    self._changed.notify()
            else:
                _answer(sender, text)

    def _answer_when_due(self) -> None:
        while True:
            with self._changed:
                while not self._due:
                    self._changed.wait()
                left_s = self._due[0][0] - time.monotonic()
                if left_s > 0:
                    self._changed.wait(left_s)
                    continue
                _, _, sender, text = heapq.heappop(self._due)
            _answer(sender, text)


def _answer(sender: Any, text: str) -> None:
    tensors = [
        pb_utils.Tensor("text_output", np.array([text.encode()], dtype=np.object_)),
        pb_utils.Tensor("finish_reason", np.array([b"stop"], dtype=np.object_)),
        pb_utils.Tensor("num_input_tokens", np.array([60], dtype=np.uint32)),
        pb_utils.Tensor("num_output_tokens", np.array([200], dtype=np.uint32)),
    ]
    sender.send(pb_utils.InferenceResponse(output_tensors=tensors), flags=_FINAL)
