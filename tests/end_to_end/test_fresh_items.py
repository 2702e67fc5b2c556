"""A model that learned leaked items from rewordings: the rewordings of an audit find nothing, and fresh items do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.standing_stack import standing_stack
from tests.support import REPOSITORY
from tests.triton_server import triton_server

pytestmark = pytest.mark.timeout(420)

REWORDED = REPOSITORY / "services" / "triton" / "reworded"
CLEAN = REPOSITORY / "services" / "triton"


def suite_file(folder: Path, name: str, bundle: Path, endpoint: str, *, fresh: bool) -> Path:
    """The demo's suite on half of its benchmark, with the other half as fresh items or without."""
    from proctor.inference.reference.model import weights_digest

    suite = json.loads((REPOSITORY / "services" / "proctor" / "cli" / "demo_suite.json").read_text("utf-8"))
    version = weights_digest(bundle / "models" / name / "1")
    suite["audit_suite_id"] = f"half-{name}-{'fresh' if fresh else 'wording'}"
    suite["model_config"] = {"model_id": f"proctor/{name}", "model_version": version, "endpoint": endpoint}
    suite["dataset_config"].update(path=str(REWORDED / "benchmark.jsonl"), target_field="target")
    if fresh:
        suite["fresh_config"] = {"path": str(REWORDED / "fresh.jsonl")}
    path = folder / f"{suite['audit_suite_id']}.json"
    path.write_text(json.dumps(suite))
    return path


class Audited(NamedTuple):
    exit_code: int
    result: dict[str, Any]
    report: dict[str, Any]

    @property
    def fresh(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["evidence"]["fresh"]
        return found


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Audited]]:
    folder = tmp_path_factory.mktemp("fresh_items")
    (folder / "triton").mkdir()
    with triton_server(REWORDED, folder / "triton") as triton, standing_stack(folder / "home", "--no-gateway"):
        there = f"grpc://127.0.0.1:{triton.grpc_port}"

        def audited(name: str, bundle: Path, endpoint: str, *, fresh: bool) -> Audited:
            suite = suite_file(folder, name, bundle, endpoint, fresh=fresh)
            command = [sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(folder / "home")]
            run = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
            assert run.stdout, run.stderr
            result = json.loads(run.stdout)
            report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
            return Audited(run.returncode, result, report)

        yield {
            "wording alone": audited("reference-reworded", REWORDED, there, fresh=False),
            "with fresh items": audited("reference-reworded", REWORDED, there, fresh=True),
            "clean": audited("reference-clean", CLEAN, "local-triton", fresh=True),
        }


def test_the_rewordings_alone_approve_it(audits: dict[str, Audited]) -> None:
    found = audits["wording alone"]
    assert (found.exit_code, found.result["decision"]) == (0, "approve")
    assert found.report["decision"]["scope"] == "wording"
    assert found.report["evidence"]["not_audited"]["fresh"] == "no freshly written items were given"


def test_fresh_items_stop_it(audits: dict[str, Audited]) -> None:
    found = audits["with fresh items"]
    assert (found.exit_code, found.result["decision"]) == (3, "review")
    assert "The fresh channel says contaminated." in found.result["reasons"]
    assert found.report["evidence"]["perturbation"]["verdict"] == "clean"
    assert (found.fresh["verdict"], found.fresh["n_benchmark"], found.fresh["n_fresh"]) == ("contaminated", 300, 300)
    assert found.fresh["excess"]["low"] > 5.0
    assert found.report["decision"]["scope"] == "wording+fresh"


def test_a_clean_model_answers_both_halves_alike(audits: dict[str, Audited]) -> None:
    fresh = audits["clean"].fresh
    assert fresh["verdict"] in ("clean", "inconclusive")
    assert fresh["excess"]["low"] < 0.0 < fresh["excess"]["high"]


def test_every_trial_is_accounted_for(audits: dict[str, Audited]) -> None:
    """Those of the fresh items are trials like any other, each asked once."""
    alone, beside = (audits[name].report["counts"] for name in ("wording alone", "with fresh items"))
    assert beside["trials"] == beside["graded"] == alone["trials"] + 300
    assert beside["items_selected"] == alone["items_selected"] == 300


def test_the_page_shows_both_arms(audits: dict[str, Audited]) -> None:
    page = Path(audits["with fresh items"].result["report_path"]).read_text("utf-8")
    assert "The benchmark and fresh items" in page
