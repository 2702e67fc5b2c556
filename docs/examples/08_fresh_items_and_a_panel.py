"""A model that was trained on the rewordings as well.

It answers every wording of a leaked item, so the drop that rewording should cause is not there. Freshly made items of
the same kind find it. They may be harder for everybody, which twelve reference models show: what counts is whether this
model does better on the benchmark than a model with its result on the fresh items should (ConStat, NeurIPS 2024).
"""

import numpy as np
from scipy.special import expit

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.fresh.bootstrap import FreshAnswers
from proctor.evidence.fresh.channel import fresh_evidence
from proctor.evidence.intervals import score_inflation

ITEMS, VARIANTS, HARDER = 1000, 3, 0.4
rng = np.random.default_rng(0)
difficulty = {"benchmark": rng.normal(0.0, 1.0, ITEMS), "fresh": rng.normal(HARDER, 1.0, ITEMS)}
leaked = rng.random(ITEMS) < 0.4


def answers(ability: float, items: str) -> np.ndarray:
    """Right answers of a model that has seen nothing (an item response model)."""
    return rng.random(ITEMS) < expit(ability - difficulty[items])


panel = np.linspace(-1.0, 2.0, 12)
references = {items: np.stack([answers(ability, items) for ability in panel]) for items in difficulty}

for name, memory in (("clean", np.zeros(ITEMS, dtype=bool)), ("trained on the rewordings", leaked)):
    canonical = answers(0.5, "benchmark") | memory
    reworded = np.stack([answers(0.5, "benchmark") | memory for _ in range(VARIANTS)])
    paired = PairedAnswers.of([f"item-{n}" for n in range(ITEMS)], canonical, reworded.sum(axis=0), [VARIANTS] * ITEMS)
    d = score_inflation(paired, 0.95)
    evidence = fresh_evidence(
        FreshAnswers.of(canonical, answers(0.5, "fresh"), references["benchmark"], references["fresh"]),
        allowed_points=5.0,
        block_points=5.0,
        alpha=0.05,
        level=0.95,
    )
    excess = evidence.excess
    print(f"{name}: rewording costs {d.value:.1f} points [{d.low:.1f}, {d.high:.1f}]")
    print(
        f"  fresh items: {excess.value:.1f} points too good [{excess.low:.1f}, {excess.high:.1f}]: {evidence.verdict}"
    )

# Prints:
# clean: rewording costs -0.1 points [-3.3, 3.1]
#   fresh items: 0.8 points too good [-4.1, 5.7]: inconclusive
# trained on the rewordings: rewording costs 0.7 points [-1.8, 3.3]
#   fresh items: 16.5 points too good [11.9, 21.0]: contaminated
