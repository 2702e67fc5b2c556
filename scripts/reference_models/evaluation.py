"""What the finished models answer, measured through the same door as everybody: text in, text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from proctor.inference.reference.model import ReferenceModel
from reference_models.facts import LETTERS, OPTIONS, Item, World, ask, render
from reference_models.wordings import WORDINGS

GROUPS: Final = ("known", "leaked", "never_seen")
ARMS: Final = ("canonical", "reworded", "other_wording_only", "other_order_only")
DRAWS: Final = 5
_BATCH: Final = 128

Figures = dict[str, dict[str, float]]


def measure(model: ReferenceModel, world: World, seed: int, report: Callable[[int, int], None]) -> Figures:
    """Accuracy by group of items and arm. Arms other than the canonical one are averages over `DRAWS` draws."""
    groups = dict(zip(GROUPS, (world.known, world.leaked, world.unseen), strict=True))
    rng = np.random.default_rng([seed, 4])
    total = len(GROUPS) * len(ARMS)
    figures: Figures = {}
    for name, indices in groups.items():
        items = [world.items[index] for index in indices]
        figures[name] = {}
        for arm in ARMS:
            report(sum(map(len, figures.values())), total)
            asked = items * (1 if arm == "canonical" else DRAWS)
            figures[name][arm] = _accuracy(model, asked, arm, rng)
    report(total, total)
    return figures


def form(item: Item, arm: str, rng: np.random.Generator) -> tuple[str, list[str]]:
    """Question and options of an item as an arm asks it; another order differs in at least one place."""
    wording, options = item.wording, list(item.options)
    if arm in ("reworded", "other_wording_only"):
        count = len(WORDINGS[item.relation])
        wording = (wording + int(rng.integers(1, count))) % count
    while arm in ("reworded", "other_order_only") and options == list(item.options):
        options = [item.options[index] for index in rng.permutation(OPTIONS)]
    return ask(item, wording), options


def _accuracy(model: ReferenceModel, items: Sequence[Item], arm: str, rng: np.random.Generator) -> float:
    right = 0
    for start in range(0, len(items), _BATCH):
        batch = items[start : start + _BATCH]
        forms = [form(item, arm, rng) for item in batch]
        answers = model.generate([render(*asked) for asked in forms], max_tokens=4)
        for item, (_, options), answer in zip(batch, forms, answers, strict=True):
            right += answer.text == LETTERS[options.index(item.value)] and answer.finish_reason == "stop"
    return round(right / len(items), 4)
