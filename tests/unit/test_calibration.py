"""The published calibration: a fast version of it, bugs that it has to see, and the figures that are committed.

Simulated rates are judged at a p-value of one in a million, so that chance does not fail a test and a broken estimator
does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from calibration import clustering, coverage, document, plots, rejection, sequential
from calibration.cells import Cell, Measure, Row
from calibration.coverage import Truth
from calibration.grids import sequential_cells
from calibration.judging import Claim, Verdict, judge
from calibration.layouts import Layout, cluster_sizes
from calibration.markdown import percent, with_interval
from calibration.running import run, run_cell
from calibration.studies import CLAIMS, STUDIES
from calibration.table import as_csv, read
from proctor.domain.errors import BadInputError
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import FloatArray
from proctor.evidence.clusters import Clusters
from proctor.evidence.intervals import PairMoments, PairSums
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.planning.families import FAMILIES, Simulated
from proctor.evidence.sequential.schedule import Look, schedule
from tests.support import REPOSITORY

SCRIPTS = REPOSITORY / "scripts"
PUBLISHED = REPOSITORY / "docs" / "calibration"
BY_CHANCE = 1e-6


@pytest.fixture(scope="module")
def published() -> dict[str, list[Row]]:
    return read(PUBLISHED)


def chances(cells: list[Cell], *, audits: int) -> list[float]:
    """p-value of each claimed count where the true rate is the claim's bound."""
    rows = run(cells, replications=audits, seed=1)
    found = [claim.p_value(row) for claim in CLAIMS for row in rows if claim.covers(row)]
    assert found, "no claim is about these cells"
    return found


def hard_for_the_tests() -> list[Cell]:
    return [
        Cell("size", "together", 200, 9),
        Cell("size", "shared_luck", 100, 3),
        Cell("size", "beta_1_1", 500, 4),
        Cell("size", "consistent", 50, 10),
    ]


def hard_for_the_intervals() -> list[Cell]:
    return [
        Cell("coverage", "nearly_deterministic", 200, 3, leaked_share=0.02),
        Cell("coverage", "consistent", 200, 10, leaked_share=0.10),
        Cell("coverage", "guessers", 500, 3),
    ]


def test_the_default_p_holds_its_size_where_tests_find_it_hard() -> None:
    assert min(chances(hard_for_the_tests(), audits=1_000)) > BY_CHANCE


def test_intervals_hold_their_coverage_where_answers_hardly_vary() -> None:
    assert min(chances(hard_for_the_intervals(), audits=1_000)) > BY_CHANCE


def test_leaked_items_are_found_with_the_power_that_is_claimed() -> None:
    cells = [Cell("power", family, 500, 3, leaked_share=0.10) for family in ("beta_1_1", "consistent")]
    assert min(chances(cells, audits=1_000)) > BY_CHANCE


def test_control_items_restore_the_size_where_a_rewording_is_harder() -> None:
    cell = Cell("control", "consistent", 500, 3, cost=0.02, control_items=200)
    assert min(chances([cell], audits=500)) > BY_CHANCE
    rows = run_cell(cell, replications=500, seed=1)
    uncontrolled = next(row for row in rows if row.measure is Measure.DEFAULT_P)
    assert uncontrolled.rate > 0.5


def test_replicates_clusters_and_fresh_items_hold_what_is_claimed() -> None:
    cells = [
        Cell("replicates", "shared_luck", 200, 3, 3),
        Cell("clusters", "consistent", 500, 3, leaked_share=0.10, cluster_items=10, clusters=50, layout="even"),
        Cell("clusters", "beta_4_1", 320, 3, clusters=20, layout="uneven", shared=1.0),
        Cell("conformal", "beta_1_1", 200, 1),
        Cell("comparison", "nearly_deterministic", 200, 1, leaked_share=0.02),
        Cell("fresh", "rasch", 200, 0),
    ]
    assert min(chances(cells, audits=500)) > BY_CHANCE


