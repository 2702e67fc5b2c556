"""The gate with a clean model as the control: what it blocks of clean models and of leaked ones.

All models are consistent answerers (`proctor.evidence.planning.families`) with three rewordings an item. Control and
audited model are drawn independently; the suite's limits are the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from calibration.rejection import GOVERNANCE, SCORING, paired
from channel_studies.cells import Cell, Row, between
from proctor.domain.evidence import Verdict
from proctor.domain.suite import GovernanceSection
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.clean_control import ChosenControl, grounds
from proctor.evidence.perturbation.held import Held, limits_passed
from proctor.evidence.planning.families import FAMILIES
from proctor.perturbation.library.fidelity import CleanModel, measure_fidelity

ITEMS: Final = 500
VARIANTS: Final = 3
#: Points that rewording costs a clean model, and the controls that it is held against.
CLEAN: Final = ((8.0, 8.0), (8.0, 6.0))
#: Points of score inflation by memory; rewording costs these models and their control nothing.
LEAKED: Final = (8.0, 9.0, 10.0, 13.0)

ALONE: Final = "blocked without the control"
BESIDE: Final = "blocked with it"
ANY_EXCESS: Final = "blocked if any excess above 0 were enough"
CLEAN_VERDICT: Final = "called clean with it"

_FAMILY: Final = FAMILIES["consistent"]
_CLEAN_MODEL: Final = CleanModel("clean", "sha256:" + "c" * 64, "simulated")
#: The rejected rule: the estimate past its limit, and its excess over the control past 0.
_NO_SCORE: Final = SCORING.model_copy(update={"contamination_threshold": 0.0})
_NO_POINTS: Final = GovernanceSection(block_deployment_above_contaminated_pct=0.0)


def cells() -> Iterator[Cell]:
    """Clean models first."""
    for cost, of_control in CLEAN:
        yield _cell(f"clean, rewording costs {cost:g} points", cost=cost, leaked=0.0, of_control=of_control)
    for leaked in LEAKED:
        yield _cell(f"leaked, {leaked:g} points", cost=0.0, leaked=leaked, of_control=0.0)


def conclusion(rows: Sequence[Row]) -> str:
    """One sentence."""
    return (
        f"Of clean models that lose points by rewording the gate blocks {between(rows, ALONE, clean=True)} without a "
        f"control and {between(rows, BESIDE, clean=True)} with one; it would be "
        f"{between(rows, ANY_EXCESS, clean=True)} if any excess above 0 were enough."
    )


def _cell(model: str, *, cost: float, leaked: float, of_control: float) -> Cell:
    return Cell(
        study="control",
        model=model,
        beside=f"control that loses {of_control:g}",
        items=ITEMS,
        clean=leaked == 0,
        outcomes=(ALONE, BESIDE, ANY_EXCESS, CLEAN_VERDICT),
        audit=partial(_audit, cost=cost, leaked=leaked, of_control=of_control),
    )


def _audit(rng: np.random.Generator, *, cost: float, leaked: float, of_control: float) -> list[str]:
    measured = measure_fidelity(
        draw_answers(rng, cost=of_control), strategy="s", benchmark="b", variants="v", model=_CLEAN_MODEL
    )
    chosen = ChosenControl(measured, same_rewordings=True)
    found = perturbation_evidence(draw_answers(rng, cost=cost, leaked=leaked), SCORING, GOVERNANCE, None, chosen)
    past = limits_passed(Held.of(found), SCORING, GOVERNANCE)
    seen = {
        ALONE: bool(past),
        BESIDE: found.verdict is Verdict.CONTAMINATED,
        ANY_EXCESS: bool(grounds(past, found.control, _NO_SCORE, _NO_POINTS).blocking),
        CLEAN_VERDICT: found.verdict is Verdict.CLEAN,
    }
    return [outcome for outcome, came_about in seen.items() if came_about]


def draw_answers(rng: np.random.Generator, *, cost: float, leaked: float = 0.0) -> PairedAnswers:
    """One model's answers; what rewording costs and what memory adds in points of the true D."""
    share = leaked / 100 / _FAMILY.inflation(1.0)
    drawn = _FAMILY.draw(rng, audits=1, items=ITEMS, variants=VARIANTS, leaked_share=share, cost=cost / 100)
    return next(paired(drawn, VARIANTS))
