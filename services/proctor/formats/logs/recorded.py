"""What logs record of their protocol, put under the fields of a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from proctor.domain.recorded_card import MAX_CHARACTERS, RecordedCard, recorded_card
from proctor.domain.run_log import AskedWith, LoggedAnswer

#: Engines that a harness runs by itself. Behind the address of an API, nobody says which one answers.
ENGINES: Final = frozenset(
    {
        "hf", "hf-auto", "hf-causal", "hf-seq2seq", "hf-multimodal", "hf-mistral3", "huggingface", "vllm", "vllm-vlm",
        "sglang", "gguf", "ggml", "llama-cpp-python", "ollama", "openvino", "neuronx", "nemo_lm", "mamba_ssm",
        "transformer_lens", "nnterp", "steered", "winml",
    }
)  # fmt: skip
#: Where a question stood in its prompt.
QUESTION: Final = "{question}"
#: Names by which tables, and the metadata of plain logs, may say how they were made → fields of the card.
PLAIN_NAMES: Final = {
    "task": "task_set.task",
    "task_version": "task_set.version",
    "dataset": "task_set.dataset",
    "revision": "task_set.revision",
    "split": "split.split",
    "template": "prompt_template.template",
    "n_shot": "prompt_template.n_shot",
    "system_message": "prompt_template.system_message",
    "temperature": "decoding_policy.temperature",
    "top_p": "decoding_policy.top_p",
    "max_tokens": "decoding_policy.max_tokens",
    "seed": "decoding_policy.seed",
    "metric": "metric.name",
    "extractor": "metric.extractor",
    "harness": "evaluator.name",
    "harness_version": "evaluator.version",
    "engine": "evaluator.engine",
}
_NUMBERS: Final = frozenset({"n_shot", "temperature", "top_p", "max_tokens", "seed"})
_OF_PROMPT: Final = {"chat": "chat", "system_message": "system_message"}


def plain_card(values: Mapping[str, Any], *, harness: str | None = None) -> RecordedCard:
    """The card of a plain log's own words; what is empty is not recorded."""
    said = {name: _as_written(name, value) for name, value in values.items() if value not in (None, "")}
    protocol = {field: said[name] for name, field in PLAIN_NAMES.items() if name in said}
    if harness is not None:
        protocol["evaluator.name"] = harness
    return recorded_card(protocol, {"model": said["model"]} if "model" in said else {})


def _as_written(name: str, value: Any) -> Any:
    """Numbers, which a table has as texts, as numbers: 0 and 0.0 are one temperature."""
    if name not in _NUMBERS or not isinstance(value, str):
        return value.strip() if isinstance(value, str) else value
    try:
        return float(value) if "." in value or "e" in value.lower() else int(value)
    except ValueError:
        return value.strip()


def fields_of_settings(asked_with: Iterable[AskedWith]) -> dict[str, Any]:
    """Fields of the settings that every answer was drawn under. One of which the answers differ is not recorded."""
    settings = [one.values for one in asked_with]
    if not settings:
        return {}
    common = {
        name: value
        for name, value in settings[0].items()
        if all(name in other and other[name] == value for other in settings)
    }
    return {_field(name): _in_order(value) if name == "stop" else value for name, value in common.items()}


def _field(name: str) -> str:
    return f"prompt_template.{_OF_PROMPT[name]}" if name in _OF_PROMPT else f"decoding_policy.{name}"


def _in_order(stop: Any) -> Any:
    # Which of the stop texts stands first changes nothing.
    return sorted(set(stop)) if isinstance(stop, list) and all(isinstance(text, str) for text in stop) else stop


def template_of(answers: Iterable[LoggedAnswer]) -> str | None:
    """The one text that every question was put into, with its examples; None where there is not one, or no telling.

    Prompts that have more of the item than its question, e.g. options, have none.
    """
    found: str | None = None
    for answer in answers:
        if answer.prompt is None or not answer.question or answer.question not in answer.prompt:
            return None
        # Examples may hold the same words; the question itself stands last.
        before, _, after = answer.prompt.rpartition(answer.question)
        template = f"{before}{QUESTION}{after}"
        if found is not None and template != found:
            return None
        found = template
    return found


def shortened(version: Any) -> str | None:
    """A version as text; None where it is none."""
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        return None
    return str(version)[:MAX_CHARACTERS] or None
