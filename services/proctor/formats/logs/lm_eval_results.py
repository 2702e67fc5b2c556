"""The results_*.json of lm-evaluation-harness, which lies beside its samples and says what they do not.

That is the model, and most of the protocol: the task with its version and data, examples, seeds, the harness' own
version and its engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.formats.logs.log_file import LogFile
from proctor.formats.logs.recorded import ENGINES, shortened

#: How the harness names the samples of a task; its results have the same time in their name.
_SAMPLES: Final = re.compile(r"samples_(.+)_(\d{4}-\d{2}-\d{2}T[\d.-]+)\.jsonl")
_SEEDS: Final = {
    "random_seed": "decoding_policy.random_seed",
    "numpy_seed": "decoding_policy.numpy_seed",
    "torch_seed": "decoding_policy.torch_seed",
    "fewshot_seed": "prompt_template.fewshot_seed",
}


def model_of_results(path: Path) -> str | None:
    """The model that a file of results names; None for a file that is none.

    Raises:
        BadInputError: when the file is missing, empty or too large, or names no model.
    """
    document = _results(path)
    if document is None:
        return None
    named = _named(document.get("config")) or document.get("model_name")
    if not isinstance(named, str) or not named:
        raise BadInputError(f"{path} has results of lm-evaluation-harness that name no model; leave the file out")
    return named


def fields_beside(samples: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of protocol and subject that the results beside a file of samples record; none where there are none.

    Raises:
        BadInputError: where a file of that name cannot be read as the harness' results.
    """
    match = _SAMPLES.fullmatch(samples.name)
    path = samples.with_name(f"results_{match[2]}.json") if match is not None else None
    if match is None or path is None or not path.is_file():
        return {}, {}
    document = _results(path)
    if document is None:
        raise BadInputError(
            f"{path} lies beside {samples.name} and is not the results of lm-evaluation-harness that its name says; "
            "move one of them"
        )
    return _protocol(document, match[1]), _subject(document)


def _results(path: Path) -> dict[str, Any] | None:
    log = LogFile.of(path)
    # An archive is no text, and a log of samples is no document past its first line.
    if not log.data.lstrip().startswith(b"{") or b'"lm_eval_version"' not in log.data:
        return None
    try:
        document = log.document
    except BadInputError:
        # Whoever reads it as a log says best what is the matter.
        return None
    if "lm_eval_version" not in document or not isinstance(document.get("results"), dict):
        return None
    return document


def _protocol(document: Mapping[str, Any], task: str) -> dict[str, Any]:
    config, of_task = _object(document, "config"), _object(_object(document, "configs"), task)
    engine = config.get("model", document.get("model_source"))
    found = {
        "task_set.task": task,
        "task_set.version": shortened(_object(document, "versions").get(task)),
        "task_set.dataset": "/".join(_texts(of_task, "dataset_path", "dataset_name")) or None,
        "task_set.revision": _object(of_task, "dataset_kwargs").get("revision"),
        "split.split": next(_texts(of_task, "test_split", "validation_split"), None),
        "prompt_template.n_shot": _object(document, "n-shot").get(task, of_task.get("num_fewshot")),
        "evaluator.version": shortened(document.get("lm_eval_version")),
        "evaluator.engine": engine if isinstance(engine, str) and engine in ENGINES else None,
    }
    found |= {field: config.get(name) for name, field in _SEEDS.items()}
    found = {field: value for field, value in found.items() if value is not None}
    if found.get("prompt_template.n_shot") == 0:
        # Nothing was drawn by it.
        found["prompt_template.fewshot_seed"] = None
    # Here that there is none is on record, too.
    for name, field in (("system_instruction", "system_message"), ("chat_template", "chat_template")):
        if name in document:
            found[f"prompt_template.{field}"] = document[name]
    return found


def _subject(document: Mapping[str, Any]) -> dict[str, Any]:
    config = _object(document, "config")
    told = {
        "model": _named(config) or document.get("model_name"),
        "client": config.get("model"),
        "model_args": config.get("model_args"),
        "limit": config.get("limit"),
        # Of whatever repository the harness was started in.
        "git_hash": document.get("git_hash"),
    }
    return {name: value for name, value in told.items() if value is not None}


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _texts(document: Mapping[str, Any], *names: str) -> Iterator[str]:
    return (value for name in names if isinstance(value := document.get(name), str) and value)


def _named(config: Any) -> str | None:
    """The model among the arguments of the harness' client, which are an object or `name=value,…`."""
    given = config.get("model_args") if isinstance(config, dict) else None
    if isinstance(given, str):
        given = dict(part.partition("=")[::2] for part in given.split(","))
    found = given.get("model", given.get("pretrained")) if isinstance(given, dict) else None
    return found if isinstance(found, str) else None
