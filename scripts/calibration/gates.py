"""What the gate does with simulated models under the suite's default limits, and what the article's gate would do.

Gates are quick to simulate, so each cell is drawn from the exact chances of its patterns (`SimulatedAudits`, the same
arithmetic by which `proctor audit plan` gives its chances).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from calibration.cells import Cell, Measure, Tally
from calibration.rejection import SCORING
from proctor.domain.suite import ScoringSection
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits

_LIMITS: Final = Limits(SCORING)
_ARTICLE: Final = Limits(ScoringSection(method="per_item_t_test"))


def gate(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Approvals, reviews and blocks, and blocks by the article's rule on the same answers."""
    chances = pattern_chances(cell.model, cell.variants, leaked_share=cell.leaked_share, cost=cell.cost)
    audits = SimulatedAudits.draw(chances, items=cell.items, audits=replications, rng=rng)
    approved, blocked = audits.decisions(_LIMITS)
    tally = Tally()
    tally.add(Measure.APPROVED, int(approved.sum()), replications)
    tally.add(Measure.REVIEWED, int((~approved & ~blocked).sum()), replications)
    tally.add(Measure.BLOCKED, int(blocked.sum()), replications)
    tally.add(Measure.ARTICLE_BLOCKS, int(audits.decisions(_ARTICLE).blocked.sum()), replications)
    return tally
