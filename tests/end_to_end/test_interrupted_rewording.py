"""An audit that is interrupted while a model rewords its items, with real workers and a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from tests.paraphraser import PARAPHRASER, Said, recorded_rewordings, replaying
from tests.replay_server import recorded_answers, replay_server
from tests.suites.gsm8k import gsm8k_suite
from tests.support import ending, shared_data, wait_until

pytestmark = pytest.mark.timeout(420)

ITEMS = REWRITE_SHARD_TRIALS + 8


def suite_file(folder: Path, endpoint: str) -> Path:
    asking_one = {"perturbation_strategy": "paraphrase_llm", "paraphrase_model": f"tests/{PARAPHRASER}"}
    return gsm8k_suite(folder, endpoint, items=ITEMS, perturbation={**asking_one, "min_yield": 0.1})


@pytest.mark.faults
def test_rewordings_that_were_there_when_an_audit_was_interrupted_are_not_asked_for_again(tmp_path: Path) -> None:
    says, goes_on = replaying(recorded_rewordings(shared_data())), threading.Event()
    asked: list[str] = []

    def reword(prompt: str) -> Said:
        asked.append(prompt)
        if prompt == asked[0]:
            goes_on.wait(timeout=90)
        return says(prompt)

    with replay_server(recorded_answers(shared_data()), reword) as server:
        run = [sys.executable, "-m", "proctor", "audit", "run", str(suite_file(tmp_path, server.url))]
        run += ["--home", str(tmp_path / "home"), "--format", "json"]
        with ending(subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)) as first:
            try:
                # Both shards are asked at the same time; one hangs in the endpoint with one of its prompts.
                wait_until(
                    lambda: len(asked) >= ITEMS or first.poll() is not None,
                    timeout_s=120,
                    what="the last of the prompts",
                )
                first.send_signal(signal.SIGINT)
                _, errors = first.communicate(timeout=90)
            finally:
                goes_on.set()
        assert first.returncode == 130, errors
        before = len(asked)
        second = subprocess.run(run, capture_output=True, text=True)
    assert second.returncode == 3, second.stderr
    assert "Going on with audit" in second.stderr
    # That the model was asked again is seen where it was asked: the line of progress may come and go between two looks.
    again = set(asked[before:])
    assert asked[0] in again
    assert len(set(asked[:before]) - again) in (REWRITE_SHARD_TRIALS, ITEMS - REWRITE_SHARD_TRIALS)
    result = json.loads(second.stdout)
    assert result["accuracy_canonical"] == result["accuracy_perturbed"]
    assert result["n_items"] > 0