def test_without_pseudo_clusters_the_harness_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(differences: FloatArray, clusters: Clusters) -> float:
        mean, groups = differences.mean(), clusters.sizes.size
        rest = clusters.sums(differences - mean)
        variance = groups / (groups - 1) * (rest**2).sum() / clusters.n**2
        return float(stats.t.sf(mean / np.sqrt(variance), clusters.effective - 1)) if variance else float(mean <= 0)

    cell = Cell("clusters", "beta_4_1", 124, 3, clusters=20, layout="skewed", shared=1.0)
    assert min(chances([cell], audits=3_000)) > BY_CHANCE
    monkeypatch.setattr(clustering, "clustered_test", plain)
    assert min(chances([cell], audits=3_000)) < BY_CHANCE


def test_sequential_designs_hold_what_is_claimed() -> None:
    cells = [
        Cell("sequential", "shared_luck", 500, 3, design="pocock"),
        Cell("sequential", "consistent", 500, 3, leaked_share=0.0516, design="obrien_fleming"),
        Cell("sequential", "consistent", 500, 3, leaked_share=0.10, design="pocock"),
        Cell("sequential", "beta_4_1", 400, 3, cluster_items=2, clusters=200, layout="even", design="pocock"),
        Cell("sequential", "guessers", 500, 3, leaked_share=0.10, cost=0.02, control_items=200, design="pocock"),
    ]
    assert min(chances(cells, audits=1_000)) > BY_CHANCE


@pytest.mark.parametrize("measure", [Measure.ANY_LOOK_P, Measure.INFLATION_AT_LOOKS])
def test_looks_at_the_plain_levels_turn_the_harness_red(monkeypatch: pytest.MonkeyPatch, measure: Measure) -> None:
    def plain(*arguments: Any, level: float, alpha: float) -> tuple[Look, ...]:
        looks = schedule(*arguments, level=level, alpha=alpha)
        return tuple(look._replace(level=level, alpha=alpha) for look in looks)

    monkeypatch.setattr(sequential, "schedule", plain)
    cell = Cell("sequential", "together", 500, 3, design="pocock, futility 0")
    (row,) = [row for row in run_cell(cell, replications=2_000, seed=1) if row.measure is measure]
    assert next(claim.p_value(row) for claim in CLAIMS if claim.covers(row)) < BY_CHANCE


def test_a_sequential_audit_never_asks_more_than_its_sample(published: dict[str, list[Row]]) -> None:
    asked = [row for row in published["sequential"] if row.measure is Measure.ITEMS_ASKED]
    assert max(row.rate for row in asked) <= 1.0
    assert all(row.rate == 1.0 for row in asked if row.cell.design == "fixed")


def test_the_published_designs_are_all_that_are_promised(published: dict[str, list[Row]]) -> None:
    cells = {row.cell for row in published["sequential"]}
    assert cells == set(sequential_cells())
    at_limit = {cell.family for cell in cells if 0.05 < Truth.of(cell).inflation < 0.0501 and cell.design == "pocock"}
    assert at_limit >= set(FAMILIES), "false approvals are most frequent just past the limit"


def test_a_rate_stands_beside_its_exact_interval() -> None:
    for hits, trials in ((0, 50), (3, 50), (50, 50), (97, 2_000)):
        theirs = stats.binomtest(hits, trials).proportion_ci(method="exact")
        row = Row(Cell("size", "guessers", 50, 3), Measure.DEFAULT_P, hits, trials, 0)
        assert with_interval(row) == f"{percent(row.rate)} [{percent(theirs.low)}, {percent(theirs.high)}]"


def test_a_table_without_clusters_is_written_as_before_there_were_any(published: dict[str, list[Row]]) -> None:
    assert "clusters" not in as_csv(published["size"], {}).split("\n")[0]
    assert ",clusters,layout,shared," in as_csv(published["clusters"], {}).split("\n")[0]


def test_clusters_have_the_sizes_that_are_promised() -> None:
    for clusters in (20, 50, 200):
        for layout in (Layout.UNEVEN, Layout.SKEWED):
            sizes = cluster_sizes(layout, clusters, 1)
            assert (sizes.size, sizes[0], sizes[-1]) == (clusters, 2, 30)
            assert sizes.tolist() == sorted(sizes)
    assert cluster_sizes(Layout.EVEN, 3, 7).tolist() == [7, 7, 7]


