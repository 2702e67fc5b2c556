"""The speed benchmark of the router measures what it says: every trial through real workers, none of them twice.

Nothing is timed here.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bench_router
from benchmarking import durable_path, moments, null_model, servers, two_endpoints
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import StackError
from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.worker.event_loop import EventLoopThread


class FakePath:
    """Services whose audits go at a known pace: 0.1 ms of processor time a trial and half of that for the grades."""

    def run(self, trials: int) -> durable_path.Run:
        growth = 1.2 if trials > 100 else 1.0
        memory = 2**20 * trials // 10
        return durable_path.Run(
            trials=trials,
            asked_s=trials / 4_000,
            answered_s=trials / 2_000,
            graded_s=trials / 1_000,
            decided_s=trials / 500,
            processor_s=trials * 1e-4 * growth,
            router_bytes=memory,
            broker_bytes=memory // 4 + 2**20,
        )


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What the script prints of services with a known pace and a chord of 20 prompts a second."""
    chord = SimpleNamespace(run=lambda prompts: len(prompts) / 20)
    monkeypatch.setattr(bench_router, "valkey", lambda folder: nullcontext("redis://127.0.0.1:9"))
    monkeypatch.setattr(bench_router, "services", lambda *_, **__: nullcontext(FakePath()))
    monkeypatch.setattr(bench_router, "chord_worker", lambda *_, **__: nullcontext(chord))
    pair = two_endpoints.TwoEndpoints(alone=(25.0, 100.0), together=120.0)
    monkeypatch.setattr(bench_router, "two_endpoints", lambda folder, about_s: pair)
    sizes = ["--trials", "40", "--large", "400", "--chord", "8", "--samples", "0", "--asked", "0", "--rounds", "3"]
    assert bench_router.main([*sizes, "--format", "json"]) == 1
    return json.loads(capsys.readouterr().out)


def test_the_same_prompt_always_has_the_same_answer_of_200_tokens() -> None:
    texts = {null_model.text_for(f"question {number}") for number in range(50)}
    assert null_model.text_for("question 1") == null_model.text_for("question 1")
    assert len(texts) > 40
    assert all(len(text.split()) == 150 and "####" in text for text in texts)


def test_the_null_model_answers_every_trial_in_order() -> None:
    spec = EndpointSpec(backend="openai", url="http://127.0.0.1:9/v1", served_name="null", model_version=None)
    trials = [Trial(arm=Arm.CANONICAL, item_id=str(number), prompt=f"question {number}") for number in range(5)]
    loop = EventLoopThread()
    try:
        completions = loop.run(null_model.NullBackend(spec).complete(trials, Decoding(), deadline_s=1.0))
    finally:
        loop.stop()
    assert [completion.trial_id for completion in completions] == [trial.trial_id for trial in trials]
    assert [completion.text for completion in completions] == [null_model.text_for(t.prompt) for t in trials]
    assert {completion.output_tokens for completion in completions} == {200}


def test_stories_of_another_number_share_no_question_and_no_id() -> None:
    first, second = (durable_path.stories(1_500, number) for number in (1, 2))
    assert len({item.question for item in [*first, *second]}) == 3_000
    assert len({item.item_id for item in [*first, *second]}) == 3_000
    # GSM8K's test questions have 235 characters on average.
    chunks = list(durable_path.chunks_of_stories(1_500, 2))
    assert [item for chunk in chunks for item in chunk] == second
    assert [len(chunk) for chunk in chunks] == [1_024, 476]
    assert 200 < sum(len(item.question) for item in first) / len(first) < 280


def test_every_item_has_its_variants_and_no_two_are_the_same() -> None:
    items = durable_path.stories(10, 1)
    variants = durable_path.reworded(items)
    assert len({variant.variant_id for variant in variants}) == 10 * durable_path.VARIANTS


def test_a_claim_is_the_ratio_of_the_medians_and_has_its_bound(document: Any) -> None:
    claims = {
        claim["name"]: (claim["value"], claim.get("at_least", claim.get("at_most"))) for claim in document["claims"]
    }
    assert claims == {
        "durable path, trials/s on 2 cores": (pytest.approx(1_000), 20_000),
        "the path / one Celery task a prompt, joined by a chord": (pytest.approx(50), 60),
        "growth of the processor time a trial, 40 to 400 trials": (pytest.approx(1.2), 1.1),
        "bytes of the router's memory a further trial, 40 to 400 trials": (pytest.approx(2**20 / 10, rel=1e-3), 8),
        "bytes of Valkey's memory a further trial, 40 to 400 trials": (pytest.approx(2**20 / 40, rel=1e-3), 8),
        "two endpoints together / their sum": (pytest.approx(0.96), 0.9),
    }
    assert [claim["name"] for claim in document["claims"] if claim["holds"]] == ["two endpoints together / their sum"]


def test_moments_are_those_of_the_first_and_the_last_note_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = (moments.Moments(tmp_path / "moments") for _ in range(2))
    assert theirs.span == (0.0, 0.0)
    clock = iter([3.0, 5.0, 9.0, 11.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    ours.note()
    assert theirs.span == (3.0, 3.0)
    ours.note()
    theirs.note()
    assert ours.span == (3.0, 9.0)
    theirs.forget()
    ours.note()
    assert theirs.span == (11.0, 11.0)


def test_every_completion_of_an_audit_is_stored_once(tmp_path: Path) -> None:
    from proctor.runtime.artifacts.store import get_model

    with (
        servers.valkey(tmp_path) as url,
        durable_path.services(tmp_path / "home", url, inference=2) as path,
    ):
        run = path.run(200)
        manifests = [path.artifacts.get(f"sha256:{found.stem}") for found in (tmp_path / "home").rglob("*.z")]
        (manifest,) = [AuditManifest.model_validate_json(data) for data in manifests if b'"answered":[{' in data]
        completions = [
            completion
            for shard in manifest.answered
            for completion in get_model(path.artifacts, shard.completions, CompletionSet).completions
        ]
    assert run.trials == len(completions) == len({completion.trial_id for completion in completions}) == 200
    assert 0 < run.asked_s <= run.answered_s <= run.graded_s <= run.decided_s


def test_a_server_that_ends_at_once_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    argv = [sys.executable, "-c", "import sys; sys.exit('no room')"]
    with servers.process(argv, log) as server, pytest.raises(StackError, match="no room"):
        servers.wait_for(lambda: False, server, log)
