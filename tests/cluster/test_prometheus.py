"""What a real Prometheus scraped while the tests before this one ran: every name that is asked for is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from proctor.cli.demo import demo_suite
from proctor.runtime.metrics.catalogue import DATASET_ROTATION_DUE
from proctor.runtime.settings import default_bundle
from tests.charts.monitored import DASHBOARDS, alerts, names_in, read, recorded
from tests.cluster.audits import Gateway
from tests.cluster.prometheus import Prometheus, reached_prometheus
from tests.cluster.release import Release
from tests.support import REPOSITORY, wait_until

#: What a machine without a GPU does not tell.
_OF_GPUS: Final = {"nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_memory_total_bytes"}
_CANDIDATE: Final = "candidate"
_GPU_PANELS: Final = ("GPU utilisation", "GPU memory")


def _asked() -> dict[str, set[str]]:
    """Metric → where it is asked for: panels, alerts, recording rules."""
    found = dict[str, set[str]]()
    expressions = [(f"alert {name}", rule["expr"]) for name, rule in alerts().items()]
    expressions += [(f"record {name}", expression) for name, expression in recorded().items()]
    for path in DASHBOARDS:
        for panel in read(path)["panels"]:
            expressions += [(f"{path.stem}: {panel['title']}", one["expr"]) for one in panel.get("targets", ())]
    for where, expression in expressions:
        for name in names_in(expression):
            found.setdefault(name, set()).add(where)
    return found


@pytest.fixture(scope="module")
def own_dataset(release: Release, monitoring: str) -> None:
    """A dataset of one's own where a router looks for such, once a minute."""
    folder = "/var/lib/proctor/benchmarks"
    release.exec("deploy/proctor-router", "mkdir", "-p", folder)
    made = ("proctor", "dataset", "new", "reasoning", "--out", f"{folder}/reasoning.jsonl")
    release.exec("deploy/proctor-router", *made, "--count", "20", "--held-out", "20", within_s=90)


@pytest.fixture(scope="module", autouse=True)
def risen(
    release: Release, own_dataset: None, gateway: Gateway, monitoring: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A model whose second version has memorised what the first had not, both audited by one suite."""
    for served in ("reference-clean", "reference-leaked"):
        suite = json.loads(demo_suite(served, default_bundle()))
        suite["model_config"] |= {"model_id": _CANDIDATE, "served_name": served, "endpoint": "reference"}
        path = tmp_path_factory.mktemp(served) / "suite.json"
        path.write_text(json.dumps(suite))
        audit_id = gateway.submit(path)
        gateway.decided([audit_id], within_s=240)
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        rise = f'proctor:contamination_rise:low{{model="{_CANDIDATE}"}}'
        wait_until(lambda: bool(prometheus.query(rise)), timeout_s=60, what="the rise to be recorded")


@pytest.fixture(scope="module", autouse=True)
def rotated(release: Release, risen: None, monitoring: str) -> None:
    """That a router has seen the dataset, which is rotated."""
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        due = f'{DATASET_ROTATION_DUE.name}{{dataset="reasoning"}}'
        wait_until(lambda: bool(prometheus.query(due)), timeout_s=120, what="the day of the rotation to be scraped")


def test_every_metric_of_a_dashboard_an_alert_or_a_rule_was_scraped(release: Release, monitoring: str) -> None:
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        scraped = prometheus.names()
    missing = {name: sorted(where) for name, where in _asked().items() if name not in scraped | _OF_GPUS}
    assert missing == {}


def test_every_metric_by_which_something_scales_was_scraped(release: Release, monitoring: str) -> None:
    scaled = release.cluster.get("-n", release.namespace, "scaledobjects")["items"]
    named = {
        trigger["metadata"]["valueLocation"].partition("{")[0] for one in scaled for trigger in one["spec"]["triggers"]
    }
    assert named
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        assert named <= prometheus.names()


def test_every_panel_has_data_and_is_drawn(release: Release, monitoring: str, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("PROCTOR_RECORD_PICTURES") or tmp_path)
    empty = [option for title in _GPU_PANELS for option in ("--may-be-empty", title)]
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        drawn = subprocess.run(
            [sys.executable, REPOSITORY / "scripts" / "draw_panels.py", "--prometheus", prometheus.url,
             "--minutes", f"{_minutes(prometheus):.1f}", "--rate-interval", "30s", "--output", str(pictures), *empty],
            capture_output=True, text=True, timeout=180,
        )  # fmt: skip
    assert drawn.returncode == 0, drawn.stderr + drawn.stdout
    assert {path.stem for path in pictures.glob("*.png")} == {path.stem for path in DASHBOARDS}


def test_the_rules_are_loaded_and_none_of_them_fails(release: Release, monitoring: str) -> None:
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        groups = prometheus.rules()
    loaded = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
    assert set(alerts()) | set(recorded()) <= set(loaded)
    assert {name for name, health in loaded.items() if health == "err"} == set()


def _minutes(prometheus: Prometheus) -> float:
    (up,) = prometheus.query("time() - min(min_over_time(timestamp(up)[1h:10s]))")
    return max(5.0, float(up["value"][1]) / 60)


def test_the_alert_for_a_rise_fires_for_the_model_that_rose_and_for_no_other(release: Release, monitoring: str) -> None:
    with reached_prometheus(release.cluster, monitoring) as prometheus:
        fired = prometheus.query('ALERTS{alertname="ProctorContaminationRises"}')
    assert {one["metric"]["model"] for one in fired} == {_CANDIDATE}
