"""`proctor noise` as a person runs it, on the paper's own table."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from statsmodels.stats.contingency_tables import mcnemar

from tests.support import shared_data


def proctor(*arguments: object, first_on_path: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(first_on_path or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "proctor", "noise", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.fixture(scope="module")
def paper_table() -> Path:
    return shared_data() / "paper" / "model_router_details.csv"


@pytest.fixture(scope="module")
def paper(paper_table: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = proctor(paper_table, "--format", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_papers_table_gives_its_summary_statistics(paper: dict[str, Any], paper_table: Path) -> None:
    with paper_table.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for model in paper["models"]:
        points = [round(100 * float(row["gain"])) for row in rows if row["model"] == model["model"]]
        assert model["settings"] == len(points) == 9
        assert model["invalid_settings"] == 0
        assert model["violations"] == sum(gain > 0 for gain in points)
        assert model["max_positive_excess"] == pytest.approx(max(0, *points) / 100)
        above = [gain for gain in points if gain > 0]
        mean = pytest.approx(sum(above) / len(above) / 100) if above else None
        assert model["mean_positive_excess"] == mean
        assert model["mean_excess_over_all_settings"] == pytest.approx(sum(above) / 900)
        assert model["mean_gain"] == pytest.approx(sum(points) / 900)
    for count in paper["router_counts"]:
        here = [row for row in rows if int(row["router_count"]) == count["router_count"]]
        points = [round(100 * float(row["gain"])) for row in here]
        assert count["violating_models"] == sum(gain > 0 for gain in points)
        above = [gain for gain in points if gain > 0]
        assert count["mean_positive_excess"] == (pytest.approx(sum(above) / len(above) / 100) if above else None)
        assert count["mean_excess_over_all_settings"] == pytest.approx(sum(above) / 1200)
        assert count["improve"] == sum(int(row["improve"]) for row in here)
        assert count["degrade"] == sum(int(row["degrade"]) for row in here)
        assert count["net_improve"] == count["improve"] - count["degrade"]
    assert len(paper["models"]) == 12
    assert len(paper["router_counts"]) == 9


def test_three_of_the_papers_62_gains_survive_holm(paper: dict[str, Any]) -> None:
    assert paper["positive_gains"] == 62
    assert paper["tested_settings"] == 108
    survivors = {(one["model"], one["router_count"]) for one in paper["significant"]}
    assert survivors == {("Llama-3.1-8B", 6), ("Qwen3.5-35B", 3), ("Qwen3.5-35B", 9)}
    assert "62 of 108 settings" in paper["conclusion"]
    assert "3 of these survive Holm" in paper["conclusion"]


def test_every_exact_p_agrees_with_statsmodels(paper: dict[str, Any]) -> None:
    for one in paper["settings"]:
        if one["gain"] > 0:
            two_sided = mcnemar([[0, one["improve"]], [one["degrade"], 0]], exact=True).pvalue
            assert one["p_value"] == pytest.approx(two_sided / 2, rel=1e-9)


def test_unread_answers_in_the_papers_table_can_be_marked(paper_table: Path, tmp_path: Path) -> None:
    lines = paper_table.read_text().splitlines()
    marked = [f"{lines[0]},invalid", *(f"{line},{100 if ',0.00,-' in line else 0}" for line in lines[1:])]
    path = tmp_path / "marked.csv"
    path.write_text("\n".join(marked))
    document = json.loads(proctor(path, "--format", "json").stdout)
    invalid = {model["model"]: model["invalid_settings"] for model in document["models"] if model["invalid_settings"]}
    assert invalid == {"Qwen3.5-122B": 5, "Qwen3.5-35B": 3}
    assert document["positive_gains"] == 62
    assert document["tested_settings"] == 100


def test_the_table_for_people_says_the_conclusion_in_words(paper_table: Path) -> None:
    done = proctor(paper_table)
    assert done.returncode == 0
    assert not done.stderr
    assert "By model" in done.stdout
    assert "By router count" in done.stdout
    assert "62 of 108 settings are above the clean baseline" in done.stdout
    assert "mean excess: over the settings above the clean baseline alone" in done.stdout


def test_the_figures_are_svg_and_json_stays_alone_on_standard_output(paper_table: Path, tmp_path: Path) -> None:
    done = proctor(paper_table, "--format", "json", "--plot", tmp_path / "figures")
    json.loads(done.stdout)
    drawn = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert [name[:8] for name in drawn] == ["figure-2", "figure-3", "figure-4", "figure-5"]
    for name in drawn:
        root = ElementTree.parse(tmp_path / "figures" / name).getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("form", ["table", "json"])
def test_bad_input_is_one_line_with_its_place_and_exit_code_2(paper_table: Path, tmp_path: Path, form: str) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text(paper_table.read_text().replace("Seed-1.6-Flash,3,100,0.71,0.67", "Seed-1.6-Flash,3,100,71,67"))
    done = proctor(path, "--format", form)
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr.count("\n") == 1
    assert f"{path}:4: " in done.stderr


def test_a_missing_file_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = proctor(tmp_path / "none.csv")
    assert done.returncode == 2
    assert not done.stdout
    assert done.stderr.count("\n") == 1


def test_figures_that_cannot_be_written_cost_only_themselves(
    paper_table: Path, tmp_path: Path, paper: dict[str, Any]
) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    done = proctor(paper_table, "--format", "json", "--plot", blocker / "figures")
    assert done.returncode == 2
    assert json.loads(done.stdout) == paper
    assert done.stderr.count("\n") == 1
    assert f"--plot {blocker / 'figures'}" in done.stderr


def test_without_matplotlib_the_tables_are_there_and_a_line_says_what_to_install(
    paper_table: Path, tmp_path: Path, paper: dict[str, Any]
) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('absent', name='matplotlib')")
    done = proctor(paper_table, "--format", "json", "--plot", tmp_path / "figures", first_on_path=tmp_path)
    assert done.returncode == 2
    assert json.loads(done.stdout) == paper
    assert done.stderr.count("\n") == 1
    assert "charts need matplotlib: pip install 'proctor[plots]'" in done.stderr
    assert not (tmp_path / "figures").exists()
    # Who asks for no figures needs no matplotlib.
    assert proctor(paper_table, first_on_path=tmp_path).returncode == 0
