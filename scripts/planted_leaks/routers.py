"""The router–worker protocol of arXiv 2603.21636 with routers that work by rule: no model of this size passes a
question on.

A clean router passes the whole problem on. A noisy one leaves out three tenths of the question's words and adds a
sentence that has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from planted_leaks.asking import Asked, graded_arms
from planted_leaks.benchmarks import DRAW_SEED, Benchmark
from planted_leaks.language_model import LanguageModel
from proctor.domain.item import Item
from proctor.domain.labels import labelled
from proctor.domain.routing import Condition, ProtocolSection, RouterKind
from proctor.text.router_prompts import worker_prompt

PROTOCOL: Final = ProtocolSection(protocol="router_worker", max_routers=2, matched_clean=False)
_DELETED_SHARE: Final = 0.3
_NOISE: Final = (
    "The weather was mild that week.",
    "A bus stops in front of the library.",
    "Somebody left a green umbrella behind.",
    "The meeting had been moved to Tuesday.",
    "There is a bakery around the corner.",
)


def router_grades(benchmark: Benchmark, model: LanguageModel) -> Mapping[str, str]:
    """Arm → grades, for every condition of the protocol."""
    arms = [[_asked(number, question.item, condition) for number, question in enumerate(benchmark.items)]
            for condition in PROTOCOL.conditions]  # fmt: skip
    found = graded_arms(model, arms, benchmark.kind.extractor, benchmark.kind.max_tokens)
    return dict(zip((str(condition.arm) for condition in PROTOCOL.conditions), found, strict=True))


def _asked(number: int, item: Item, condition: Condition) -> Asked:
    written = messages(number, item.question, item.choices, condition)
    return Asked(worker_prompt("1", written, len(item.choices)), item.choices, item.target)


def messages(item: int, question: str, choices: Sequence[str], condition: Condition) -> list[str]:
    """What the routers of a condition write of an item; the r routers are the first r of one set."""
    options = "\n".join(labelled(choices, None))
    if condition.kind is RouterKind.CLEAN:
        return [f"Question: {question}\nOptions:\n{options}"] * condition.routers
    written = []
    for router in range(condition.routers):
        rng = np.random.default_rng([DRAW_SEED, item, router])
        words = question.split()
        # The last word, with the question mark, stays.
        gone = set(rng.permutation(len(words) - 1)[: max(1, round(_DELETED_SHARE * (len(words) - 1)))].tolist())
        left = " ".join(word for place, word in enumerate(words) if place not in gone)
        noise = _NOISE[int(rng.integers(len(_NOISE)))]
        written.append(f"Question: {noise} {left}\nOptions:\n{options}")
    return written
