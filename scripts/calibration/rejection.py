"""How often each test rejects: its size on clean models and its power on contaminated ones.

The functions that are called are the ones that an audit calls; nothing is computed a second way here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from calibration.cells import Cell, Measure, Tally
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.families import Simulated

#: The suite's defaults, which are the article's.
SCORING: Final = ScoringSection()
GOVERNANCE: Final = GovernanceSection()


def paired(simulated: Simulated, variants: int) -> Iterator[PairedAnswers]:
    """Each simulated audit as the channel takes it."""
    items = simulated.canonical.shape[1]
    item_ids, total = tuple(map(str, range(items))), np.full(items, variants)
    for canonical, right in zip(simulated.canonical, simulated.right, strict=True):
        yield PairedAnswers(item_ids, canonical, right, total)


def rejections(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Rejections at the default alpha: the channel's p, its two parts, and the article's rule."""
    alpha, tally = SCORING.significance_alpha, Tally()
    for simulated in cell.draws(rng, replications):
        for answers in paired(simulated, cell.variants):
            exact, studentised = exchangeability_test(answers).p_value, studentised_test(answers)
            article = per_item_t_test(
                answers,
                threshold=SCORING.contamination_threshold,
                alpha=alpha,
                block_above_pct=GOVERNANCE.block_deployment_above_contaminated_pct,
            )
            tally.add(Measure.DEFAULT_P, max(exact, studentised) < alpha)
            tally.add(Measure.EXACT_P, exact < alpha)
            tally.add(Measure.STUDENTISED_P, studentised < alpha)
            tally.add(Measure.ARTICLE_BLOCKS, article.would_block)
            tally.add(Measure.ARTICLE_FLAGS, len(article.flagged_items), answers.n)
    return tally
