"""What a sequential audit would take beside a fixed one of the same suite, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from proctor.domain.suite import Suite
from proctor.domain.suite_design import DesignSection
from proctor.evidence.planning.clustered_audits import ClusterSizes
from proctor.evidence.planning.families import Family
from proctor.evidence.planning.pattern_chances import largest_leaked_share, pattern_chances
from proctor.evidence.planning.sequential_audits import (
    Audits,
    drawn_clustered_looks,
    drawn_controlled_looks,
    drawn_looks,
    stopped,
    whole_clusters,
)
from proctor.evidence.planning.simulated_audits import Limits
from proctor.evidence.sequential.item_order import look_sizes
from proctor.evidence.sequential.schedule import Look, schedule

#: Shares of items that leaked: a clean model, and three that are not.
LEAKS: Final = (0.0, 0.05, 0.10, 0.20)
#: Simulated audits for each figure: shares have a standard error of 1.6 percentage points at most.
AUDITS: Final = 1_000
#: Clusters that are drawn for one figure, where that leaves `_FEWEST_AUDITS` or more.
_CLUSTERS_DRAWN: Final = 500_000
_FEWEST_AUDITS: Final = 100
_SEED: Final = 1


class Chances(NamedTuple):
    """Chances of a decision; what is left is a review."""

    approve: float
    block: float


class SequentialRow(NamedTuple):
    """Audits of models of one family of which this share of items leaked. Shares and chances are fractions."""

    family: str
    leaked_share: float
    share_asked: float
    """Expected share of the sample that a sequential audit asks."""
    sequential: Chances
    fixed: Chances
    """Of the whole sample, looked at once."""


class SequentialPlan(NamedTuple):
    """A sequential design beside the fixed one."""

    design: DesignSection
    own: bool
    """Whether the suite asks for it, and it is not the default one that is shown for comparison."""
    looks: tuple[Look, ...]
    rows: tuple[SequentialRow, ...]

    def row(self, family: str, leaked_share: float) -> SequentialRow | None:
        """Of a family and a leak; None where so much cannot leak there."""
        return next((one for one in self.rows if (one.family, one.leaked_share) == (family, leaked_share)), None)


def plan_sequential(
    suite: Suite,
    families: Iterable[Family],
    n_items: int,
    variants: int,
    limits: Limits,
    *,
    audits: int = AUDITS,
    clusters: ClusterSizes | None = None,
    control_items: int = 0,
) -> SequentialPlan | None:
    """Simulate both designs on the same answers.

    Args:
        suite: whose design is taken where it is sequential, else the default one.
        families: of models.
        n_items: the greatest number of items.
        variants: rewordings of each.
        limits: of the suite.
        audits: simulated ones for each figure.
        clusters: that the items come in; None where each is one of its own.
        control_items: beside them, which come in the shares of the looks. Not beside clusters.

    Returns:
        None where the suite has what no sequential design is made for (`Suite.asked_whole`).
    """
    if suite.asked_whole is not None:
        return None
    own = suite.scoring.design
    design = own if own.sequential else DesignSection(kind="sequential")
    levels = {"level": suite.scoring.confidence_level, "alpha": suite.scoring.significance_alpha}
    sizes, ends = None, list[int]()
    wanted = look_sizes(design, n_items)
    if clusters is not None:
        sizes = np.random.default_rng(_SEED).permutation(clusters.of_items(n_items))
        ends = whole_clusters(sizes, wanted)
        wanted = tuple(int(sizes[:end].sum()) for end in ends)
        audits = min(audits, max(_FEWEST_AUDITS, _CLUSTERS_DRAWN // sizes.size))
    looks = schedule(design, wanted, **levels)
    (whole,) = schedule(DesignSection(), (n_items,), **levels)
    rows = list[SequentialRow]()
    for number, family in enumerate(families):
        for leak in LEAKS:
            if leak > largest_leaked_share(family):
                continue
            rng = np.random.default_rng([_SEED, number, round(1000 * leak)])
            chances = pattern_chances(family, variants, leaked_share=leak)
            drawn: list[Audits]
            if sizes is not None:
                drawn = list(drawn_clustered_looks(chances, sizes, ends, audits=audits, rng=rng))
            elif control_items:
                clean = pattern_chances(family, variants)
                drawn = list(drawn_controlled_looks(chances, clean, looks, control_items, audits=audits, rng=rng))
            else:
                drawn = list(drawn_looks(chances, looks, audits=audits, rng=rng))
            found = stopped(looks, drawn, limits, futility=design.futility)
            fixed = stopped((whole,), drawn[-1:], limits, futility=0.0)
            rows.append(
                SequentialRow(
                    family.name,
                    leak,
                    float(found.n_items.mean()) / n_items,
                    Chances(float(found.approved.mean()), float(found.blocked.mean())),
                    Chances(float(fixed.approved.mean()), float(fixed.blocked.mean())),
                )
            )
    return SequentialPlan(design, own.sequential, looks, tuple(rows))
