"""A task of lm-evaluation-harness: a YAML file, the prompts, and a loader of them.

The prompts come by a loader and not by the harness' reader of JSON: that one looks for a relative path from wherever it
is run, and takes texts that look like dates for dates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.formats.tasks.task import Task, TaskFormat, json_lines

#: Its client of chat endpoints sends no more, and says nothing of the rest.
_MAX_CHAT_STOPS: Final = 4
_LOADER: Final = '''"""The prompts of the task beside this file, each just as it is to be sent."""

import json
from pathlib import Path

import datasets


def load(**_):
    """The rows, under the one split that there is."""
    with Path(__file__).with_suffix(".jsonl").open(encoding="utf-8", newline="\\n") as lines:
        return {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}
'''
_YAML: Final = """# Written by `proctor variants export`. Every prompt is sent as it stands.
# What the harness says of accuracy is of no use here: the answers are graded by `proctor audit import`.
task: {name}
custom_dataset: !function {name}.load
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: target
description: ""
target_delimiter: ""
fewshot_delimiter: ""
num_fewshot: 0
repeats: 1
generation_kwargs:
{settings}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1
  suite_fingerprint: {fingerprint}
  plan_digest: {plan_digest}
"""


def lm_eval_files(task: Task) -> dict[str, bytes]:
    """The files of a task, by name.

    Raises:
        BadInputError: for more stop texts than the harness sends.
    """
    stops = len(task.decoding.stop)
    if task.chat and stops > _MAX_CHAT_STOPS:
        raise BadInputError(
            f"decoding_config.stop has {stops} texts, and lm-evaluation-harness sends at most {_MAX_CHAT_STOPS} to a "
            "chat endpoint; shorten the list, or export for inspect"
        )
    yaml = _YAML.format(
        name=task.name,
        settings="\n".join(f"  {name}: {_yaml(value)}" for name, value in _generation(task).items()),
        fingerprint=_yaml(task.fingerprint),
        plan_digest=_yaml(task.plan_digest),
    )
    rows = [{**one.identity(), "prompt": one.trial.prompt, "target": one.target} for one in task.prompts]
    return {
        f"{task.name}.yaml": yaml.encode(),
        f"{task.name}.py": _LOADER.encode(),
        f"{task.name}.jsonl": json_lines(rows),
    }


def lm_eval_command(task: Task) -> str:
    """The command for an OpenAI-compatible server."""
    kind, path = ("local-chat-completions", "chat/completions") if task.chat else ("local-completions", "completions")
    chat = " --apply_chat_template" if task.chat else ""
    tokens = "" if task.chat else ",tokenizer_backend=None,tokenized_requests=False"
    return (
        f"lm_eval run --model {kind} --model_args model=NAME,base_url=URL/v1/{path}{tokens}{chat} --include_path . "
        f"--tasks {task.name} --log_samples --output_path OUT"
    )


def _generation(task: Task) -> Mapping[str, Any]:
    """Every setting is written down, so that none is the harness' or the server's default; the log then has it."""
    decoding = task.decoding
    return {
        "until": list(decoding.stop),
        "max_gen_toks": decoding.max_tokens,
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "do_sample": decoding.temperature > 0.0,
        **({} if decoding.seed is None else {"seed": decoding.seed}),
    }


def _yaml(value: Any) -> str:
    """A value in YAML's flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    if isinstance(value, str):
        return f'"{"".join(map(_yaml_character, value))}"'
    return json.dumps(value)


def _yaml_character(character: str) -> str:
    # Not as JSON: YAML breaks lines at more characters, and knows no pairs of surrogates.
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"


LM_EVAL: Final = TaskFormat("lm-evaluation-harness", lm_eval_files, lm_eval_command)
