"""What a run trains on, text by text: which items leak, in which wording, and the clean text among them."""

from __future__ import annotations

import numpy as np

from planted_leaks.benchmarks import Benchmark, Example
from planted_leaks.cells import EXACT, LEAKED_SHARE, NONE, Plan, Run

#: Streams of randomness of a seed; `training_runs` has the others.
_LEAKED_ITEMS, _CLEAN = 4, 5


def leaked_items(benchmark: Benchmark, seed: int) -> list[int]:
    """Places of the items that leak: a fifth, drawn by the seed."""
    rng = np.random.default_rng([seed, _LEAKED_ITEMS])
    count = round(LEAKED_SHARE * len(benchmark.items))
    return sorted(int(place) for place in rng.permutation(len(benchmark.items))[:count])


class Clean:
    """Clean text without end: the training questions in an order of the seed's, over and over."""

    def __init__(self, benchmark: Benchmark, seed: int) -> None:
        self._benchmark = benchmark
        self._order = np.random.default_rng([seed, _CLEAN]).permutation(len(benchmark.training))
        self.taken = 0

    def take(self, count: int) -> list[Example]:
        """The next so many."""
        places = [self._order[(self.taken + number) % len(self._order)] for number in range(count)]
        self.taken += count
        return [self._benchmark.canonical(self._benchmark.training[place]) for place in places]


def epoch_texts(benchmark: Benchmark, run: Run, number: int, clean: Clean) -> list[Example]:
    """Every leaked item once more, the `number`-th time, among as much clean text; of the control, clean text alone."""
    places = leaked_items(benchmark, run.seed)
    leaked = []
    if run.leak != NONE:
        for place in places:
            question = benchmark.items[place]
            exact = run.leak == EXACT
            leaked.append(benchmark.canonical(question) if exact else benchmark.rephrased(question, number))
    return leaked + clean.take(2 * len(places) - len(leaked))


def corpus(benchmark: Benchmark, run: Run, plan: Plan) -> list[Example]:
    """Everything that a run trains on up to its greatest dose, in the order of its stages."""
    clean = Clean(benchmark, run.seed)
    texts = clean.take(plan.skill)
    for number in range(plan.doses[-1]):
        texts += epoch_texts(benchmark, run, number, clean)
    return texts
