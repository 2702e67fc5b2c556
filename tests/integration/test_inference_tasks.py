"""The inference service's tasks, on real backends and a real artifact store; messages are caught where they leave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

from proctor.domain.canonical import bytes_digest
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import CompletionSet
from proctor.domain.messages import (
    EndpointProbed,
    Message,
    ProbeEndpoint,
    RunShards,
    ShardAnswer,
    ShardsAnswered,
    ShardToRun,
)
from proctor.domain.trial import Arm, Completion, Decoding, Shard, Trial
from proctor.inference import tasks
from proctor.inference.reference.model import ReferenceModel, weights_digest
from proctor.inference.worker import attempts, shards
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.redis.presence import Held, Presence
from proctor.runtime.settings import Settings
from tests.support import free_port, wait_until
from tests.triton_server import prompt, write_untrained_bundle

MODEL = "reference-clean"
PRESENCE_DATABASE = 9


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

    def put(self, *prompts: str) -> str:
        """Store a shard; returns its digest."""
        trials = tuple(Trial(arm=Arm.CANONICAL, item_id=str(n), prompt=text) for n, text in enumerate(prompts))
        return put_model(self.store, Shard(shard_id="s1", stage="answer", arm=Arm.CANONICAL, trials=trials))

    def message(
        self, spec: EndpointSpec, *digests: str, decoding: Decoding | None = None, last_attempt: bool = False
    ) -> RunShards:
        """A message with shards s1, s2, ... in their second attempt."""
        shards = tuple(
            ShardToRun(shard_id=f"s{number}", attempt=2, shard=digest, last_attempt=last_attempt)
            for number, digest in enumerate(digests, start=1)
        )
        return RunShards(
            audit_id="a1", shards=shards, endpoint=spec, decoding=decoding or Decoding(max_tokens=8), deadline_s=20.0
        )

    def answers(self, message: RunShards) -> list[ShardAnswer]:
        """What the worker says of a message's shards, over all that it sends."""
        tasks.run_shards(message)
        told = [message for message in self.sent if isinstance(message, ShardsAnswered)]
        self.sent.clear()
        assert {(answered.audit_id, answered.stage) for answered in told} == {("a1", "answer")}
        return sorted((answer for answered in told for answer in answered.answers), key=lambda one: one.shard_id)

    def run(
        self,
        spec: EndpointSpec,
        *prompts: str,
        decoding: Decoding | None = None,
        shard: str | None = None,
        last_attempt: bool = False,
    ) -> ShardAnswer:
        digest = shard or self.put(*(prompts or "a"))
        message = self.message(spec, digest, decoding=decoding, last_attempt=last_attempt)
        (answer,) = self.answers(message)
        assert (answer.shard_id, answer.attempt) == ("s1", 2)
        return answer

    def told(self) -> list[ShardAnswer]:
        """What was sent so far."""
        return [
            answer for message in list(self.sent) if isinstance(message, ShardsAnswered) for answer in message.answers
        ]

    def completions(self, answer: ShardAnswer) -> tuple[Completion, ...]:
        assert answer.completions is not None
        return get_model(self.store, answer.completions, CompletionSet).completions

    def probe(self, spec: EndpointSpec) -> EndpointProbed:
        tasks.probe(ProbeEndpoint(audit_id="a1", endpoint=spec))
        answer = self.sent.pop()
        assert isinstance(answer, EndpointProbed)
        return answer


@pytest.fixture
def presence(valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Presence]:
    presence = Presence(f"{valkey_url}/{PRESENCE_DATABASE}")
    monkeypatch.setattr(tasks, "worker_presence", lambda: presence)
    yield presence
    presence.close()
    with redis.Redis.from_url(f"{valkey_url}/{PRESENCE_DATABASE}") as client:
        client.flushdb()


