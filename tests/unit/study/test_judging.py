"""What is said of stored grades: a planted leak, and none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from planted_leaks.cells import EXACT, NONE, Cell
from planted_leaks.constat import Answers, constat
from planted_leaks.document import cells_csv, page, situations
from planted_leaks.grades import Grades
from planted_leaks.judging import FRESH, PERTURBATION, Judged, judge_all
from planted_leaks.pictures import pictures
from planted_leaks.power import power
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Verdict

Judgements = dict[Cell, Judged]
_ITEMS, _FRESH = 1_500, 1_500
_EXACT, _TRANSFERRED = Cell("facts", EXACT, 4, 0, 1), Cell("facts", EXACT, 16, 0, 1)


def _grades(rng: np.random.Generator, *, leaked: bool, transfers: bool = False) -> Grades:
    """A model that knows three tenths of the items in every wording, and a leaked fifth in one wording or in all."""
    knows = rng.random(_ITEMS) < 0.3
    leaks = np.arange(_ITEMS) % 5 == 0
    canonical = knows | leaks if leaked else knows
    reworded = canonical if transfers else knows

    def signs(right: npt.NDArray[np.bool_]) -> str:
        return "".join("1" if one else "0" for one in right)

    return Grades(signs(leaks), signs(canonical), (signs(reworded),) * 3, signs(rng.random(_FRESH) < 0.3))


def _found() -> dict[Cell, Grades]:
    rng = np.random.default_rng(5)
    clean = {Cell("facts", NONE, dose, 0, 1): _grades(rng, leaked=False) for dose in (0, 1, 4, 8, 16, 64)}
    return clean | {
        _EXACT: _grades(rng, leaked=True),
        _TRANSFERRED: _grades(rng, leaked=True, transfers=True),
    }


@pytest.fixture(scope="module")
def judged() -> Judgements:
    return {one.cell: one for one in judge_all(_found(), replicates=60)}


def test_a_leak_that_one_wording_brings_back_is_blocked_and_its_items_are_the_ranked_ones(judged: Judgements) -> None:
    found = judged[_EXACT]
    assert found.decision.outcome is DecisionOutcome.BLOCK
    assert found.precision == 1.0
    assert found.leaked[0] == 1.0
    assert found.leaked[1] < 0.6
    assert found.constat is not None
    assert found.constat.p_value < 0.05


def test_a_leak_that_every_wording_brings_back_is_approved_and_found_by_fresh_items_alone(judged: Judgements) -> None:
    found = judged[_TRANSFERRED]
    assert found.decision.outcome is DecisionOutcome.APPROVE
    assert found.fresh.verdict is Verdict.CONTAMINATED
    assert found.noise is None


def test_a_clean_model_is_approved_and_not_called_contaminated(judged: Judgements) -> None:
    for one in judged.values():
        if one.cell.leak == NONE:
            assert one.decision.outcome is DecisionOutcome.APPROVE
            assert one.fresh.verdict is not Verdict.CONTAMINATED


def test_the_page_says_first_what_was_approved_though_it_was_contaminated(judged: Judgements) -> None:
    found = _found()
    powers = {cell: power(cell, found[cell], resamples=3) for cell in (_EXACT, _TRANSFERRED)}
    written = page(list(judged.values()), powers, [])
    first = written.split("## What it says against Proctor")[1].split("##")[0]
    assert "approves 1 of 2 contaminated models" in first
    assert "Fresh items find 1 of these 1" in first
    assert "$" not in written
    assert set(pictures(powers)) == {"power-wording.svg", "power-fresh.svg"}
    assert len(cells_csv(list(judged.values())).splitlines()) == 1 + len(found)
    assert len(situations(judged.values())) == len(found)


def test_the_power_of_a_channel_is_of_audits_whose_items_are_drawn_anew() -> None:
    found = _found()
    cell = _TRANSFERRED
    measured = power(cell, found[cell], resamples=10)
    assert measured == power(cell, found[cell], resamples=10)
    assert measured.contaminated[PERTURBATION] == 0.0
    assert measured.contaminated[FRESH] > 0.8
    assert measured.approved > 0.9


@pytest.mark.parametrize("excess", [0.0, 0.2])
def test_constats_estimator_measures_what_a_model_has_beyond_the_curve_of_clean_ones(excess: float) -> None:
    rng = np.random.default_rng(3)

    def model(skill: float, beyond: float = 0.0) -> Answers:
        return Answers((rng.random(2_000) < skill + beyond).astype(float), (rng.random(2_000) < skill).astype(float))

    clean = [model(skill) for skill in np.linspace(0.2, 0.8, 9)]
    measured = constat(model(0.5, excess), clean, chance=0.0, rng=rng, replicates=100)
    assert measured is not None
    assert measured.points == pytest.approx(100 * excess, abs=5)
    assert (measured.p_value < 0.01) == (excess > 0)


def test_constats_estimator_says_nothing_with_fewer_than_five_clean_models() -> None:
    one = Answers(np.ones(10), np.ones(10))
    assert constat(one, [one] * 4, chance=0.0, rng=np.random.default_rng(0)) is None
