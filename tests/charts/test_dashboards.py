"""The dashboards are as their script writes them, and ask for what somebody serves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import write_dashboards
from tests.charts.monitored import DASHBOARDS, names_in, recorded, served
from tests.support import missing

#: Grafana's own, with values that promtool can read.
_VARIABLES = {"$__rate_interval": "5m", "$namespace": ".*", "$model": ".*", "$suite": ".*"}


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def panels(path: Path) -> Iterator[dict[str, Any]]:
    yield from (panel for panel in dashboard(path)["panels"] if panel["type"] != "row")


def expressions() -> Iterator[str]:
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel["targets"]:
                yield target["expr"]


def test_the_files_are_as_the_script_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert write_dashboards.main(["--check"]) == 0, capsys.readouterr().err
    assert [path.stem for path in DASHBOARDS] == sorted(page.name for page in write_dashboards.PAGES)


def test_a_file_that_was_changed_by_hand_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write_dashboards, "FOLDER", tmp_path)
    assert write_dashboards.main([]) == 0
    (tmp_path / "audits.json").write_text("{}")
    assert write_dashboards.main(["--check"]) == 1
    assert "audits.json is not what" in capsys.readouterr().err


def test_panels_ask_for_metrics_that_are_served_or_recorded() -> None:
    names = {name for expression in expressions() for name in names_in(expression)}
    assert names - served() - set(recorded()) == set()
    assert len(names) > 20


def test_every_metric_of_others_that_is_listed_is_asked_for() -> None:
    texts = [*expressions(), *recorded().values()]
    assert set(write_dashboards.FOREIGN) <= {name for text in texts for name in names_in(text)}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_says_what_it_shows_in_which_unit_and_of_a_source_that_is_chosen(path: Path) -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    variables = {one["name"]: one for one in dashboard(path)["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["namespace"]["allValue"] == ".*"
    for panel in panels(path):
        assert panel["title"], panel
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == source, panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == source
            assert 'namespace=~"$namespace"' in target["expr"]
            assert "%" not in target["expr"]
            assert set(re.findall(r"\$\w+", target["expr"])) <= set(_VARIABLES)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_fill_the_grid_and_none_lies_on_another(path: Path) -> None:
    taken = set[tuple[int, int]]()
    for panel in dashboard(path)["panels"]:
        where = panel["gridPos"]
        left, top = where.get("x", 0), where.get("y", 0)
        cells = {(x, y) for x in range(left, left + where["w"]) for y in range(top, top + where["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in panels(path)]
    assert len(ids) == len(set(ids))


def test_a_number_that_every_router_tells_is_never_summed_over_routers() -> None:
    told_by_all = (
        "proctor_audits", "proctor_scaling_work", "proctor_shards", "proctor_oldest_unfinished_seconds",
        "proctor_contamination_score", "proctor_pools_away", "proctor_dataset_rotation_due_timestamp_seconds",
        "proctor_dataset_held_out",
    )  # fmt: skip
    for expression in [*expressions(), *recorded().values()]:
        for name in told_by_all:
            for found in re.finditer(rf"{name}\b(?!_)", expression):
                before = expression[: found.start()]
                assert re.search(r"max(?: by \([^)]*\))? ?\($", before), expression


def test_the_expressions_are_such_to_promtool(tmp_path: Path) -> None:
    promtool = shutil.which("promtool") or missing("no promtool: scripts/setup_prometheus.sh")
    rules = []
    for number, expression in enumerate(expressions()):
        for variable, value in _VARIABLES.items():
            expression = expression.replace(variable, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    file = tmp_path / "panels.yaml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
