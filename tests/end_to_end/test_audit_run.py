"""`proctor audit run` over real GSM8K items, against an OpenAI-compatible endpoint that replays recorded answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.replay_server import Replay, recorded_answers, replay_server
from tests.standing_stack import standing_stack
from tests.suites.gsm8k import gsm8k_suite
from tests.support import ending, free_port, shared_data, wait_until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    with replay_server(recorded_answers(shared_data())) as server:
        yield server


def suite_file(folder: Path, endpoint: str) -> Path:
    """A suite over the first 50 GSM8K items with GPT-4's rewordings as imported variants."""
    file = shared_data() / "gsm8k" / "rephrased.jsonl"
    imported = {"perturbation_strategy": "imported", "rewordings_path": str(file)}
    return gsm8k_suite(folder, endpoint, items=50, perturbation=imported)


def audit_run(suite: Path, home: Path) -> list[str]:
    return [
        sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(home), "--format", "json",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home for the audits whose endpoint goes away: after five seconds it is given up."""
    folder = tmp_path_factory.mktemp("standing")
    with standing_stack(folder / "home", "--no-triton", "--no-metrics", "--no-gateway", PROCTOR_OUTAGE_S="5") as home:
        yield home


def registered_versions(home: Path) -> int:
    """How many model versions the registry's own database holds."""
    import sqlite3

    databases = list((home / "mlflow").glob("*.db")) + list((home / "mlflow").glob("*.sqlite"))
    if not databases:
        return 0
    with sqlite3.connect(databases[0]) as connection:
        count: int = connection.execute("select count(*) from model_versions").fetchone()[0]
    connection.close()
    return count


def entries_of_the_log(home: Path) -> int:
    """How many decisions and sign-offs the decision log holds."""
    verified = subprocess.run(
        [sys.executable, "-m", "proctor", "record", "verify", "--home", str(home), "--format", "json"],
        capture_output=True,
        text=True,
    )
    assert verified.returncode == 0, verified.stderr
    entries: int = json.loads(verified.stdout)["entries"]
    return entries


def test_a_model_that_answers_both_wordings_alike_is_reviewed_for_want_of_items(tmp_path: Path, replay: Replay) -> None:
    suite = suite_file(tmp_path, replay.url)
    before = len(replay.asked)
    run = subprocess.run(audit_run(suite, tmp_path / "home"), capture_output=True, text=True)
    assert run.returncode == 3, run.stderr
    result = json.loads(run.stdout)
    assert result["decision"] == "review"
    assert result["score_inflation_points"] == pytest.approx(0.0)
    assert result["accuracy_canonical"] == result["accuracy_perturbed"]
    assert any("items" in reason for reason in result["reasons"]), result["reasons"]
    assert len(replay.asked) - before == result["n_trials"]
    assert Path(result["report_path"]).is_file()
    assert registered_versions(tmp_path / "home") == 1


@pytest.mark.faults
def test_an_endpoint_that_is_down_ends_with_one_clear_message_and_registers_nothing(
    tmp_path: Path, standing: Path
) -> None:
    before = registered_versions(standing)
    suite = suite_file(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    run = subprocess.run(audit_run(suite, standing), capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert "refused" in run.stderr
    assert "127.0.0.1" in run.stderr
    assert registered_versions(standing) == before


@pytest.mark.faults
def test_an_endpoint_that_dies_midway_leaves_the_audit_open_and_registers_nothing(
    tmp_path: Path, replay: Replay, standing: Path
) -> None:
    suite, home, before = suite_file(tmp_path, replay.url), standing, registered_versions(standing)
    begun = len(replay.asked)
    replay.dies_after = begun + 60
    first = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    assert first.returncode == 1, first.stderr
    assert first.stdout == ""
    assert "has been away for" in first.stderr
    assert registered_versions(home) == before
    replay.dies_after = 10**9
    second = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    assert second.returncode == 3, second.stderr
    assert "Going on with audit" in second.stderr
    assert json.loads(second.stdout)["accuracy_canonical"] == json.loads(second.stdout)["accuracy_perturbed"]
    assert registered_versions(home) == before + 1


@pytest.mark.faults
def test_a_model_that_refuses_everything_fails_its_audit_and_what_was_decided_before_stays(
    tmp_path: Path, replay: Replay, standing: Path
) -> None:
    suite, home = suite_file(tmp_path, replay.url), standing
    decided = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    assert decided.returncode == 3, decided.stderr
    before, entries = registered_versions(home), entries_of_the_log(home)
    replay.refuses = "default chat template is no longer allowed"
    try:
        failed = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    finally:
        replay.refuses = None
    assert failed.returncode == 1, failed.stderr
    assert failed.stdout == ""
    assert "Traceback" not in failed.stderr
    assert "answered 400" in failed.stderr
    assert "default chat template is no longer allowed" in failed.stderr
    assert (registered_versions(home), entries_of_the_log(home)) == (before, entries)
    mended = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    assert mended.returncode == 3, mended.stderr
    assert "Going on with audit" in mended.stderr
    again, once = (json.loads(run.stdout) for run in (mended, decided))
    of_its_own = ("report_path", "registry_version")
    assert again.keys() == once.keys()
    assert {key: again[key] for key in again if key not in of_its_own} == {
        key: once[key] for key in once if key not in of_its_own
    }
    assert entries_of_the_log(home) == entries + 1


@pytest.mark.faults
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, replay: Replay) -> None:
    suite = suite_file(tmp_path, replay.url)
    home = tmp_path / "home"
    asked_before = len(replay.asked)
    replay.free_answers = asked_before + 70
    replay.pause.clear()
    begun = subprocess.Popen(audit_run(suite, home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with ending(begun) as first:
        try:
            # One shard of the two is answered, the other hangs in the endpoint.
            wait_until(
                lambda: len(replay.asked) >= replay.free_answers or first.poll() is not None,
                timeout_s=90,
                what="70 answers",
            )
            first.send_signal(signal.SIGINT)
        finally:
            replay.pause.set()
        _, errors = first.communicate(timeout=60)
    assert first.returncode == 130, errors
    replay.free_answers = 10**9
    asked_first = len(replay.asked) - asked_before
    second = subprocess.run(audit_run(suite, home), capture_output=True, text=True)
    assert second.returncode == 3, second.stderr
    assert "Going on with audit" in second.stderr
    result = json.loads(second.stdout)
    asked_second = len(replay.asked) - asked_before - asked_first
    assert asked_second < result["n_trials"], "answers that were there must not be asked for again"
    assert os.path.exists(result["report_path"])
