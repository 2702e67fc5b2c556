"""The examples for continuous integration: held to their systems' schemas, and their commands run as they stand."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from ruamel.yaml import YAML

from proctor.domain.decision import DecisionOutcome
from tests.integration.audit_support import AuditBench, audit_bench, serving
from tests.support import REPOSITORY, missing, wait_until

EXAMPLES = REPOSITORY / "docs" / "examples" / "ci"
GITHUB, GITLAB = EXAMPLES / "github-actions.yml", EXAMPLES / "gitlab-ci.yml"
NIGHTLY = EXAMPLES / "nightly-models.yml"
TOKEN = "a-token-of-the-runner-0123456789"
#: What the examples install is what is tested.
INSTALLS = "pip install"


def parsed(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(path)
    return loaded


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path / "home", valkey_url) as found:
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()


@pytest.fixture
def checkout(tmp_path: Path, bench: AuditBench) -> Path:
    """What the pull request's checkout has."""
    suites = tmp_path / "checkout" / "suites"
    suites.mkdir(parents=True)
    (suites / "facts.json").write_text(bench.suite_text("facts"))
    (suites / "items.jsonl").write_bytes((bench.home / "items.jsonl").read_bytes())
    return suites.parent


@contextmanager
def deciding(bench: AuditBench, outcome: DecisionOutcome) -> Iterator[None]:
    """Whatever audit is begun meanwhile is decided."""

    def decide() -> None:
        wait_until(lambda: bool(bench.desk.audits()), timeout_s=40, what="the audit of the step")
        (audit,) = bench.desk.audits()
        bench.decide(audit.audit_id, outcome)

    thread = threading.Thread(target=decide)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)


def shell(script: str, checkout: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step, by the shell that both systems start."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        cwd=checkout,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("schema", "example"),
    [("vendor.github-workflows", GITHUB), ("vendor.gitlab-ci", GITLAB), ("vendor.github-workflows", NIGHTLY)],
    ids=["github", "gitlab", "nightly"],
)
def test_an_example_is_what_its_system_takes(schema: str, example: Path) -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        missing("check-jsonschema is not installed: pip install check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(example)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("example", "triggers"), [(GITHUB, ["pull_request"]), (NIGHTLY, ["schedule", "workflow_dispatch"])]
)
def test_a_workflow_may_only_read_and_pins_what_it_runs_by_commit(example: Path, triggers: list[str]) -> None:
    workflow = parsed(example)
    assert workflow["permissions"] == {"contents": "read"}
    assert list(workflow["on"]) == triggers
    (job,) = workflow["jobs"].values()
    used = [step["uses"] for step in job["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used)
    # What a pull request brings never stands in a script.
    assert not any("${{" in step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(DecisionOutcome.APPROVE, 0), (DecisionOutcome.REVIEW, 3), (DecisionOutcome.BLOCK, 4)],
)
def test_the_steps_of_the_workflow_end_with_the_decision_and_leave_their_files(
    bench: AuditBench, checkout: Path, tmp_path: Path, outcome: DecisionOutcome, code: int
) -> None:
    (job,) = parsed(GITHUB)["jobs"].values()
    summary = tmp_path / "summary.md"
    codes: dict[str, int] = {}
    with serving(bench.desk, token=TOKEN) as address, deciding(bench, outcome):
        told = {"PROCTOR_GATEWAY": f"grpc://{address}", "PROCTOR_GATEWAY_TOKEN": TOKEN}
        for step in job["steps"]:
            if "run" not in step or step["run"].startswith(INSTALLS):
                continue
            if any(codes.values()) and step.get("if") != "always()":
                continue
            environment = {**step.get("env", {}), **told, "GITHUB_STEP_SUMMARY": str(summary)}
            ran = shell(step["run"], checkout, environment)
            codes[step["name"]] = ran.returncode
            assert TOKEN not in ran.stdout + ran.stderr
    assert codes == {"Check the suite": 0, "Audit": code, "Summary": 0}
    assert "https://proctor.example.org/audits/" in summary.read_text()
    (suite,) = JUnitXml.fromfile(str(checkout / "proctor.xml"))
    assert [case.name for case in suite] == ["decision"]
    assert suite.failures == (0 if code == 0 else 1)


def test_the_script_of_the_pipeline_lets_a_review_pass_with_a_warning(bench: AuditBench, checkout: Path) -> None:
    job = parsed(GITLAB)["contamination audit"]
    with serving(bench.desk, token=TOKEN) as address, deciding(bench, DecisionOutcome.REVIEW):
        told = {"PROCTOR_GATEWAY": f"grpc://{address}", "PROCTOR_GATEWAY_TOKEN": TOKEN}
        ran = shell("\n".join(job["script"]), checkout, {**job["variables"], **told})
    assert ran.returncode in job["allow_failure"]["exit_codes"]
    assert (checkout / job["artifacts"]["reports"]["junit"]).is_file()
    assert all((checkout / path).is_file() for path in job["artifacts"]["paths"])


def test_the_nightly_workflow_makes_targets_that_are_there_and_keeps_what_they_fetch() -> None:
    (job,) = parsed(NIGHTLY)["jobs"].values()
    made = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = [step["run"].removeprefix("make ") for step in job["steps"] if "run" in step]
    assert asked == ["models", "test-models"]
    assert set(asked) <= made
    kept = next(step["with"]["cache-dependency-path"] for step in job["steps"] if "cache" in step.get("with", {}))
    assert all((REPOSITORY / name).is_file() for name in kept.split())


def test_continuous_integration_asks_a_real_model_only_where_a_variable_says_so() -> None:
    script = (REPOSITORY / ".ci" / "run").read_text("utf-8")
    before, asked, after = script.partition('if [ "${PROCTOR_CI_MODELS:-}" = 1 ]; then')
    assert asked
    assert "make models" not in before
    assert "make models" in after
    assert "make test-models" in after
