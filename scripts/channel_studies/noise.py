"""The noise channel: how often it calls a worker contaminated that noise does not help, and one that it reminds.

The worker's answers are drawn, in every arm anew, from an item's chance to be answered right. No message gives an
answer away and no answer is missing, so the comparison without leaks is the one with all items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from calibration.rejection import SCORING
from channel_studies.cells import Audit, Cell, Row, between
from proctor.domain.evidence import Verdict
from proctor.domain.routing import MAX_ROUTERS
from proctor.evidence.answers import BoolArray, FloatArray
from proctor.evidence.noise.channel import noise_verdict
from proctor.evidence.noise.comparing import Compared, Comparisons, Right, compare
from proctor.evidence.planning.families import FAMILIES, KNOWN, NOISE, Family

ITEMS: Final = (100, 500)
#: Families in which the wordings of an item are independent: here they are arms.
WORKERS: Final = ("consistent", "guessers", "beta_2_1", "beta_1_1")
#: Points that noisy messages cost a worker without memory.
LOSSES: Final = (0.0, 5.0)
#: Points that noisy messages give a consistent answerer with memory, with the most routers.
LIFTS: Final = (5.0, 10.0, 20.0)

_OUTCOMES: Final = (str(Verdict.CONTAMINATED), str(Verdict.CLEAN), str(Verdict.INCONCLUSIVE))
_REMEMBERS: Final = FAMILIES["consistent"]


def cells() -> Iterator[Cell]:
    """Workers without memory first, fewer items first."""
    for items in ITEMS:
        for name in WORKERS:
            for loss in LOSSES:
                beside = f"noise costs {loss:g} points"
                yield _cell(name, beside, items, clean=True, audit=partial(_unaided, FAMILIES[name], items, loss))
        for lift in LIFTS:
            beside = f"noise reminds of {lift:g} points at r = {MAX_ROUTERS}"
            yield _cell(_REMEMBERS.name, beside, items, clean=False, audit=partial(_reminded, items, lift))


def conclusion(rows: Sequence[Row]) -> str:
    """One sentence."""
    contaminated = _OUTCOMES[0]
    return (
        f"Of workers that noise does not help {between(rows, contaminated, clean=True)} are called contaminated, "
        f"depending on the worker and the items; of those that it reminds, {between(rows, contaminated, clean=False)}."
    )


def _cell(model: str, beside: str, items: int, *, clean: bool, audit: Audit) -> Cell:
    return Cell("noise", model, beside, items, clean, _OUTCOMES, audit)


def _unaided(family: Family, items: int, loss: float, rng: np.random.Generator) -> list[str]:
    chance = _chances(family, items, rng)
    noisy = chance * (1 - loss / 100 / family.accuracy)
    return [_verdict(chance, [noisy] * MAX_ROUTERS, rng)]


def _reminded(items: int, lift: float, rng: np.random.Generator) -> list[str]:
    """Nested: what r routers remind of, r + 1 do as well. The share of items grows evenly with r."""
    chance = _chances(_REMEMBERS, items, rng)
    place = rng.random(items)
    most = lift / 100 / ((1 - KNOWN) * (1 - 2 * NOISE))
    unknown: BoolArray = chance < 0.5
    noisy = [
        np.where(unknown & (place < most * routers / MAX_ROUTERS), 1 - NOISE, chance)
        for routers in range(1, MAX_ROUTERS + 1)
    ]
    return [_verdict(chance, noisy, rng)]


def _chances(family: Family, items: int, rng: np.random.Generator) -> FloatArray:
    if family.beta is not None:
        return rng.beta(*family.beta, size=items)
    assert family.unknown_chance is not None
    return np.where(rng.random(items) < KNOWN, 1 - NOISE, family.unknown_chance)


def _verdict(clean: FloatArray, noisy: Sequence[FloatArray], rng: np.random.Generator) -> str:
    """Of one audit: as many clean routers' arms as noisy ones, every arm with draws of its own."""
    names = [str(item) for item in range(len(clean))]

    def answers(chance: FloatArray) -> Right:
        return dict(zip(names, (rng.random(len(chance)) < chance).tolist(), strict=True))

    beside, right = [answers(clean) for _ in noisy], [answers(chance) for chance in noisy]

    def against(arms: Sequence[Right]) -> list[Compared]:
        pairs = enumerate(zip(arms, right, strict=True), start=1)
        return [Compared(routers, "clean", arm, of_noisy, names) for routers, (arm, of_noisy) in pairs]

    level = SCORING.confidence_level
    own = compare(against([beside[0]] * len(noisy)), level=level)
    comparisons = Comparisons(own, matched=compare(against(beside), level=level), without_leaks=own)
    return str(noise_verdict(comparisons, asked=len(noisy), scoring=SCORING))
