"""Auditing on a stack that stays up, and on a machine without Triton."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.cli.demo import demo_suite
from tests.support import missing

pytestmark = pytest.mark.timeout(180)


def proctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )


def write_suite(path: Path, model_id: str, bundle: Path) -> None:
    """The demo's suite on half of its items: enough for its decision."""
    suite = json.loads(demo_suite(model_id, bundle))
    suite["dataset_config"]["sample_size"] = 300
    path.write_text(json.dumps(suite))


def test_an_audit_uses_the_stack_that_is_up_and_leaves_it_up(tmp_path: Path, bundle: Path) -> None:
    from proctor.runtime.triton_server import obstacle

    if (reason := obstacle()) is not None:
        missing(reason)
    home, suite = str(tmp_path / "home"), tmp_path / "suite.json"
    write_suite(suite, "reference-leaked", bundle)
    try:
        up = proctor("up", "--home", home)
        assert up.returncode == 0, up.stderr
        run = proctor("audit", "run", str(suite), "--home", home, "--format", "json")
        assert run.returncode == 4, run.stderr
        assert "Using the stack that runs" in run.stderr
        assert json.loads(run.stdout)["decision"] == "block"
        assert proctor("status", "--home", home).returncode == 0
    finally:
        down = proctor("down", "--home", home)
    assert down.returncode == 0, down.stderr
    assert proctor("status", "--home", home).returncode == 1


def test_without_triton_the_models_are_served_in_process_and_the_output_says_so(tmp_path: Path, bundle: Path) -> None:
    suite = tmp_path / "suite.json"
    write_suite(suite, "reference-clean", bundle)
    run = proctor(
        "audit", "run", str(suite), "--home", str(tmp_path / "home"), "--format", "json",
        PROCTOR_TRITON_SERVER=str(tmp_path / "no" / "tritonserver"),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "note: no Triton server, models are served in process" in run.stderr
    result = json.loads(run.stdout)
    assert result["decision"] == "approve"
    report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text())
    assert report["subject"]["server"] == "in-process (no Triton on this machine)"
