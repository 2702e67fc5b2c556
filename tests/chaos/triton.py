"""The arithmetic model inside a real Triton server, behind the tensors of its vLLM backend."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path

from proctor.inference.reference.triton_repository import model_config
from proctor.localstack.triton_server import triton_command
from tests.chaos import arithmetic
from tests.support import free_port, wait_until

#: Names a file with the seconds that an answer takes, where it is to take any.
PACE_VARIABLE = "SUMS_PACE"
#: Beside it in the repository is `tests.chaos.arithmetic`.
MODEL_PY = '''"""Says the sum that the prompt asks for."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

sys.path.insert(0, str(Path(__file__).parent))
import arithmetic

PACE = os.environ.get("SUMS_PACE")


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            if PACE and os.path.exists(PACE):
                time.sleep(float(Path(PACE).read_text()))
            prompt = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy().ravel()[0].decode("utf-8")
            strings = {"text_output": arithmetic.answer(prompt), "finish_reason": "stop"}
            tensors = [pb_utils.Tensor(name, np.array([said.encode()], dtype=object)) for name, said in strings.items()]
            for name in ("num_input_tokens", "num_output_tokens"):
                tensors.append(pb_utils.Tensor(name, np.array([1], dtype=np.uint32)))
            response = pb_utils.InferenceResponse(output_tensors=tensors)
            request.get_response_sender().send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
'''


class ChaosTriton:
    """A Triton server on ports that stay the same when it is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.grpc_port, self._http_port, self._metrics_port = free_port(), free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        model = folder / "bundle" / "models" / arithmetic.MODEL
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(model_config(arithmetic.MODEL, arithmetic.DIGEST), "utf-8")
        (model / "1" / "model.py").write_text(MODEL_PY, "utf-8")
        shutil.copy(arithmetic.__file__, model / "1" / "arithmetic.py")

    def start(self, *, wait: bool = True) -> None:
        """Start the server."""
        runtime = self._folder / "run"
        runtime.mkdir(parents=True, exist_ok=True)
        command = triton_command(
            self._folder / "bundle",
            grpc_port=self.grpc_port,
            http_port=self._http_port,
            metrics_port=self._metrics_port,
            runtime_dir=runtime,
        )
        with (runtime / "triton.log").open("ab") as log:
            # A group of its own: the Python backend's stubs outlive a killed server, and go with the group.
            self._process = subprocess.Popen(
                command.argv, env={**os.environ, **command.env}, stdout=log, stderr=log, start_new_session=True
            )
        if wait:
            wait_until(self._is_ready, timeout_s=60, what="Triton")

    def kill(self) -> None:
        """SIGKILL the server and its stubs."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}/v2/health/ready", timeout=1) as response:
                return bool(response.status == 200)
        except OSError:
            return False
