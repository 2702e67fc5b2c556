"""Audits of the reference models with control items, which are fresh items as well, on a local stack."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.end_to_end.parted_benchmark import N_CONTROL, lay_down
from tests.standing_stack import standing_stack
from tests.support import REPOSITORY

pytestmark = pytest.mark.timeout(420)

TRITON = REPOSITORY / "services" / "triton"


class Audited(NamedTuple):
    exit_code: int
    result: dict[str, Any]
    report: dict[str, Any]

    @property
    def control(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["evidence"]["perturbation"]["control_items"]
        return found


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Audited]]:
    from proctor.inference.reference.model import weights_digest

    folder = tmp_path_factory.mktemp("control_items")
    n_benchmark, _ = lay_down(folder)
    with standing_stack(folder / "home", "--no-gateway"):

        def audited(name: str) -> Audited:
            suite = json.loads((REPOSITORY / "services" / "proctor" / "cli" / "demo_suite.json").read_text("utf-8"))
            version = weights_digest(TRITON / "models" / name / "1")
            suite["audit_suite_id"] = f"control-{name}"
            suite["model_config"] = {
                "model_id": f"proctor/{name}",
                "model_version": version,
                "endpoint": "local-triton",
            }
            suite["dataset_config"].update(path="benchmark.jsonl", target_field="target", sample_size=n_benchmark)
            suite["control_config"] = suite["fresh_config"] = {"path": "control.jsonl"}
            path = folder / f"{name}.json"
            path.write_text(json.dumps(suite))
            command = [sys.executable, "-m", "proctor", "audit", "run", str(path), "--home", str(folder / "home")]
            run = subprocess.run([*command, "--format", "json"], capture_output=True, text=True)
            assert run.stdout, run.stderr
            result = json.loads(run.stdout)
            report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
            return Audited(run.returncode, result, report)

        yield {name: audited(f"reference-{name}") for name in ("clean", "leaked")}


def test_the_clean_model_is_approved_by_the_difference(audits: dict[str, Audited]) -> None:
    found = audits["clean"]
    assert (found.exit_code, found.result["decision"]) == (0, "approve"), found.result["reasons"]
    excess = found.control["excess"]["excess_inflation"]
    assert excess["low"] < 0.0 < excess["high"] <= 5.0
    assert "beyond that of the control items" in found.report["decision"]["reasons"][0]["text"]


def test_the_leaked_model_is_blocked_by_the_difference(audits: dict[str, Audited]) -> None:
    found = audits["leaked"]
    assert (found.exit_code, found.result["decision"]) == (4, "block")
    assert found.control["excess"]["excess_inflation"]["low"] > 5.0
    assert "beyond that of the control items" in found.report["decision"]["reasons"][0]["text"]
    assert found.report["evidence"]["fresh"]["n_fresh"] == N_CONTROL


def test_every_trial_of_all_arms_is_accounted_for(audits: dict[str, Audited]) -> None:
    for found in audits.values():
        counts, variants = found.report["counts"], found.report["variants"]
        assert counts["trials"] == counts["graded"]
        assert found.control["n_selected"] == N_CONTROL
        assert found.control["n_items"] == found.control["n_reworded"] > 0.9 * N_CONTROL
        of_control = sum(arm["n_answers"] for arm in found.control["arms"])
        of_benchmark = variants["items_with_variants"] + variants["admitted"]
        assert counts["trials"] == of_benchmark + of_control + N_CONTROL


def test_the_command_and_the_page_say_what_the_difference_is(audits: dict[str, Audited]) -> None:
    for found in audits.values():
        assert found.result["control_items"]["conclusion"].startswith("On ")
        page = Path(found.result["report_path"]).read_text("utf-8")
        assert "The benchmark and control items" in page
        assert "The benchmark and fresh items" in page
