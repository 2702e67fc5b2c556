"""The simulations behind docs/evidence.md: planted truths are found, and a seed gives the same figures again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import simulate_channels
from channel_studies import control, noise
from channel_studies.cells import Cell, simulate


def shares(cell: Cell, *, audits: int) -> dict[str, float]:
    rows = simulate(cell, audits=audits, seed=0)
    return {row.outcome: row.hits / row.audits for row in rows}


def test_the_same_seed_prints_the_same_bytes_and_another_one_others(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(seed: str) -> str:
        assert simulate_channels.main(["--audits", "2", "--seed", seed, "--format", "json"]) == 0
        return capsys.readouterr().out

    first = printed("0")
    assert first == printed("0")
    assert json.loads(first)["rows"] != json.loads(printed("1"))["rows"]


def test_a_study_alone_has_the_figures_that_it_has_among_others(capsys: pytest.CaptureFixture[str]) -> None:
    def rows(study: str) -> list[Any]:
        simulate_channels.main(["--study", study, "--audits", "2", "--format", "json"])
        found: list[Any] = json.loads(capsys.readouterr().out)["rows"]
        return found

    assert rows("all") == rows("control") + rows("noise")


def test_the_table_has_a_line_for_every_cell_and_ends_in_the_conclusion(capsys: pytest.CaptureFixture[str]) -> None:
    simulate_channels.main(["--study", "control", "--audits", "1"])
    *table, empty, conclusion = capsys.readouterr().out.splitlines()
    assert (len(table), empty) == (2 + len(list(control.cells())), "")
    assert conclusion.startswith("Of clean models that lose points by rewording the gate blocks ")


def test_every_cell_has_a_name_and_so_a_stream_of_its_own() -> None:
    names = [cell.name for study in (control, noise) for cell in study.cells()]
    assert len(set(names)) == len(names)


def test_a_control_keeps_clean_models_from_being_blocked_and_large_leaks_stay_blocked() -> None:
    cells = list(control.cells())
    clean, leaked = shares(cells[0], audits=15), shares(cells[-1], audits=15)
    assert clean[control.ALONE] > 0.5
    assert clean[control.BESIDE] == 0
    assert leaked[control.BESIDE] > 0.8


def test_what_is_blocked_beside_a_control_is_blocked_by_the_laxer_rules_too() -> None:
    border = next(cell for cell in control.cells() if not cell.clean)
    rng = np.random.default_rng(0)
    for _ in range(15):
        seen = set(border.audit(rng))
        assert control.BESIDE not in seen or {control.ALONE, control.ANY_EXCESS} <= seen


def test_simulated_costs_and_leaks_are_the_points_that_a_cell_names() -> None:
    rng = np.random.default_rng(0)
    for points in ({"cost": 8.0}, {"cost": 0.0, "leaked": 13.0}):
        answers = [control.draw_answers(rng, **points) for _ in range(60)]
        differences = np.concatenate([one.differences for one in answers])
        error = differences.std() / np.sqrt(differences.size)
        assert abs(differences.mean() - sum(points.values()) / 100) < 5 * error


def test_noise_that_reminds_of_many_items_is_found_and_noise_that_costs_points_is_not() -> None:
    cells = list(noise.cells())
    reminded = [cell for cell in cells if not cell.clean]
    assert shares(reminded[-1], audits=5)["contaminated"] == 1
    costly = next(cell for cell in cells if cell.beside == "noise costs 5 points")
    assert shares(costly, audits=5)["contaminated"] == 0


@pytest.mark.parametrize("arguments", [["--audits", "0"], ["--seed", "-1"]])
def test_a_number_below_its_range_is_refused_with_its_name(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        simulate_channels.main(arguments)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{' '.join(arguments)}: give a number from" in said.err