@pytest.fixture
def worker(presence: Presence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    surroundings = Worker(tmp_path)
    monkeypatch.setattr(tasks, "worker_settings", lambda: surroundings.settings)
    monkeypatch.setattr(tasks, "worker_artifacts", lambda: surroundings.store)
    monkeypatch.setattr(tasks, "send", surroundings.sent.append)
    monkeypatch.setattr(shards, "_AGAIN_AFTER_S", (0.01, 0.01))
    tasks._made.cache_clear()
    yield surroundings
    tasks._leave()


def test_a_shard_is_answered_in_its_order_and_stored(worker: Worker) -> None:
    prompts = [prompt(number) for number in range(150)]
    answer = worker.run(worker.spec(), *prompts)
    assert answer.error is None
    got = worker.completions(answer)
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
    answer = worker.run(worker.spec(), "a", "b", decoding=Decoding(temperature=0.5, top_p=0.9))
    got = worker.completions(answer)
    assert [c.finish_reason for c in got] == ["error", "error"]
    assert "draw from all tokens" in str(got[0].error)


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
    got = worker.completions(answer)
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
    assert tasks._made.cache_info().currsize == 0
    assert not any(thread.name == "inference-loop" for thread in threading.enumerate())


def test_each_shard_of_a_message_has_an_outcome_of_its_own(worker: Worker) -> None:
    good, no_shard = worker.put("a", "b"), worker.store.put(b'{"shard_id": "half a shard')
    message = worker.message(worker.spec(), good, no_shard, bytes_digest(b"nothing"), good)
    first, second, third, fourth = worker.answers(message)
    assert (first.error, first.n_trials) == (None, 2)
    assert "is not valid" in str(second.error)
    assert (second.retryable, second.n_trials) == (False, 0)
    assert "not in the store" in str(third.error)
    assert third.retryable
    assert (fourth.error, fourth.n_trials) == (None, 2)


def test_an_answer_says_what_it_cost(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = iter([(5, 2), (None, None), (7, 3)])
    monkeypatch.setattr(
        shards, "open_backend", lambda spec, settings: Scripted(lambda trial: counted(trial, *next(tokens)))
    )
    tasks.run_shards(worker.message(worker.spec(), worker.put("a", "b", "c")))
    (told,) = worker.sent
    assert isinstance(told, ShardsAnswered)
    (answer,) = told.answers
    assert (answer.n_trials, answer.input_tokens, answer.output_tokens) == (3, 12, 5)
    assert 0 < answer.seconds <= told.seconds


def counted(trial: Trial, input_tokens: int | None, output_tokens: int | None) -> Completion:
    return Completion(trial_id=trial.trial_id, text="A", input_tokens=input_tokens, output_tokens=output_tokens)


class Scripted:
    """A backend that answers each trial as it is told to."""

    def __init__(self, answer: Callable[[Trial], Completion]) -> None:
        self._answer = answer

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        return [self._answer(trial) for trial in trials]

    async def close(self) -> None: ...


def test_trials_that_were_refused_for_good_are_counted(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(trial: Trial) -> Completion:
        return Completion(trial_id=trial.trial_id, error="no chat template", finish_reason="error")

    monkeypatch.setattr(
        shards, "open_backend",
        lambda spec, settings: Scripted(lambda trial: counted(trial, 1, 1) if trial.prompt == "a" else refused(trial)),
    )  # fmt: skip
    assert worker.run(worker.spec(), "a", "b", "c").n_refused == 2
    assert worker.run(worker.spec(), "a").n_refused == 0


@pytest.mark.parametrize("last_attempt", [False, True])
def test_an_endpoint_that_answers_no_trial_may_be_away(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, last_attempt: bool
) -> None:
    monkeypatch.setattr(shards, "open_backend", lambda spec, settings: Scripted(dropped))
    answer = worker.run(worker.spec(), "a", "b", last_attempt=last_attempt)
    assert (answer.unreachable, answer.retryable, answer.error) == (True, True, "connection refused")


def dropped(trial: Trial) -> Completion:
    return Completion(trial_id=trial.trial_id, error="connection refused", finish_reason="error", retryable=True)


def test_an_endpoint_that_answers_some_trials_is_not_away(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        shards, "open_backend",
        lambda spec, settings: Scripted(lambda trial: dropped(trial) if trial.prompt == "b" else counted(trial, 1, 1)),
    )  # fmt: skip
    answer = worker.run(worker.spec(), "a", "b")
    assert (answer.unreachable, answer.retryable) == (False, True)


class Gated:
    """A backend that answers a shard whose first prompt is the name of a gate when that is opened."""

    def __init__(self, *gates: str) -> None:
        self._gates = {name: asyncio.Event() for name in gates}
        self.asked = 0

    def open(self, name: str) -> None:
        tasks._worker().loop.call(self._gates[name].set)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        self.asked += 1
        if trials[0].prompt in self._gates:
            await self._gates[trials[0].prompt].wait()
        return [counted(trial, 1, 1) for trial in trials]

    async def close(self) -> None: ...


@pytest.fixture
def gated(monkeypatch: pytest.MonkeyPatch) -> Gated:
    backend = Gated("slow", "slow, too")
    monkeypatch.setattr(shards, "open_backend", lambda spec, settings: backend)
    return backend


def test_what_is_done_long_before_the_last_shard_is_told_at_once(
    worker: Worker, gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_TOGETHER_S", 0.01)
    told: list[ShardsAnswered] = []

    def send(message: ShardsAnswered) -> None:
        told.append(message)
        if sum(len(answered.answers) for answered in told) == 2:
            gated.open("slow")

    monkeypatch.setattr(tasks, "send", send)
    tasks.run_shards(worker.message(worker.spec(), worker.put("quick"), worker.put("slow"), worker.put("quick, too")))
    assert len(told) >= 2
    assert [answer.shard_id for answer in told[-1].answers] == ["s2"]
    assert {answer.shard_id for answered in told for answer in answered.answers} == {"s1", "s2", "s3"}


def test_shards_that_are_done_together_are_told_in_one_message(worker: Worker, gated: Gated) -> None:
    tasks.run_shards(worker.message(worker.spec(), *[worker.put(str(number)) for number in range(16)]))
    (told,) = worker.sent
    assert isinstance(told, ShardsAnswered)
    assert len(told.answers) == 16


def test_messages_of_several_threads_share_one_loop(worker: Worker, gated: Gated) -> None:
    names = ("slow", "slow, too")
    messages = [worker.message(worker.spec(), worker.put(name)) for name in names]
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(tasks.run_shards, message) for message in messages]
        wait_until(lambda: gated.asked == 2, what="both to be asked")
        for name in names:
            gated.open(name)
        for future in running:
            future.result()
    assert len(worker.sent) == 2
    assert sum(thread.name == "inference-loop" for thread in threading.enumerate()) == 1


def test_a_worker_that_leaves_hands_back_what_is_asked_and_what_comes_later_and_keeps_what_is_answered(
    worker: Worker, gated: Gated
) -> None:
    message = worker.message(worker.spec(), worker.put("quick"), worker.put("slow"))
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(tasks.run_shards, message)
        wait_until(lambda: any(answer.shard_id == "s1" for answer in worker.told()), what="the quick shard")
        tasks._worker().attempts.hand_back()
        running.result()
    quick, slow = sorted(worker.told(), key=lambda answer: answer.shard_id)
    assert quick.completions is not None
    assert (slow.handed_back, slow.retryable, slow.error) == (True, True, "the worker left before it was answered")
    worker.sent.clear()
    late = worker.run(worker.spec(), "quick")
    assert (late.handed_back, late.error) == (True, "the worker left before it asked")


def test_what_is_in_hand_is_on_record_while_it_is_asked_and_not_afterwards(
    worker: Worker, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, seen = Held("a1", "answer", "s1", 2), list[set[Held]]()

    def answer(trial: Trial) -> Completion:
        seen.append(presence.begun([held]))
        return counted(trial, 1, 1)

    monkeypatch.setattr(shards, "open_backend", lambda spec, settings: Scripted(answer))
    worker.run(worker.spec(), "a")
    assert seen == [{held}]
    assert presence.begun([held]) == set()


def test_shards_whose_answer_cannot_be_sent_are_lost_at_once(
    worker: Worker, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(_: Message) -> None:
        raise ConnectionError("the broker is away")

    monkeypatch.setattr(tasks, "send", send)
    with pytest.raises(ConnectionError):
        tasks.run_shards(worker.message(worker.spec(), worker.put("a"), worker.put("b")))
    assert presence.lost() == [Held("a1", "answer", "s1", 2), Held("a1", "answer", "s2", 2)]


def test_a_message_that_was_delivered_before_is_handed_back_unless_a_worker_has_begun_it(
    worker: Worker, presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "redelivered", lambda: True)
    presence.holding("a worker that died", [Held("a1", "answer", "s1", 2)])
    (answer,) = worker.answers(worker.message(worker.spec(), worker.put("a"), worker.put("b")))
    assert (answer.shard_id, answer.handed_back, answer.error) == ("s2", True, "no worker has begun it")
    presence.holding("a worker that died", [Held("a1", "answer", "s2", 2)])
    tasks.run_shards(worker.message(worker.spec(), worker.put("a"), worker.put("b")))
    assert worker.sent == []


def test_a_list_of_workers_that_does_not_answer_keeps_no_shard_from_being_asked(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Presence(f"redis://127.0.0.1:{free_port()}/0")
    monkeypatch.setattr(tasks, "worker_presence", lambda: away)
    assert worker.run(worker.spec(), "a").error is None
    monkeypatch.setattr(tasks, "redelivered", lambda: True)
    tasks.run_shards(worker.message(worker.spec(), worker.put("a")))
    assert worker.sent == []


def test_a_loop_that_ends_leaves_nobody_waiting(worker: Worker, gated: Gated) -> None:
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(tasks.run_shards, worker.message(worker.spec(), worker.put("slow")))
        wait_until(lambda: gated.asked == 1, what="the shard to be asked")
        tasks._worker().loop.stop()
        with pytest.raises(RuntimeError, match="the event loop ended"):
            running.result(10)
    tasks._made.cache_clear()


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
