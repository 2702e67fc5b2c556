"""Does accuracy drop when only the wording changes?

500 items, each asked in its canonical wording and in three rewordings. One simulated model is clean, the other has
memorised the canonical wording of a tenth of the items. D is the drop in accuracy, in points; a decision needs its
whole interval on one side of a limit, and a p-value alone decides nothing. The article's rule, a t-test for each item,
stands beside it.
"""

import numpy as np

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import contamination_score, score_inflation
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.families import FAMILIES

rng = np.random.default_rng(0)
for name, leaked_share in (("clean", 0.0), ("leaked", 0.1)):
    drawn = FAMILIES["guessers"].draw(rng, audits=1, items=500, variants=3, leaked_share=leaked_share)
    answers = PairedAnswers.of([f"item-{n}" for n in range(500)], drawn.canonical[0], drawn.right[0], [3] * 500)
    d, score = score_inflation(answers, 0.95), contamination_score(answers, 0.95)
    p_value = max(exchangeability_test(answers).p_value, studentised_test(answers))
    article = per_item_t_test(answers, threshold=0.10, alpha=0.05, block_above_pct=5.0)
    print(f"{name}: D {d.value:.1f} points [{d.low:.1f}, {d.high:.1f}], p = {p_value:.2g}")
    print(f"  Contamination Score {score.value:.3f} [{score.low:.3f}, {score.high:.3f}]")
    print(f"  the article's rule flags {article.flagged_pct:.1f} % of the items")

# Prints:
# clean: D 1.3 points [-1.3, 3.9], p = 0.17
#   Contamination Score 0.017 [-0.016, 0.049]
#   the article's rule flags 3.6 % of the items
# leaked: D 7.9 points [5.1, 10.7], p = 1.9e-08
#   Contamination Score 0.089 [0.057, 0.119]
#   the article's rule flags 5.0 % of the items