def test_the_clustered_p_that_is_calibrated_is_the_one_that_the_channel_reports() -> None:
    cell = Cell("clusters", "consistent", 320, 3, clusters=20, layout="uneven", leaked_share=0.25)
    rows = run_cell(cell, replications=60, seed=0)
    counted = next(row for row in rows if row.measure is Measure.DEFAULT_P)
    rng = cell.rng(0)
    labels = np.repeat(np.arange(20), cluster_sizes(Layout.UNEVEN, 20, 1))
    reported = []
    for own, common in zip(cell.draws(rng, 60), cell._replace(items=20).draws(rng, 60), strict=True):
        for answers in rejection.paired(clustering._mixed(own, common, labels, 0.5, rng), 3):
            labelled = replace(answers, clusters=tuple(map(str, labels.tolist())))
            reported.append(perturbation_evidence(labelled, ScoringSection(), GovernanceSection(), None).p_value)
    assert 0 < counted.hits < 60
    assert counted.hits == sum(p_value < 0.05 for p_value in reported)


def test_without_the_studentised_mean_the_harness_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection, "studentised_test", lambda answers: 0.0)
    assert min(chances(hard_for_the_tests()[:1], audits=1_000)) < BY_CHANCE


def test_without_the_exact_test_the_harness_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    never = SimpleNamespace(p_value=0.0)
    monkeypatch.setattr(rejection, "exchangeability_test", lambda answers: never)
    assert min(chances(hard_for_the_tests()[3:], audits=1_000)) < BY_CHANCE


def test_without_pseudo_items_the_harness_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(sums: PairSums) -> PairMoments:
        return coverage._plain_moments(sums)

    monkeypatch.setattr(PairSums, "with_pseudo_items", plain)
    assert min(chances(hard_for_the_intervals()[:1], audits=1_000)) < BY_CHANCE


def test_with_leaks_that_hide_in_both_arms_the_harness_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Cell.draws

    def hidden(cell: Cell, rng: np.random.Generator, audits: int) -> Iterator[Simulated]:
        for simulated in draws(cell, rng, audits):
            yield simulated._replace(right=np.where(simulated.leaked, cell.variants, simulated.right))

    monkeypatch.setattr(Cell, "draws", hidden)
    cell = Cell("power", "beta_1_1", 500, 3, leaked_share=0.10)
    assert min(chances([cell], audits=1_000)) < BY_CHANCE


def test_the_p_that_is_calibrated_is_the_one_that_the_channel_reports() -> None:
    cell = Cell("size", "shared_luck", 60, 3, leaked_share=0.10)
    rows = run_cell(cell, replications=60, seed=0)
    counted = next(row for row in rows if row.measure is Measure.DEFAULT_P)
    reported = [
        perturbation_evidence(answers, ScoringSection(), GovernanceSection(), None).p_value
        for simulated in cell.draws(cell.rng(0), 60)
        for answers in rejection.paired(simulated, cell.variants)
    ]
    assert 0 < counted.hits < 60
    assert counted.hits == sum(p_value < 0.05 for p_value in reported)


def test_every_audit_is_approved_reviewed_or_blocked() -> None:
    rows = run_cell(Cell("gate", "guessers", 300, 3), replications=500, seed=0)
    assert sum(row.hits for row in rows if row.measure.startswith("gate: ")) == 500


def test_a_cells_figures_depend_on_no_other_cell_and_no_order() -> None:
    cells = [Cell("gate", family, 100, 3) for family in FAMILIES]
    there = run(cells, replications=50, seed=3)
    back = run(cells[::-1], replications=50, seed=3)
    alone = run(cells[2:3], replications=50, seed=3)
    assert sorted(there) == sorted(back)
    assert [row for row in there if row.cell == cells[2]] == alone
    assert there != [row._replace(seed=3) for row in run(cells, replications=50, seed=4)]


def test_a_claims_p_value_is_the_exact_binomial_one() -> None:
    measure = Measure.DEFAULT_P
    cell = Cell("size", "guessers", 50, 3)
    for hits in (0, 1, 110, 160, 2_000):
        row = Row(cell, measure, hits, 2_000, 0)
        for at_least, alternative in ((False, "greater"), (True, "less")):
            claim = Claim("a claim", "size", (measure,), 0.06, at_least=at_least)
            theirs = stats.binomtest(hits, 2_000, 0.06, alternative=alternative).pvalue
            assert claim.p_value(row) == pytest.approx(theirs, rel=1e-9, abs=1e-300)


