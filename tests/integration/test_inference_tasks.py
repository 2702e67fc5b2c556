"""The inference service's tasks, on real backends and a real artifact store; messages are caught where they leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import CompletionSet
from proctor.domain.messages import EndpointProbed, Message, ProbeEndpoint, RunShard, ShardAnswered
from proctor.domain.trial import Arm, Completion, Decoding, Shard, Trial
from proctor.inference import shards, tasks
from proctor.inference.event_loop import EventLoopThread
from proctor.inference.reference_model import ReferenceModel, weights_digest
from proctor.runtime.artifacts import LocalArtifacts, get_model, put_model
from proctor.runtime.settings import Settings
from tests.support import free_port
from tests.triton_server import prompt, write_untrained_bundle

MODEL = "reference-clean"


class Worker:
    """A worker's surroundings: its stores, and the messages it sent."""

    def __init__(self, home: Path) -> None:
        self.bundle = home / "bundle"
        write_untrained_bundle(self.bundle)
        self.settings = Settings(home=home, artifacts=str(home / "artifacts"), bundle=self.bundle)
        self.store = LocalArtifacts(home / "artifacts")
        self.sent: list[Message] = []

    def spec(self, *, version: str | None = None) -> EndpointSpec:
        pinned = version or weights_digest(self.bundle / "models" / MODEL / "1")
        return EndpointSpec(backend="in_process", url="http://in-process", served_name=MODEL, model_version=pinned)

    def run(
        self,
        spec: EndpointSpec,
        *prompts: str,
        decoding: Decoding | None = None,
        shard: str | None = None,
        last_attempt: bool = False,
    ) -> ShardAnswered:
        trials = tuple(Trial(arm=Arm.CANONICAL, item_id=str(n), prompt=text) for n, text in enumerate(prompts or "a"))
        digest = shard or put_model(self.store, Shard(shard_id="s1", stage="answer", arm=Arm.CANONICAL, trials=trials))
        tasks.run_shard(
            RunShard(
                audit_id="a1",
                shard_id="s1",
                attempt=2,
                shard=digest,
                endpoint=spec,
                decoding=decoding or Decoding(max_tokens=8),
                deadline_s=20.0,
                last_attempt=last_attempt,
            )
        )
        answer = self.sent.pop()
        assert isinstance(answer, ShardAnswered)
        assert (answer.audit_id, answer.shard_id, answer.attempt) == ("a1", "s1", 2)
        return answer

    def probe(self, spec: EndpointSpec) -> EndpointProbed:
        tasks.probe(ProbeEndpoint(audit_id="a1", endpoint=spec))
        answer = self.sent.pop()
        assert isinstance(answer, EndpointProbed)
        return answer


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    surroundings = Worker(tmp_path)
    monkeypatch.setattr(tasks, "worker_settings", lambda: surroundings.settings)
    monkeypatch.setattr(tasks, "worker_artifacts", lambda: surroundings.store)
    monkeypatch.setattr(tasks, "send", surroundings.sent.append)
    monkeypatch.setattr(shards, "_AGAIN_AFTER_S", (0.01, 0.01))
    tasks._worker.cache_clear()
    yield surroundings
    tasks._leave()


def test_a_shard_is_answered_in_its_order_and_stored(worker: Worker) -> None:
    prompts = [prompt(number) for number in range(150)]
    answer = worker.run(worker.spec(), *prompts)
    assert answer.error is None
    assert answer.completions is not None
    got = get_model(worker.store, answer.completions, CompletionSet).completions
    model = ReferenceModel.load(worker.bundle / "models" / MODEL / "1")
    assert [c.text for c in got] == [model.generate([text], max_tokens=8)[0].text for text in prompts]
    assert {c.model_digest for c in got} == {worker.spec().model_version}


def test_a_probe_tells_the_digest_and_that_there_is_no_triton(worker: Worker) -> None:
    found = worker.probe(worker.spec())
    assert found.ok
    assert found.model_digest == worker.spec().model_version
    assert found.server == "in-process (no Triton on this machine)"


def test_other_weights_than_the_pinned_ones_are_final(worker: Worker) -> None:
    spec = worker.spec(version="sha256:" + "0" * 64)
    found = worker.probe(spec)
    assert not found.ok
    assert "pins sha256:0000" in found.detail
    answer = worker.run(spec)
    assert "pins sha256:0000" in str(answer.error)
    assert not answer.retryable


