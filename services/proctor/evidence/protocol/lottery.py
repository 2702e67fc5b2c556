"""Self-consistency: how much of a greedy score is the luck of one draw.

A greedy answer is one draw of a model that gives several. Where most of k sampled answers to an item are right and the
greedy one is wrong, the item was lost by lottery and not for want of ability; where most are wrong and the greedy one
is right, it was won that way. Wang et al. (2023), "Self-consistency improves chain of thought reasoning in language
models", ICLR; the rate is that of "Silent contamination in LLM merging evaluation" (eval_trust), section 5.1.
"""

from __future__ import annotations

import numpy as np

from proctor.domain.lottery import Lottery as Lottery
from proctor.evidence.answers import BoolArray
from proctor.evidence.intervals import wilson


def lottery(greedy: BoolArray, samples: BoolArray, *, level: float = 0.95) -> Lottery:
    """Count wrong greedy answers that more than half of k samples get right, and the reverse.

    Args:
        greedy: whether each item's greedy answer is right, shape (n,).
        samples: whether each sampled answer is right, shape (n, k), k ≥ 1.
        level: confidence level.

    Strict: more than k/2, so that with an even k a tie rescues nothing. Right answers to an item agree with each
    other, so a strict majority of right samples wins any majority vote; a vote may also be won by fewer, and the rate
    is a lower bound of what voting over k answers would rescue. Assumes items independent; the samples of an item
    need not be. Says nothing of items outside the ones given: resampling wrong items alone gives `rate` rightly and
    leaves `reverse_rate` undefined.

    Raises:
        ValueError: where the shapes do not fit or there is no sample.
    """
    if greedy.ndim != 1 or samples.ndim != 2 or samples.shape[0] != greedy.shape[0] or samples.shape[1] < 1:
        raise ValueError(
            f"greedy {greedy.shape} and samples {samples.shape} are not (n,) and (n, k) with k of 1 or more"
        )
    n, k = samples.shape
    right = samples.sum(axis=1, dtype=np.int64)
    majority_right, majority_wrong = 2 * right > k, 2 * right < k
    rescued = int((~greedy & majority_right).sum())
    lost = int((greedy & majority_wrong).sum())
    n_right = int(greedy.sum())
    return Lottery(
        n=n,
        k=k,
        greedy_wrong=n - n_right,
        rescued=rescued,
        rate=wilson(rescued, n - n_right, level),
        greedy_right=n_right,
        lost=lost,
        reverse_rate=wilson(lost, n_right, level),
        tied=int((2 * right == k).sum()),
        accuracy_greedy=wilson(n_right, n, level),
        accuracy_majority=wilson(int(majority_right.sum()), n, level),
    )
