"""A task of Inspect: a Python file, and its samples."""

from __future__ import annotations

from typing import Any, Final

from proctor.formats.tasks.task import Task, TaskFormat, json_lines

_TASK: Final = '''"""Written by `proctor variants export`. Every prompt is sent as it stands.

What Inspect says of accuracy is of no use here: the answers are graded by `proctor audit import`.
"""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import exact
from inspect_ai.solver import generate


@task
def {name}():
    """The prompts of the file beside this one."""
    return Task(
        dataset=json_dataset(str(Path(__file__).with_suffix(".jsonl"))),
        solver=generate(),
        scorer=exact(),
        config=GenerateConfig({settings}),
        metadata={{"suite_fingerprint": {fingerprint!r}, "plan_digest": {plan_digest!r}}},
    )
'''


def inspect_files(task: Task) -> dict[str, bytes]:
    """The files of a task, by name."""
    source = _TASK.format(
        name=task.name,
        settings=", ".join(f"{name}={value!a}" for name, value in _generation(task).items()),
        fingerprint=task.fingerprint,
        plan_digest=task.plan_digest,
    )
    rows = []
    for one in task.prompts:
        identity = one.identity()
        sample = {"id": identity["trial_id"], "input": one.trial.prompt, "target": one.target, "metadata": identity}
        rows.append(sample)
    return {f"{task.name}.py": source.encode(), f"{task.name}.jsonl": json_lines(rows)}


def inspect_command(task: Task) -> str:
    """The command for an OpenAI-compatible server."""
    provider = "openai-api" if task.chat else "openai-api-completions"
    server, model = "LOCAL_BASE_URL=URL/v1 LOCAL_API_KEY=KEY", f"{provider}/local/NAME"
    return f"{server} inspect eval {task.name}.py --model {model} --log-dir OUT"


def _generation(task: Task) -> dict[str, Any]:
    """Every setting is written down, so that none is the server's default; the log then has it."""
    decoding = task.decoding
    return {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens,
        **({} if decoding.seed is None else {"seed": decoding.seed}),
        **({"stop_seqs": list(decoding.stop)} if decoding.stop else {}),
    }


INSPECT: Final = TaskFormat("Inspect", inspect_files, inspect_command)
