"""What a gate would do with models that are simulated: chances of approval, items for it, and what would be found.

Chances depend on the family of models, on how many items and variants there are and on the suite's limits, and are
known before a single answer is. All figures are Monte Carlo means: the standard error of a rate r over m simulated
audits is √(r(1 − r)/m), at the default number at most half a percentage point.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from proctor.domain.levels import POWER, SIGNIFICANCE_ALPHA
from proctor.evidence.answers import FloatArray
from proctor.evidence.intervals import z_quantile
from proctor.evidence.planning.clustered_audits import ClusteredAudits, ClusterSizes
from proctor.evidence.planning.controlled_audits import ControlledAudits
from proctor.evidence.planning.families import Family
from proctor.evidence.planning.pattern_chances import largest_leaked_share, pattern_chances
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits
from proctor.evidence.search import smallest_count

#: Simulated audits for each rate: a standard error of half a percentage point at most.
AUDITS: Final = 10_000
#: Chance of approval that the number of items is given for.
TARGET: Final = 0.90
#: Audits over clusters are drawn cluster by cluster and take longer: a standard error of a percentage point at most
#: up to 250 clusters, and no more items than this are tried.
CLUSTERED_AUDITS: Final = 2_000
CLUSTERED_MAX_ITEMS: Final = 50_000
_CLUSTERED_WIDTH: Final = 0.02
_CLUSTERED_CORRECTIONS: Final = 5
#: Clusters that are drawn for one figure, where that leaves `_FEWEST_AUDITS` or more.
_CLUSTERS_DRAWN: Final = 500_000
_FEWEST_AUDITS: Final = 250
#: A number of items is searched to this relative width, which is finer than the Monte Carlo error.
_WIDTH: Final = 0.005
#: Corrections of a leaked share that starts from the normal formula; the third moves it by less than its error.
_CORRECTIONS: Final = 3


class GateRates(NamedTuple):
    """Shares of simulated audits that are approved, reviewed and blocked; they add up to 1."""

    approve: float
    review: float
    block: float


def gate_rates(
    family: Family,
    items: int,
    variants: int,
    leaked_share: float,
    limits: Limits,
    audits: int,
    rng: np.random.Generator,
    *,
    cost: float = 0.0,
    clusters: ClusterSizes | None = None,
    control: float | None = None,
) -> GateRates:
    """What the gate does with models of a family, where every other channel is clean.

    Args:
        family: how the models' answers come about.
        items: paired items of each audit, 1 or more.
        variants: admitted rewordings of each item.
        leaked_share: expected share of all items that leaked; 0 is a clean model.
        limits: what the suite allows; `Limits()` are the defaults.
        audits: simulated audits.
        rng: source of randomness.
        cost: accuracy (a fraction) that a rewording costs a clean model, for it is harder.
        clusters: sizes of the clusters that the items come in; None where each is one of its own.
        control: control items for each item, which cost the model as much by rewording; None without any. Not beside
            clusters.

    Raises:
        ValueError: without an item or a variant, and where `pattern_chances` refuses the share or the cost.
    """
    chances = pattern_chances(family, variants, leaked_share=leaked_share, cost=cost)
    alone = _drawn(chances, items, audits, rng, clusters)
    drawn: SimulatedAudits | ControlledAudits = alone
    if control is not None:
        clean = pattern_chances(family, variants, leaked_share=0.0, cost=cost)
        drawn = _beside(alone, clean, control, rng)
    decisions = drawn.decisions(limits)
    approve, block = float(decisions.approved.mean()), float(decisions.blocked.mean())
    review = float((~decisions.approved & ~decisions.blocked).mean())
    return GateRates(approve, review, block)


def _beside(
    benchmark: SimulatedAudits, clean: FloatArray, control: float, rng: np.random.Generator
) -> ControlledAudits:
    """Audits with control items beside them, so many for each item, whose answers come about as `clean` says."""
    audits, items = benchmark.n.size, int(benchmark.n[0])
    drawn = SimulatedAudits.draw(clean, items=max(1, round(items * control)), audits=audits, rng=rng)
    return ControlledAudits(benchmark, drawn)


def _drawn(
    chances: FloatArray, items: int, audits: int, rng: np.random.Generator, clusters: ClusterSizes | None
) -> SimulatedAudits:
    if clusters is None:
        return SimulatedAudits.draw(chances, items=items, audits=audits, rng=rng)
    sizes = clusters.of_items(items)
    audits = min(audits, CLUSTERED_AUDITS, max(_FEWEST_AUDITS, _CLUSTERS_DRAWN // sizes.size))
    return ClusteredAudits.simulate(chances, sizes, audits=audits, rng=rng)


def approval_chance(
    family: Family,
    items: int,
    variants: int,
    limits: Limits,
    rng: np.random.Generator,
    *,
    audits: int = AUDITS,
    clusters: ClusterSizes | None = None,
    control: float | None = None,
) -> float:
    """Chance that a clean model of the family is approved."""
    return gate_rates(family, items, variants, 0.0, limits, audits, rng, clusters=clusters, control=control).approve


def items_for_approval(
    family: Family,
    variants: int,
    limits: Limits,
    rng: np.random.Generator,
    *,
    target: float = TARGET,
    audits: int = AUDITS,
    clusters: ClusterSizes | None = None,
    control: float | None = None,
) -> int | None:
    """Items at which a clean model of the family is approved with chance `target`; None where no number does.

    Items that come in clusters come in as many more of these sizes; beyond `CLUSTERED_MAX_ITEMS` none are tried.
    Control items are as many more too.

    Found by doubling and halving, to half a percent. The Monte Carlo error of the chance there, 0.3 percentage points
    at 90 %, comes to about 1 % of the items: give it with two digits.
    """
    seed = int(rng.integers(2**63))

    def enough(items: int) -> bool:
        rng = np.random.default_rng(seed)
        chance = approval_chance(
            family, items, variants, limits, rng, audits=audits, clusters=clusters, control=control
        )
        return chance >= target

    if clusters is None:
        return smallest_count(enough, width=_WIDTH)
    return smallest_count(enough, width=_CLUSTERED_WIDTH, most=CLUSTERED_MAX_ITEMS)


def detectable_share(
    family: Family,
    items: int,
    variants: int,
    rng: np.random.Generator,
    *,
    alpha: float = SIGNIFICANCE_ALPHA,
    power: float = POWER,
    audits: int = AUDITS,
    clusters: ClusterSizes | None = None,
    control: float | None = None,
) -> float | None:
    """Smallest leaked share of items that the default p-value finds at `alpha` with `power`; None where none is.

    The default p-value is the larger of the exchangeability and the studentised test's. The normal formula
    √n E[D] = (z_α + z_β) SD[D] gives a first share; it is then scaled, three times, until the simulated power is the
    wanted one: in units of the normal quantile, power is nearly linear in the share. The Monte Carlo error is about
    1 % of the share. Over clusters the share is rather too large: its power is 78 to 90 %. With control items the p is
    that of the difference.

    Null hypothesis of the test: mean accuracy on the canonical wording is no higher than on the rewordings.
    """
    seed = int(rng.integers(2**63))
    most = largest_leaked_share(family)
    wanted = z_quantile(1 - alpha) + z_quantile(power)

    def found(share: float) -> float:
        chances = pattern_chances(family, variants, leaked_share=share)
        rng = np.random.default_rng(seed)
        alone = _drawn(chances, items, audits, rng, clusters)
        drawn: SimulatedAudits | ControlledAudits = alone
        if control is not None:
            clean = pattern_chances(family, variants, leaked_share=0.0)
            drawn = _beside(alone, clean, control, rng)
        return float(drawn.significant(alpha, exact=False).mean())

    if found(most) < power:
        return None
    alike = items if clusters is None else items / clusters.design_effect(items)
    share = _by_normal_formula(family, alike, variants, wanted, most)
    for _ in range(_CORRECTIONS if clusters is None else _CLUSTERED_CORRECTIONS):
        # One audit's worth away from 0 and 1, where the quantile is infinite.
        seen = min(max(found(share), 1 / audits), 1 - 1 / audits)
        share = min(most, share * wanted / max(z_quantile(1 - alpha) + float(special.ndtri(seen)), wanted / 4))
    return share


def _by_normal_formula(family: Family, items: float, variants: int, wanted: float, most: float) -> float:
    """The share at which √n E[D] is `wanted` standard deviations of D, between 0 and `most`."""
    d = np.arange(2)[:, None] - np.arange(variants + 1) / variants

    def enough(share: float) -> bool:
        chances = pattern_chances(family, variants, leaked_share=share)
        mean = float((chances * d).sum())
        return mean * math.sqrt(items) >= wanted * math.sqrt(float((chances * d * d).sum()) - mean**2)

    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
