"""The audit's rewordings, as `proctor variants build` admits them, and the suites that ask them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from planted_leaks.benchmarks import Benchmark, Question
from proctor.domain.errors import BadInputError

#: Wide: the surface is what defeats recall, and the gate's other checks what keeps the question.
WINDOW: Final = (0.0, 0.45)
#: By which rules a leak of a worked problem is rephrased; the audit's rewordings are a language model's.
LEAK_RULES: Final = "lexical+syntactic+number_words"


def suite(benchmark: Benchmark, *, model: Mapping[str, Any], strategy: str = "", variants: int = 0) -> dict[str, Any]:
    """The suite of an audit of a benchmark, whose files `write_files` writes beside it."""
    kind = benchmark.kind
    return {
        "audit_suite_id": f"planted-{kind.name}",
        "model_config": dict(model),
        "dataset_config": {
            "benchmark_name": f"planted-{kind.name}", "path": "items.jsonl", "sample_size": len(benchmark.items),
            "selection": "first",
        },
        "perturbation_config": {
            "perturbation_strategy": strategy or kind.strategy, "num_variants_per_item": variants or kind.variants,
            "min_semantic_distance": WINDOW[0], "max_semantic_distance": WINDOW[1],
            **({} if strategy else {"rewordings_path": "rewordings.jsonl"}),
        },
        "decoding_config": {"max_tokens": kind.max_tokens},
        "metric_config": {"extractor": kind.extractor},
        "fresh_config": {"path": "fresh.jsonl", "sample_size": len(benchmark.fresh)},
        "governance": {"audit_owner": "the study of planted leaks"},
    }  # fmt: skip


def write_files(benchmark: Benchmark, folder: Path) -> None:
    """Write items, fresh items and rewordings as a suite reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "items.jsonl", map(_row, benchmark.items))
    _write(folder / "fresh.jsonl", map(_row, benchmark.fresh))
    rewordings = (
        {"item_id": question.item.item_id, "original": question.item.question, "rephrased": text}
        for question in benchmark.items
        for text in question.reworded
    )
    _write(folder / "rewordings.jsonl", rewordings)


def _row(question: Question) -> dict[str, Any]:
    item = question.item
    row: dict[str, Any] = {"item_id": item.item_id, "question": item.question, "answer": item.target}
    if item.choices:
        row |= {"choices": list(item.choices), "answer": item.choices.index(item.target)}
    return row


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


class Admitted:
    """The variants of a benchmark: item id → (question, options) of each, in their order."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.by_item: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for row in rows:
            variant = row["variant"]
            shown = (variant["question"], tuple(variant.get("choices", ())))
            self.by_item.setdefault(row["item"]["item_id"], []).append(shown)


def admitted(benchmark: Benchmark, folder: Path) -> Admitted:
    """The rewordings of a benchmark that the gate admits; made once, in `folder`."""
    write_files(benchmark, folder)
    return Admitted(_build(folder, suite(benchmark, model=_NO_MODEL)))


def rephrased_by_rule(questions: Sequence[Question], benchmark: Benchmark, folder: Path) -> Mapping[str, list[str]]:
    """Item id → rewordings by rule, in which leaks of worked problems are rephrased."""
    of_rules = replace(benchmark, items=tuple(questions))
    write_files(of_rules, folder)
    found = Admitted(_build(folder, suite(of_rules, model=_NO_MODEL, strategy=LEAK_RULES, variants=2)))
    return {item_id: [text for text, _ in variants] for item_id, variants in found.by_item.items()}


_NO_MODEL: Final = {
    "model_id": "study/none",
    "model_version": "sha256:" + "0" * 64,
    "endpoint": "http://127.0.0.1:9/v1",
}


def _build(folder: Path, document: Mapping[str, Any]) -> list[dict[str, Any]]:
    path, exported = folder / "suite.json", folder / "variants.jsonl"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    exported.unlink(missing_ok=True)
    for arguments in (("build", str(path), "--format", "json"), ("export", str(path), str(exported))):
        ran = subprocess.run(
            [sys.executable, "-m", "proctor", "variants", *arguments],
            env={**os.environ, "PROCTOR_HOME": str(folder / "home")}, capture_output=True, text=True,
        )  # fmt: skip
        if ran.returncode != 0:
            raise BadInputError(f"proctor variants {arguments[0]} ended with {ran.returncode}: {ran.stderr.strip()}")
    rows = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()[1:]]
    return [row for row in rows if row.get("kind") == "variant"]
