"""A model whose answer is a function of the prompt, and audits of it: sums, and one prompt that kills who asks it."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MODEL = "sums"
DIGEST = "sha256:" + "5" * 64
#: Stands in the one prompt of a benchmark that ends the process of whoever runs it, as a fault in a tokenizer would.
POISON = "POISON"
#: Training data, in so many files, each of which is a shard of the search: see `SEARCH_SHARD_BYTES`.
_CORPUS_FILES, _CORPUS_DOCUMENTS = 8, 400
#: Bytes of a shard of a search in a chaos run: less than any file has.
SEARCH_SHARD_BYTES = 1_000
_SUM = re.compile(r"(\d+) and (\d+)")
_LOOKED_AT = {
    "scoring_config": {
        "design": {"kind": "sequential", "looks": [0.2, 0.4, 0.6, 0.8, 1.0], "futility": 0.05},
        "max_allowed_contaminated_items_pct": 12.0,
        "contamination_threshold": 0.13,
    },
    "governance": {"block_deployment_above_contaminated_pct": 12.0},
}
_WORDINGS = (
    "What do you get when you add {a} and {b}?",
    "Find the total of {a} and {b}.",
    "Someone adds up {a} and {b}; what is the result?",
)


def answer(prompt: str, seed: int | None = None) -> str:
    """What the model says: the sum, or for one prompt in ten another number, by the hash of prompt and seed alone."""
    found = _SUM.search(prompt)
    if found is None:
        return "I see no numbers."
    total = int(found[1]) + int(found[2])
    wrong = hashlib.sha256(f"{prompt}{seed or ''}".encode()).digest()[0] < 26
    return f"The answer is {total + 1 if wrong else total}"


@dataclass(frozen=True)
class Benchmark:
    """A suite with its files."""

    name: str
    items: int
    variants: int = 3
    poisoned: bool = False
    fresh: int = 0
    control: int = 0
    replicates: int = 1
    leaked: int = 0
    """Items, the first ones, whose words stand in training data."""
    sequential: bool = False
    """Whether it is looked at on the way, by limits that so few items can keep to."""

    @property
    def trials(self) -> int:
        """Trials of one audit."""
        return self.replicates * (self.items + self.control) * (1 + self.variants) + self.fresh

    def write(self, folder: Path, endpoint: str, **sections: Any) -> Path:
        """Lay down items, rewordings and suite; returns the suite's path."""
        folder.mkdir(parents=True, exist_ok=True)
        items, fresh, control = (
            self._sums("q", self.items),
            self._sums("f", self.fresh),
            self._sums("c", self.control),
        )
        rewordings = [
            {
                "item_id": one.id,
                "question": wording.format(a=one.a, b=one.b) + (f" {POISON}" if self._kills(one.id, place) else ""),
            }
            for one in (*items, *control)
            for place, wording in enumerate(_WORDINGS[: self.variants])
        ]
        _write_lines(folder / f"{self.name}.items.jsonl", [one.row for one in items])
        _write_lines(folder / f"{self.name}.rewordings.jsonl", rewordings)
        for kind, beside in (("fresh", fresh), ("control", control)):
            if beside:
                _write_lines(folder / f"{self.name}.{kind}.jsonl", [one.row for one in beside])
                sections = {f"{kind}_config": {"path": f"{self.name}.{kind}.jsonl"}, **sections}
        if self.leaked:
            self._lay_down_training_data(folder / self.corpus, items)
            sections = {"exposure_config": {"corpora": {"tune": [f"{self.corpus}/*.jsonl"]}}, **sections}
        if self.sequential:
            sections = {**_LOOKED_AT, **sections}
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
                "selection": "seeded" if self.sequential else "first",
            },
            "perturbation_config": {
                "perturbation_strategy": "imported",
                "rewordings_path": f"{self.name}.rewordings.jsonl",
                "num_variants_per_item": self.variants,
                "min_semantic_distance": 0.01,
                "max_semantic_distance": 1.0,
                "max_token_overlap": 1.0,
            },
            "decoding_config": {"max_tokens": 64, **self._drawn()},
            "metric_config": {"extractor": "numeric"},
            **sections,
        }
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(suite, indent=1))
        return path

    @property
    def corpus(self) -> str:
        """Name of the folder of its training data."""
        return f"{self.name}.corpus"

    def _lay_down_training_data(self, folder: Path, items: list[_Sum]) -> None:
        folder.mkdir(exist_ok=True)
        strangers = self._sums("s", _CORPUS_DOCUMENTS)
        texts = [f"Somebody asked: {one.row['question']} Nobody knew for {one.b} days." for one in strangers]
        for place, leaked in enumerate(items[: self.leaked]):
            # Not next to each other, so that each file has some.
            texts.insert(place * len(texts) // self.leaked, f"{leaked.row['question']} It is {leaked.row['answer']}.")
        for number in range(_CORPUS_FILES):
            _write_lines(folder / f"{number}.jsonl", [{"text": text} for text in texts[number::_CORPUS_FILES]])

    def _drawn(self) -> dict[str, Any]:
        return {} if self.replicates == 1 else {"temperature": 0.7, "replicates": self.replicates}

    def _sums(self, letter: str, count: int) -> list[_Sum]:
        kind = "" if letter == "q" else f"{letter}/"
        digests = [hashlib.sha256(f"{self.name}/{kind}{n}".encode()).hexdigest() for n in range(count)]
        return [_Sum(f"{letter}{n}", int(digest[:6], 16), n) for n, digest in enumerate(digests)]

    def _kills(self, item: str, place: int) -> bool:
        return self.poisoned and (item, place) == (f"q{self.items // 2}", 0)


class _Sum(NamedTuple):
    """One item: two numbers."""

    id: str
    a: int
    b: int

    @property
    def row(self) -> dict[str, str]:
        question = f"What is the sum of {self.a} and {self.b}?"
        return {"id": self.id, "question": question, "answer": str(self.a + self.b)}


def _write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