def test_one_bad_cell_fails_a_claim_and_a_lucky_one_does_not() -> None:
    measure = Measure.DEFAULT_P
    claim = Claim("a claim", "size", (measure,), 0.06)

    def verdict(worst: int) -> Verdict:
        hits = [110] * 99 + [worst]
        rows = [Row(Cell("size", "guessers", n, 3), measure, h, 2_000, 0) for n, h in enumerate(hits, start=1)]
        return judge(rows, [claim])[1][0]

    assert verdict(145).holds  # 7.25 %: one in a hundred is that large by luck
    assert not verdict(165).holds
    assert verdict(165).worst.hits == 165


def test_a_table_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    cell = Cell("coverage", "consistent", 200, 3, leaked_share=0.02)
    rows = run_cell(cell, replications=5, seed=7)
    judged, _ = judge(rows, CLAIMS)
    (tmp_path / "coverage.csv").write_text(as_csv(rows, judged), encoding="utf-8")
    assert read(tmp_path) == {"coverage": rows}


def test_another_table_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "size.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"size\.csv: not a table of this calibration"):
        read(tmp_path)


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(BadInputError, match="lacks <!-- begin size -->"):
        document.filled("# Calibration\n", {"size": "| a |"})


def test_every_published_claim_holds(published: dict[str, list[Row]]) -> None:
    rows = [row for table in published.values() for row in table]
    _, verdicts = judge(rows, CLAIMS)
    assert [verdict.claim.name for verdict in verdicts] == [claim.name for claim in CLAIMS]
    assert [verdict.claim.name for verdict in verdicts if not verdict.holds] == []
    assert min(row.trials for row in rows) >= 2_000


def test_the_published_grid_is_the_one_that_is_promised(published: dict[str, list[Row]]) -> None:
    cells = {(row.cell.family, row.cell.items, row.cell.variants) for row in published["size"]}
    assert cells == {(family, n, v) for family in FAMILIES for n in (50, 100, 200, 500, 1_000) for v in (3, 4, 9, 10)}


def test_the_published_files_are_what_the_script_writes_from_the_counts(published: dict[str, list[Row]]) -> None:
    rows = [row for study in STUDIES for row in published.get(study, ())]
    judged, verdicts = judge(rows, CLAIMS)
    for study, table in published.items():
        assert (PUBLISHED / f"{study}.csv").read_text(encoding="utf-8") == as_csv(table, judged)
    for name, drawn in plots.plots(published).items():
        published_plot = (PUBLISHED / name).read_text(encoding="utf-8")
        assert published_plot == drawn, "another matplotlib? scripts/calibrate_evidence.py --redraw"
    page = PUBLISHED.with_suffix(".md").read_text(encoding="utf-8")
    assert page == document.filled(page, document.sections(published, verdicts))
    page = PUBLISHED.with_name("sequential.md").read_text(encoding="utf-8")
    assert page == document.filled(page, document.sequential_sections(published))


def _calibrate(*arguments: str, first_on_path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPTS / "calibrate_evidence.py"), *arguments]
    path = os.pathsep.join(filter(None, [str(first_on_path or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)


def test_the_same_seed_gives_the_same_bytes_with_one_process_and_with_two(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        out = str(tmp_path / jobs)
        done = _calibrate("--quick", "--only", "gate,size", "--replications", "5", "--jobs", jobs, "--out", out)
        assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert names == ["approval.svg", "gate.csv", "size.csv", "size.svg"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_without_matplotlib_the_tables_are_written_and_a_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('absent', name='matplotlib')")
    out = tmp_path / "out"
    done = _calibrate(
        *("--quick", "--only", "gate,size", "--replications", "5", "--out", str(out)), first_on_path=tmp_path
    )
    assert done.returncode == 2
    assert "claims hold" in done.stdout
    assert done.stderr.splitlines()[-1] == "calibrate_evidence: charts need matplotlib: pip install 'proctor[plots]'"
    assert sorted(path.name for path in out.iterdir()) == ["gate.csv", "size.csv"]


def test_an_unknown_study_is_refused_with_the_names_of_those_there_are() -> None:
    done = _calibrate("--only", "sise")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no such study; choose from size, power, coverage" in done.stderr
