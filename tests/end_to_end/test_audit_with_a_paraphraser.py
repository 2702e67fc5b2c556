"""`proctor audit run` with rewordings that a model makes: the article's suite, and models that do not do as asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.paraphraser import PARAPHRASER, REFUSAL, Said, recorded_rewordings, replaying
from tests.replay_server import MODEL, Replay, replay_server
from tests.standing_stack import standing_stack
from tests.suites.examples import article_suite
from tests.support import free_port, shared_data
from tests.triton_paraphraser import write_paraphraser
from tests.triton_server import triton_server

pytestmark = pytest.mark.timeout(420)

#: GPT-4's rewordings with a sentence around them that has nothing to do with the problem: far enough from the
#: original for the article's window, where the rewordings alone are not.
_LOOSE = (
    "My cousin reads riddles to the whole family at breakfast, and the weather was fine that morning. {} Think it over "
    "at leisure, and state the result when you are ready."
)


@pytest.fixture(scope="module")
def rewordings() -> dict[str, str]:
    return recorded_rewordings(shared_data())


@pytest.fixture(scope="module")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An operator's folder of benchmarks with GSM8K in it, so that a suite need not say where it is."""
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "gsm8k.jsonl").write_bytes((shared_data() / "gsm8k" / "test.jsonl").read_bytes())
    return folder


def right_answers(rewordings: dict[str, str]) -> dict[str, str]:
    """A model that knows every answer in every wording, by a phrase that each wording holds."""
    rows = [json.loads(line) for line in (shared_data() / "gsm8k" / "test.jsonl").read_text("utf-8").splitlines()]
    answers = {}
    for row in rows:
        answers[row["question"]] = answers[rewordings[row["question"]]] = "#### " + row["answer"].rpartition("#### ")[2]
    return answers


def loose(rewordings: dict[str, str]) -> dict[str, str]:
    return {question: _LOOSE.format(reworded) for question, reworded in rewordings.items()}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One stack for all audits here. Each has a rewording model of its own name, whose rewordings no other finds."""
    folder = tmp_path_factory.mktemp("stack")
    with standing_stack(folder / "home", "--no-triton", "--no-metrics", "--no-gateway", PROCTOR_OUTAGE_S="5") as home:
        yield home


def with_ids(folder: Path, endpoint: str, rewords: str, **perturbation: Any) -> Path:
    """The article's suite with nothing but endpoint and model ids changed; and, where asked for, the perturbation."""
    suite = json.loads(article_suite())
    suite["model_config"].update(model_id=f"tests/{MODEL}", model_version="sha256:" + "5" * 64, endpoint=endpoint)
    suite["perturbation_config"].update(paraphrase_model=f"tests/{rewords}", **perturbation)
    path = folder / "suite.json"
    path.write_text(json.dumps(suite))
    return path


def smaller(path: Path, items: int) -> Path:
    suite = json.loads(path.read_text())
    suite["dataset_config"]["sample_size"] = items
    path.write_text(json.dumps(suite))
    return path


