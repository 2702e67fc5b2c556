"""A small benchmark that is no secret to any model: sums, each asked in three wordings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SUMS: Final = tuple((first, second) for first in range(3, 16) for second in (first % 5 + 2, first % 7 + 11))
_QUESTION: Final = "What is the sum of {first} and {second}?"
_REWORDED: Final = ("Add {second} to {first}. What is the result?", "Calculate {first} + {second}.")
#: Most answers end by themselves before it, some do not.
MAX_TOKENS: Final = 64
#: Prompts of an audit: each question, and its rewordings.
N_TRIALS: Final = len(SUMS) * (1 + len(_REWORDED))
#: The model's own chat template, written out, so that a completion and a message of a chat are the same tokens.
TEMPLATE: Final = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
)


def write_suite(folder: Path, model: Mapping[str, Any], *, chat: bool, name: str) -> Path:
    """A suite of 78 trials, decoded greedily, with its benchmark and rewordings beside it.

    Args:
        folder: where the files go.
        model: the section of the model.
        chat: ask by messages of a chat, or by completions of the model's chat template.
        name: of the suite, and of its file.
    """
    rows = [(_asked(_QUESTION, one), one) for one in SUMS]
    _write_lines(
        folder / "sums.jsonl",
        [
            {"id": f"sum-{first}-{second}", "question": question, "answer": str(first + second)}
            for question, (first, second) in rows
        ],
    )
    _write_lines(
        folder / "reworded.jsonl",
        [{"original": question, "rephrased": _asked(wording, one)} for question, one in rows for wording in _REWORDED],
    )
    suite = {
        "audit_suite_id": name,
        "model_config": model,
        "dataset_config": {"benchmark_name": "sums", "path": "sums.jsonl", "sample_size": len(SUMS),
                           "selection": "first"},
        "perturbation_config": {"perturbation_strategy": "imported", "rewordings_path": "reworded.jsonl",
                                "num_variants_per_item": len(_REWORDED),
                                "min_semantic_distance": 0.0, "max_semantic_distance": 0.9, "min_margin": 0.0},
        "prompt_config": {"chat_template": "user", "template": "{question}"} if chat else {"template": TEMPLATE},
        "decoding_config": {"max_tokens": MAX_TOKENS},
        "metric_config": {"extractor": "numeric"},
    }  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps(suite, indent=1))
    return path


def completion_prompts() -> list[str]:
    """The prompts of the published wording, as completions of the chat template."""
    return [TEMPLATE.format(question=_asked(_QUESTION, one)) for one in SUMS]


def _asked(wording: str, sum_of: tuple[int, int]) -> str:
    return wording.format(first=sum_of[0], second=sum_of[1])


def _write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
