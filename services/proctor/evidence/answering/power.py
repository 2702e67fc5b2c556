"""What an answering check could find: simulated solvers, whose answers are known. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from proctor.evidence.answering.holding import Finding, SolverPair, findings, usual_answer
from proctor.evidence.answering.sameness import Counts, TwoWordings

#: The right answer of the items, the one that a bad rewording has instead, and how many wrong ones there are.
_RIGHT: Final = "right"
_OTHER: Final = "other"
_WRONG: Final = 20


class Found(NamedTuple):
    """Shares of simulated rewordings that were held, as fractions; NaN where there were none."""

    bad: float
    """Of those whose answer is another."""
    good: float
    """Of those whose answer is the item's."""


def found_share(
    *,
    samples: int,
    solvers: int,
    items: int,
    variants: int,
    accuracy: float,
    bad: float,
    alpha: float,
    rng: np.random.Generator,
) -> Found:
    """Check the rewordings of one simulated audit.

    Every solver gives the answer of a wording with the chance `accuracy`, and otherwise one of 20 wrong ones, each
    equally often. A bad rewording has another answer than its item.

    Args:
        samples: answers of each solver to each wording.
        solvers: how many there are.
        items: how many there are.
        variants: rewordings of each item.
        accuracy: as a fraction.
        bad: the share of the rewordings that are bad, at least one of them.
        alpha: false discovery rate.
        rng: where the answers are drawn from.
    """
    is_bad = rng.random(items * variants) < bad
    if bad > 0.0 and not is_bad.any():
        is_bad[int(rng.integers(is_bad.size))] = True

    def answered(right: str) -> Counts:
        wrong = rng.integers(_WRONG, size=samples)
        return Counter(
            right if hit else f"wrong {number}"
            for hit, number in zip(rng.random(samples) < accuracy, wrong.tolist(), strict=True)
        )

    pairs = list[list[SolverPair]]()
    for item in range(items):
        own = [answered(_RIGHT) for _ in range(solvers)]
        for variant in range(variants):
            answer = _OTHER if is_bad[item * variants + variant] else _RIGHT
            pairs.append([SolverPair(TwoWordings(one, answered(answer)), usual_answer(one) == _RIGHT) for one in own])
    held = np.array([word.finding is Finding.DISAGREE for word in findings(pairs, alpha)])
    return Found(*(float(held[of].mean()) if of.any() else float("nan") for of in (is_bad, ~is_bad)))
