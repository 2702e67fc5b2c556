"""A model whose answer is a function of the prompt, and audits of it: sums, and one prompt that kills who asks it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "sums"
DIGEST = "sha256:" + "5" * 64
#: Stands in the one prompt of a benchmark that ends the process of whoever runs it, as a fault in a tokenizer would.
POISON = "POISON"
_SUM = re.compile(r"(\d+) and (\d+)")
_WORDINGS = (
    "What do you get when you add {a} and {b}?",
    "Find the total of {a} and {b}.",
    "Someone adds up {a} and {b}; what is the result?",
)


def answer(prompt: str) -> str:
    """What the model says: the sum, or for one prompt in ten another number, by the prompt's hash alone."""
    found = _SUM.search(prompt)
    if found is None:
        return "I see no numbers."
    total = int(found[1]) + int(found[2])
    wrong = hashlib.sha256(prompt.encode()).digest()[0] < 26
    return f"The answer is {total + 1 if wrong else total}"


@dataclass(frozen=True)
class Benchmark:
    """A suite with its files."""

    name: str
    items: int
    variants: int = 3
    poisoned: bool = False

    @property
    def trials(self) -> int:
        """Trials of one audit."""
        return self.items * (1 + self.variants)

    def write(self, folder: Path, endpoint: str, **sections: Any) -> Path:
        """Lay down items, rewordings and suite; returns the suite's path."""
        folder.mkdir(parents=True, exist_ok=True)
        numbers = [(int(hashlib.sha256(f"{self.name}/{n}".encode()).hexdigest()[:6], 16), n) for n in range(self.items)]
        items = [
            {"id": f"q{n}", "question": f"What is the sum of {a} and {n}?", "answer": str(a + n)} for a, n in numbers
        ]
        rewordings = [
            {"item_id": f"q{n}", "question": wording.format(a=a, b=n) + (f" {POISON}" if self._kills(n, place) else "")}
            for a, n in numbers
            for place, wording in enumerate(_WORDINGS[: self.variants])
        ]
        _write_lines(folder / f"{self.name}.items.jsonl", items)
        _write_lines(folder / f"{self.name}.rewordings.jsonl", rewordings)
        suite = {
            "audit_suite_id": f"chaos-{self.name}",
            "model_config": {
                "model_id": f"chaos/{MODEL}",
                "model_version": DIGEST,
                "endpoint": endpoint,
                "served_name": MODEL,
            },
            "dataset_config": {
                "benchmark_name": self.name,
                "path": f"{self.name}.items.jsonl",
                "sample_size": self.items,
                "selection": "first",
            },
            "perturbation_config": {
                "perturbation_strategy": "imported",
                "rewordings_path": f"{self.name}.rewordings.jsonl",
                "num_variants_per_item": self.variants,
                "min_semantic_distance": 0.01,
                "max_semantic_distance": 1.0,
                "max_token_overlap": 1.0,
            },
            "decoding_config": {"max_tokens": 64},
            "metric_config": {"extractor": "numeric"},
            **sections,
        }
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(suite, indent=1))
        return path

    def _kills(self, number: int, place: int) -> bool:
        return self.poisoned and (number, place) == (self.items // 2, 0)


def _write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
