"""Is it memory, or are the rewordings simply harder?

A clean model loses four points on rewordings that are harder to read; the p-value calls that significant, and cannot
tell it from memory. Control items can: nobody has published them, and they are reworded in the same way. What rewording
costs there is subtracted (difference-in-differences). A model that has memorised a tenth of the items still stands out.
"""

import numpy as np

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.control import controlled_inflation
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.families import FAMILIES

COST = 0.04
rng = np.random.default_rng(0)


def asked(items: int, leaked_share: float) -> PairedAnswers:
    """A model's answers to items in their canonical wording and in three harder ones."""
    family = FAMILIES["guessers"]
    drawn = family.draw(rng, audits=1, items=items, variants=3, leaked_share=leaked_share, cost=COST)
    return PairedAnswers.of([f"item-{n}" for n in range(items)], drawn.canonical[0], drawn.right[0], [3] * items)


for name, leaked_share in (("clean", 0.0), ("leaked", 0.1)):
    benchmark, control = asked(500, leaked_share), asked(400, 0.0)
    alone = max(exchangeability_test(benchmark).p_value, studentised_test(benchmark))
    found = controlled_inflation(benchmark, control, level=0.95, alpha=0.05)
    excess = found.excess_inflation
    print(f"{name}: D {found.inflation_benchmark.value:.1f} points, p = {alone:.2g} without control items")
    print(f"  control items lose {found.inflation_control.value:.1f} points to the rewording")
    print(f"  beyond that: {excess.value:.1f} points [{excess.low:.1f}, {excess.high:.1f}], p = {found.p_value:.2g}")

# Prints:
# clean: D 5.2 points, p = 0.00032 without control items
#   control items lose 3.8 points to the rewording
#   beyond that: 1.4 points [-2.4, 5.3], p = 0.23
# leaked: D 12.5 points, p = 2e-17 without control items
#   control items lose 3.1 points to the rewording
#   beyond that: 9.5 points [5.3, 13.4], p = 9e-06
