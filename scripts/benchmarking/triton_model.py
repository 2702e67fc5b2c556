"""A model in Triton's Python backend behind the vLLM backend's tensors, which waits as its configuration says.

Runs in Triton's stub, which has numpy and nothing of Proctor's. With a wait and a batch it answers so many requests
after so many milliseconds, then the next: a GPU, which leaves the processors alone, and never does more than it can.
Without a limit to the batch each request is answered so long after it came, however many there are. Without a wait it
answers at once, and is then as fast as the server's and the client's processors are.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

#: When it is due on the clock of `time.monotonic`, who is told, and what.
_Request = tuple[float, Any, str]

_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    """What Triton's stub instantiates."""

    def initialize(self, args: dict[str, str]) -> None:
        """Read the answers, and start the threads that give them."""
        parameters = json.loads(args["model_config"])["parameters"]
        self._wait_s = float(parameters["wait_ms"]["string_value"]) / 1_000
        self._batch = int(parameters["batch"]["string_value"])
        folder = Path(args["model_repository"]) / args["model_version"]
        self._texts = json.loads((folder / "answers.json").read_text("utf-8"))
        self._asked: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        for function in (self._compute, self._answer_when_due):
            threading.Thread(target=function, daemon=True).start()

    def execute(self, requests: list[Any]) -> None:
        """Take requests in."""
        for request in requests:
            sender = request.get_response_sender()
            (raw,) = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()
            text = self._texts[zlib.crc32(raw) % len(self._texts)]
            if not self._wait_s:
                _answer(sender, text)
            elif self._batch:
                self._asked.put((0.0, sender, text))
            else:
                self._done.put((time.monotonic() + self._wait_s, sender, text))

    def _compute(self) -> None:
        """Batch after batch: what has come until one begins is in it, as far as there is room."""
        while True:
            batch = [self._asked.get()]
            begun_s = time.monotonic()
            while len(batch) < self._batch and not self._asked.empty():
                batch.append(self._asked.get())
            time.sleep(max(0.0, begun_s + self._wait_s - time.monotonic()))
            # Sent by the other thread: a GPU computes the next batch meanwhile.
            for request in batch:
                self._done.put(request)

    def _answer_when_due(self) -> None:
        # In the order in which they came, which is that in which they are due.
        while True:
            due_s, sender, text = self._done.get()
            if (left_s := due_s - time.monotonic()) > 0.0:
                time.sleep(left_s)
            _answer(sender, text)


def _answer(sender: Any, text: str) -> None:
    tensors = [
        pb_utils.Tensor("text_output", np.array([text.encode()], dtype=np.object_)),
        pb_utils.Tensor("finish_reason", np.array([b"stop"], dtype=np.object_)),
        pb_utils.Tensor("num_input_tokens", np.array([60], dtype=np.uint32)),
        pb_utils.Tensor("num_output_tokens", np.array([200], dtype=np.uint32)),
    ]
    sender.send(pb_utils.InferenceResponse(output_tensors=tensors), flags=_FINAL)
