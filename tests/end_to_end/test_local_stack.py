"""Auditing on a stack that stays up, and on a machine without Triton."""

from __future__ import annotations

import hashlib
import html
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from junitparser import Failure, JUnitXml

from proctor.cli.demo import demo_suite
from proctor.localstack.stack import LocalStack
from proctor.localstack.state import read_state
from proctor.localstack.triton_server import obstacle
from proctor.runtime.processes import marked
from proctor.runtime.settings import default_bundle
from tests.support import loose_paths, missing

pytestmark = pytest.mark.timeout(180)


def proctor(*arguments: str, umask: int = -1, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        umask=umask,
    )


def shared_memory(home: Path) -> set[Path]:
    """The regions in /dev/shm that a process of the home's stack has."""
    state = read_state(home)
    assert state is not None
    regions = set()
    for pid in marked(state["token"]):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        regions |= {Path(line.split(maxsplit=5)[5]) for line in lines if "/dev/shm/" in line}
    return {region for region in regions if region.exists()}


def write_suite(path: Path, model_id: str, bundle: Path, *, items: int = 300) -> None:
    """The demo's suite on some of its items, by default half: enough for its decision."""
    suite = json.loads(demo_suite(model_id, bundle))
    suite["dataset_config"]["sample_size"] = items
    path.write_text(json.dumps(suite))


class Audited(NamedTuple):
    """A stack that is up, and an audit that was run on it."""

    home: Path
    suite: Path
    run: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """Started by somebody whose umask closes nothing."""
    if (reason := obstacle()) is not None:
        missing(reason)
    folder = tmp_path_factory.mktemp("up")
    home, suite = folder / "home", folder / "suite.json"
    write_suite(suite, "reference-leaked", default_bundle())
    try:
        up = proctor("up", "--home", str(home), umask=0)
        assert up.returncode == 0, up.stderr
        files = ("--junit", str(folder / "proctor.xml"), "--markdown", str(folder / "proctor.md"))
        yield Audited(
            home, suite, proctor("audit", "run", str(suite), "--home", str(home), "--format", "json", *files, umask=0)
        )
    finally:
        down = proctor("down", "--home", str(home))
    assert down.returncode == 0, down.stderr
    assert proctor("status", "--home", str(home)).returncode == 1
    assert loose_paths(home) == []


def test_an_audit_uses_the_stack_that_is_up_and_leaves_it_up(audited: Audited) -> None:
    assert audited.run.returncode == 4, audited.run.stderr
    assert "Using the stack that runs" in audited.run.stderr
    assert json.loads(audited.run.stdout)["decision"] == "block"
    assert proctor("status", "--home", str(audited.home)).returncode == 0


def test_the_files_for_a_pull_request_say_what_the_report_says_and_link_to_the_dashboard(audited: Audited) -> None:
    result, folder = json.loads(audited.run.stdout), audited.suite.parent
    (suite,) = JUnitXml.fromfile(str(folder / "proctor.xml"))
    failed = {case.name for case in suite if case.result and isinstance(case.result[0], Failure)}
    assert {"decision", "Score inflation", "Contamination Score"} <= failed
    summary = html.unescape((folder / "proctor.md").read_text())
    address = LocalStack.attach(audited.home).dashboard()
    assert f"]({address}/audits/" in summary
    assert f"{result['score_inflation_points']:.1f} points" in summary
    assert result["report_digest"].removeprefix("sha256:") in summary


def test_another_user_of_the_machine_sees_nothing_of_a_stack_that_runs(audited: Audited) -> None:
    home = audited.home
    files = {path.relative_to(home).as_posix() for path in home.rglob("*")}
    # So that what is looked at is a home in which everything has written.
    for written in ("records.sqlite", "artifacts", "reports", "mlflow/mlflow.db", "valkey/appendonlydir", "logs"):
        assert written in files
    regions = shared_memory(home)
    assert any(region.name.startswith("proctor_") for region in regions), "Triton has no shared memory?"
    assert loose_paths(home, *regions) == []


def test_when_prompts_and_completions_are_gone_the_report_is_there_and_the_audit_can_be_run_again(
    audited: Audited,
) -> None:
    home, first = str(audited.home), json.loads(audited.run.stdout)
    objects = [path for path in (audited.home / "artifacts").rglob("*") if path.is_file()]
    for path in objects:
        os.utime(path, (0, 0))
    with closing(sqlite3.connect(audited.home / "records.sqlite")) as records, records:
        records.execute("UPDATE decisions SET decided_at = '2020-01-01T00:00:00+00:00'")
    pruned = proctor(
        "artifacts", "prune", "--older-than-days", "30", "--override-suites", "--home", home, "--format", "json"
    )
    assert pruned.returncode == 0, pruned.stderr
    removed = json.loads(pruned.stdout)
    assert (len(removed["past"]), removed["open"]) == (1, 0)
    assert removed["objects"] + removed["kept"] == len(objects)
    left = [path for path in objects if path.exists()]
    assert len(left) == removed["kept"] < removed["objects"]
    held = [zlib.decompress(path.read_bytes()) for path in left]
    # Of what was asked and said, nothing; of what the report is verified by, all.
    assert not any(data.startswith((b'{"completions":', b'{"shard_id":', b'{"trials":')) for data in held)
    digests = {f"sha256:{hashlib.sha256(data).hexdigest()}": data for data in held}
    assert digests[first["report_digest"]] == Path(first["report_path"]).with_suffix(".json").read_bytes()
    (manifest,) = (json.loads(data) for data in held if data.startswith(b'{"audit_id":'))
    for index in (manifest["items"], manifest["variants"]):
        assert set(json.loads(digests[index])["chunks"]) <= set(digests)
    again = proctor("audit", "run", str(audited.suite), "--home", home, "--format", "json")
    assert again.returncode == 4, again.stderr
    assert json.loads(again.stdout)["report_digest"] == first["report_digest"]


def test_without_triton_the_models_are_served_in_process_and_the_output_says_so(tmp_path: Path, bundle: Path) -> None:
    suite = tmp_path / "suite.json"
    write_suite(suite, "reference-clean", bundle, items=100)
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
