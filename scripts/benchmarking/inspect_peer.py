"""The peer: inspect_ai with its mock model, in a process of its own that prints the seconds it took.

python -m benchmarking.inspect_peer PROMPTS.json LOG_FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarking.null_model import TOKENS, text_for
from benchmarking.servers import environment, python


def run_inspect(prompts: list[str], folder: Path) -> float:
    """Seconds in which inspect_ai evaluates so many samples; what its process takes to start is not in them."""
    asked = folder / "inspect-prompts.json"
    asked.write_text(json.dumps(prompts), "utf-8")
    argv = python("benchmarking.inspect_peer", str(asked), str(folder / "inspect-logs"))
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"inspect_ai failed: {done.stderr[-2_000:]}")
    return float(done.stdout.split()[-1])


def main() -> None:
    """Evaluate, and print the seconds."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import get_model
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    prompts = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    model = get_model("mockllm/model", custom_outputs=lambda messages, *rest: _output(messages[-1].text))
    samples = [Sample(input=prompt, target="1") for prompt in prompts]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match(numeric=True))
    started_s = time.monotonic()
    (log,) = evaluate(task, model=model, display="none", log_dir=sys.argv[2], log_level="error")
    taken_s = time.monotonic() - started_s
    assert log.status == "success", log.error
    print(taken_s)


def _output(prompt: str) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage

    output = ModelOutput.from_content("mockllm/model", text_for(prompt))
    # Else it counts them by a tokeniser that it downloads, and that takes time of its own.
    output.usage = ModelUsage(input_tokens=len(prompt) // 4, output_tokens=TOKENS)
    return output


if __name__ == "__main__":
    main()