def audit_run(suite: Path, home: Path, benchmarks: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proctor", "audit", "run", str(suite), "--home", str(home), "--format", "json"]
    environment = {**os.environ, "PROCTOR_BENCHMARKS": str(benchmarks)}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def served(answers: dict[str, str], says: Any, rewords: str) -> AbstractContextManager[Replay]:
    return replay_server(answers, replaying(says), rewords=rewords)


def test_the_articles_suite_runs_to_a_decision_and_a_second_audit_asks_for_no_rewording(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    with served(right_answers(rewordings), loose(rewordings), "rewords-loosely") as article:
        suite = with_ids(tmp_path, article.url, "rewords-loosely")
        first = audit_run(suite, home, benchmarks)
        assert first.returncode in (0, 3), first.stderr
        result = json.loads(first.stdout)
        assert result["decision"] in ("approve", "review")
        assert result["accuracy_canonical"] == result["accuracy_perturbed"] == 1.0
        assert result["n_items"] >= 250  # half of the 500, by min_yield
        asked = len(article.asked_to_reword)
        assert asked >= 500
        report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
        assert report["variants"]["rejected"]["too_close"] > 0
        second = audit_run(suite, home, benchmarks)
        assert second.returncode == first.returncode, second.stderr
        assert len(article.asked_to_reword) == asked
        assert json.loads(second.stdout)["report_digest"] == result["report_digest"]


def test_a_window_that_starves_the_articles_suite_is_named_with_both_sides_and_the_calibrated_one(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    with served(right_answers(rewordings), rewordings, "rewords-closely") as server:
        suite = smaller(with_ids(tmp_path, server.url, "rewords-closely"), 100)
        run = audit_run(suite, home, benchmarks)
    assert run.returncode in (1, 2), run.stderr
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert "fell below the window 0.15 to 0.45 and" in " ".join(run.stderr.split())
    assert "proctor variants calibrate" in " ".join(run.stderr.split())


def test_refusals_echoes_answers_and_cut_replies_are_counted_and_the_rest_is_audited(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    says: dict[str, str | Said] = dict(rewordings)
    questions = list(rewordings)
    for number, question in enumerate(questions):
        if number % 10 == 0:
            says[question] = REFUSAL
        elif number % 10 == 1:
            says[question] = question
        elif number % 10 == 2:
            says[question] = f"{rewordings[question]} The answer is 7."
        elif number % 10 == 3:
            says[question] = Said(rewordings[question][:40], "length")
    with served(right_answers(rewordings), says, "rewords-badly") as server:
        suite = smaller(with_ids(tmp_path, server.url, "rewords-badly", min_semantic_distance=0.01), 100)
        run = audit_run(suite, home, benchmarks)
    assert run.returncode in (0, 3), run.stderr
    result = json.loads(run.stdout)
    report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
    rejected = report["variants"]["rejected"]
    assert {"refused", "unchanged", "answered", "truncated"} <= rejected.keys()
    assert 45 <= result["n_items"] <= 65


@pytest.mark.faults
def test_a_paraphraser_that_is_down_leaves_the_audit_open_and_it_goes_on_when_it_is_back(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    with served(right_answers(rewordings), rewordings, "rewords-later") as server:
        away = {"paraphraser": {"endpoint": f"http://127.0.0.1:{free_port()}/v1"}, "min_semantic_distance": 0.01}
        first = audit_run(smaller(with_ids(tmp_path, server.url, "rewords-later", **away), 20), home, benchmarks)
        assert first.returncode == 1, first.stderr
        assert first.stdout == ""
        assert "Traceback" not in first.stderr
        assert "refused" in first.stderr
        assert not server.asked
        back = {"paraphraser": {"endpoint": server.url}, "min_semantic_distance": 0.01}
        second = audit_run(smaller(with_ids(tmp_path, server.url, "rewords-later", **back), 20), home, benchmarks)
    assert second.returncode == 3, second.stderr
    assert json.loads(second.stdout)["n_items"] >= 15


def test_the_articles_contract_answers_and_rewords_behind_one_url(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    with served(right_answers(rewordings), rewordings, "rewords-beside") as server:
        suite = with_ids(tmp_path, server.url + "/infer", "rewords-beside", min_semantic_distance=0.01)
        run = audit_run(smaller(suite, 40), home, benchmarks)
        assert len(server.asked_to_reword) >= 40
    assert run.returncode == 3, run.stderr
    assert "whatever answers there rewords" in " ".join(run.stderr.split())
    result = json.loads(run.stdout)
    assert result["accuracy_canonical"] == result["accuracy_perturbed"] == 1.0
    report = json.loads(Path(result["report_path"]).with_suffix(".json").read_text("utf-8"))
    assert "decoding_not_sent" in {limit["code"] for limit in report["limits"]}


def test_a_paraphraser_on_triton_rewords_for_a_model_behind_http(
    tmp_path: Path, home: Path, rewordings: dict[str, str], benchmarks: Path
) -> None:
    write_paraphraser(tmp_path / "bundle", rewordings)
    (tmp_path / "triton").mkdir()
    with (
        triton_server(tmp_path / "bundle", tmp_path / "triton") as triton,
        replay_server(right_answers(rewordings)) as server,
    ):
        asked = {"endpoint": f"grpc://127.0.0.1:{triton.grpc_port}", "chat_template": "none"}
        there = {"paraphraser": asked, "min_semantic_distance": 0.01}
        run = audit_run(smaller(with_ids(tmp_path, server.url, PARAPHRASER, **there), 40), home, benchmarks)
        assert triton.answered(PARAPHRASER) >= 40
    assert run.returncode == 3, run.stderr
    assert json.loads(run.stdout)["n_items"] >= 30
