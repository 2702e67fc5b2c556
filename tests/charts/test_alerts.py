"""Each alert fires on the bad series and is silent on the good one, asks for what is served, and has its runbook."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.charts.monitored import RULES, alerts, names_in, read, recorded, served
from tests.support import REPOSITORY, missing

CASES = sorted((REPOSITORY / "tests" / "charts" / "alerts").glob("*.yaml"))
#: What the chart puts the runbooks' address in the place of.
RUNBOOK_BASE = "RUNBOOK_BASE"
_LABEL = re.compile(r"\$labels\.(\w+)")


@pytest.fixture(scope="module")
def promtool() -> str:
    return shutil.which("promtool") or missing("no promtool: scripts/setup_prometheus.sh")


def test_the_rules_are_rules_to_promtool(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", "--lint=all", *map(str, RULES)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "duplicate" not in done.stdout


@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_alerts_fire_on_bad_series_and_are_silent_on_good_ones(promtool: str, cases: Path) -> None:
    done = subprocess.run([promtool, "test", "rules", str(cases)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_fails_where_an_alert_does_not_fire(promtool: str, tmp_path: Path) -> None:
    said = copy.deepcopy(read(CASES[0]))
    said["rule_files"] = [str((CASES[0].parent / name).resolve()) for name in said["rule_files"]]
    fires = next(case for case in said["tests"] if case["name"].startswith("ProctorDeadLetters fires"))
    fires["input_series"][0]["values"] = "1x90"
    (tmp_path / "mutated.yaml").write_text(json.dumps(said))
    done = subprocess.run([promtool, "test", "rules", str(tmp_path / "mutated.yaml")], capture_output=True)
    assert done.returncode != 0


def cases_of_alerts() -> Iterator[tuple[str, bool, set[str]]]:
    """Each case: the alert, whether it is to fire, and the metrics that the series are of."""
    for path in CASES:
        for case in read(path)["tests"]:
            series = {name for one in case["input_series"] for name in names_in(one["series"])}
            for asked in case["alert_rule_test"]:
                yield asked["alertname"], bool(asked["exp_alerts"]), series


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    cases = list(cases_of_alerts())
    for name in alerts():
        assert {fires for alert, fires, _ in cases if alert == name} == {True, False}, name


def test_a_case_in_which_an_alert_is_silent_has_series_that_it_asks_for() -> None:
    for name, fires, series in cases_of_alerts():
        if not fires:
            assert series, name
            assert series <= asked_for(alerts()[name]["expr"]), name


def asked_for(expression: str) -> set[str]:
    """The metrics behind an expression, through the recording rules."""
    known, found = recorded(), set[str]()
    for name in names_in(expression):
        found |= asked_for(known[name]) if name in known else {name}
    return found


def test_rules_ask_for_metrics_that_are_served() -> None:
    expressions = [*recorded().values(), *(rule["expr"] for rule in alerts().values())]
    assert {name for expression in expressions for name in names_in(expression)} - served() - set(recorded()) == set()


@pytest.mark.parametrize(("name", "rule"), alerts().items(), ids=list(alerts()))
def test_an_alert_says_how_bad_it_is_what_it_means_and_where_that_is_written(name: str, rule: dict[str, Any]) -> None:
    assert re.fullmatch("Proctor[A-Z][A-Za-z]+", name)
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    annotations = rule["annotations"]
    assert set(annotations) == {"summary", "description", "runbook_url"}
    assert annotations["summary"].endswith(".")
    assert annotations["description"].endswith(".")
    assert annotations["runbook_url"] == f"{RUNBOOK_BASE}#{name.lower()}"
    # A label that the expression has summed away would stand there as nothing.
    for label in _LABEL.findall(annotations["summary"] + annotations["description"]):
        assert re.search(rf"by \([^)]*\b{label}\b", rule["expr"] + "".join(known_behind(rule["expr"]))), label


def known_behind(expression: str) -> list[str]:
    """The expressions of the recording rules that an expression asks for."""
    known = recorded()
    direct = [known[name] for name in names_in(expression) if name in known]
    return direct + [further for one in direct for further in known_behind(one)]


def test_every_alert_has_a_section_in_the_runbooks_and_every_section_an_alert() -> None:
    text = (REPOSITORY / "docs" / "runbooks.md").read_text("utf-8")
    sections = re.split(r"^## (\w+)$", text, flags=re.MULTILINE)[1:]
    assert sorted(sections[::2]) == sorted(alerts())
    for name, body in zip(sections[::2], sections[1::2], strict=True):
        for part in ("**Means**", "**Look at**", "**Do**"):
            assert part in body, name
    assert set(re.findall(r"\(#(proctor\w+)\)", text)) <= {name.lower() for name in alerts()}


def test_the_page_of_monitoring_lists_every_alert_with_its_severity() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(Proctor\w+)` \| (\w+) \|", page, flags=re.MULTILINE))
    assert listed == {name: rule["labels"]["severity"] for name, rule in alerts().items()}