@pytest.mark.parametrize("name", ["../../etc", "missing", "a/b"])
def test_a_model_that_the_bundle_does_not_have_is_final(worker: Worker, name: str) -> None:
    answer = worker.run(worker.spec().model_copy(update={"served_name": name}))
    assert answer.error
    assert not answer.retryable


@pytest.mark.parametrize(("backend", "scheme"), [("triton", "grpc"), ("openai", "http")])
def test_an_endpoint_that_is_down_fails_the_whole_shard_for_now(worker: Worker, backend: str, scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}"
    spec = worker.spec().model_copy(update={"backend": backend, "url": url})
    found = worker.probe(spec)
    assert not found.ok
    assert found.detail == f"connection refused at {url}"
    answer = worker.run(spec, "a", "b")
    assert answer.error == f"connection refused at {url}"
    assert answer.retryable
    assert answer.completions is None


def test_a_shard_that_cannot_be_read_is_final(worker: Worker) -> None:
    answer = worker.run(worker.spec(), shard=worker.store.put(b'{"shard_id": "half a shard'))
    assert "is not valid" in str(answer.error)
    assert not answer.retryable


def test_a_policy_that_the_model_cannot_honour_is_an_error_of_every_trial(worker: Worker) -> None:
    answer = worker.run(worker.spec(), "a", "b", decoding=Decoding(temperature=0.5))
    assert answer.completions is not None
    got = get_model(worker.store, answer.completions, CompletionSet).completions
    assert [c.finish_reason for c in got] == ["error", "error"]
    assert "answer greedily" in str(got[0].error)


def test_a_shard_that_is_not_in_the_store_is_answered_too(worker: Worker) -> None:
    answer = worker.run(worker.spec(), shard=bytes_digest(b"nothing"))
    assert "not in the store" in str(answer.error)


def test_trials_that_failed_in_passing_are_asked_again(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:

    asked: list[list[str]] = []

    class Flaky:
        async def complete(self, trials: list[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
            asked.append([trial.prompt for trial in trials])
            return [
                Completion(trial_id=trial.trial_id, error="dropped", finish_reason="error", retryable=True)
                if len(asked) < 3 and trial.prompt == "b"
                else Completion(trial_id=trial.trial_id, text=trial.prompt.upper())
                for trial in trials
            ]

        async def close(self) -> None: ...

    monkeypatch.setattr(shards, "open_backend", lambda spec, settings: Flaky())
    answer = worker.run(worker.spec(), "a", "b", "c")
    assert answer.completions is not None
    got = get_model(worker.store, answer.completions, CompletionSet).completions
    assert [c.text for c in got] == ["A", "B", "C"]
    assert asked == [["a", "b", "c"], ["b"], ["b"]]


def test_a_shard_with_holes_is_a_failed_one_but_for_one_with_few_in_its_last_attempt(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_AGAIN_AFTER_S", ())

    class Dying:
        async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
            return [
                Completion(trial_id=trial.trial_id, error="connection refused", finish_reason="error", retryable=True)
                if trial.prompt == "lost"
                else Completion(trial_id=trial.trial_id, text="A")
                for trial in trials
            ]

        async def close(self) -> None: ...

    monkeypatch.setattr(shards, "open_backend", lambda spec, settings: Dying())
    few = worker.run(worker.spec(), *["asked"] * 39, "lost", last_attempt=True)
    assert few.completions is not None
    earlier = worker.run(worker.spec(), *["asked"] * 39, "lost")
    assert earlier.completions is None
    assert earlier.retryable
    many = worker.run(worker.spec(), *["asked"] * 37, "lost", "lost", "lost", last_attempt=True)
    assert many.completions is None
    assert many.retryable
    assert many.error == "3 of 40 prompts got no answer: connection refused"


def test_the_connection_is_kept_between_shards_and_given_back_at_the_end(worker: Worker) -> None:
    worker.run(worker.spec(), "a")
    kept = tasks._worker().backends._open
    first = next(iter(kept.values()))
    worker.run(worker.spec(), "b")
    assert list(kept.values()) == [first]
    tasks._leave()
    assert tasks._worker.cache_info().currsize == 0
    assert not any(thread.name == "inference-loop" for thread in threading.enumerate())


def test_an_interrupted_caller_cancels_its_coroutine() -> None:
    loop = EventLoopThread()
    cancelled = threading.Event()

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    waiting = asyncio.run_coroutine_threadsafe(wait(), loop._loop)
    loop.run(asyncio.sleep(0))
    loop.stop()
    assert cancelled.wait(5)
    assert waiting.cancelled()
