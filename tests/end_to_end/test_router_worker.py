"""The paper's protocol as a suite: scripted routers in one real Triton, a reference model as worker in another."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.scripted_router import SCRIPTED_ROUTER, write_scripted_router
from tests.support import REPOSITORY, run_proctor
from tests.triton_server import triton_server

pytestmark = pytest.mark.timeout(420)

ITEMS = 30
ROUTERS = 9


def suite_file(folder: Path, router: str) -> Path:
    suite = json.loads((REPOSITORY / "services" / "proctor" / "cli" / "demo_suite.json").read_text("utf-8"))
    from proctor.inference.reference.model import weights_digest

    worker = "reference-clean"
    version = weights_digest(REPOSITORY / "services" / "triton" / "models" / worker / "1")
    suite["model_config"].update(model_id=f"proctor/{worker}", model_version=version)
    suite["dataset_config"]["sample_size"] = ITEMS
    suite["protocol_config"] = {
        "protocol": "router_worker",
        "max_routers": ROUTERS,
        "router": {"model": f"tests/{SCRIPTED_ROUTER}", "endpoint": router},
    }
    path = folder / "suite.json"
    path.write_text(json.dumps(suite))
    return path


class Audited(NamedTuple):
    home: Path
    suite: Path
    result: dict[str, Any]
    report: dict[str, Any]
    table: Path
    routed: int
    """Requests that the routers' Triton says it has answered."""


def audit_run(suite: Path, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(home), "--format", "json"]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ.copy())


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("router_worker")
    write_scripted_router(folder / "bundle")
    (folder / "triton").mkdir()
    with triton_server(folder / "bundle", folder / "triton") as triton:
        suite = suite_file(folder, f"grpc://127.0.0.1:{triton.grpc_port}")
        run = audit_run(suite, folder / "home")
        assert run.returncode == 3, run.stderr
        result = json.loads(run.stdout)
        page = Path(result["report_path"])
        report = json.loads(page.with_suffix(".json").read_text("utf-8"))
        table, routed = Path(result["router_table"]), triton.answered(SCRIPTED_ROUTER)
        yield Audited(folder / "home", suite, result, report, table, routed)


def test_every_item_goes_through_every_router_once(audited: Audited) -> None:
    assert audited.routed == 2 * ROUTERS * ITEMS


def test_the_audit_ends_in_a_table_that_proctor_noise_reads(audited: Audited) -> None:
    read = run_proctor("noise", audited.table, "--format", "json", home=audited.home)
    assert read.returncode == 0, read.stderr
    document = json.loads(read.stdout)
    assert document["rows"] == ROUTERS
    assert [setting["router_count"] for setting in document["settings"]] == list(range(1, ROUTERS + 1))
    assert {setting["n"] for setting in document["settings"]} == {ITEMS}
    noise = audited.report["evidence"]["noise"]
    assert document["settings"] == noise["summary"]["settings"]


def test_the_table_s_accuracies_are_those_of_the_report_s_arms(audited: Audited) -> None:
    arms = {arm["arm"]: arm["accuracy"]["value"] for arm in audited.report["evidence"]["noise"]["arms"]}
    assert len(arms) == 2 * ROUTERS
    with audited.table.open(newline="") as stream:
        for row in csv.DictReader(stream):
            assert float(row["clean_accuracy"]) == pytest.approx(arms["clean_router_1"])
            assert float(row["noisy_accuracy"]) == pytest.approx(arms[f"noisy_router_{row['router_count']}"])


def test_a_faithful_router_costs_the_worker_nothing(audited: Audited) -> None:
    arms = {arm["arm"]: arm["accuracy"]["value"] for arm in audited.report["evidence"]["noise"]["arms"]}
    direct = {arm["arm"]: arm["accuracy"]["value"] for arm in audited.report["evidence"]["protocol"]["arms"]}
    assert set(direct) == {"canonical", "perturbed"}, "what the routers lose makes no other channel invalid"
    assert arms["clean_router_1"] == pytest.approx(direct["canonical"], abs=0.1)


def test_a_clean_model_is_not_called_contaminated_by_noise(audited: Audited) -> None:
    noise = audited.report["evidence"]["noise"]
    assert audited.result["noise_verdict"] == noise["verdict"] in ("clean", "inconclusive")
    assert "noise" not in audited.report["evidence"]["not_audited"]
    assert noise["matched"][0]["clean_arm"] == "clean_router_1"
    assert noise["matched"][-1]["clean_arm"] == f"clean_router_{ROUTERS}"
