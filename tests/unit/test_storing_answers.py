"""What a worker does with answers while the artifact store takes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import StoreError
from proctor.domain.messages import RunShards, ShardAnswer, ShardToRun
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker import attempts
from proctor.inference.worker.attempts import Attempts
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.inference.worker.shards import Backends
from proctor.router.plan import shard_of
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.settings import Settings


class _FullFor(LocalArtifacts):
    """A store on whose disk there is no room for so many writes."""

    def __init__(self, root: Path, times: int) -> None:
        super().__init__(root)
        self.times = times

    def put(self, data: bytes) -> str:
        if self.times > 0:
            self.times -= 1
            raise StoreError("No space left on device")
        return super().put(data)


class _Model(Backends):
    """Answers everything, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__(Settings(home=Path()))
        self.asked = 0

    async def answer(
        self,
        spec: EndpointSpec,
        trials: Sequence[Trial],
        decoding: Decoding,
        *,
        deadline_s: float,
        last_attempt: bool = True,
    ) -> list[Completion]:
        self.asked += 1
        return [Completion(trial_id=trial.trial_id, text="4") for trial in trials]


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[EventLoopThread]:
    monkeypatch.setattr(attempts, "_STORE_AGAIN_S", (0.0, 0.0, 0.0))
    thread = EventLoopThread()
    yield thread
    thread.stop()


def _answer(loop: EventLoopThread, store: _FullFor, model: _Model, times: int) -> ShardAnswer:
    trial = Trial(arm=Arm.CANONICAL, item_id="a", prompt="2 + 2?")
    shard = shard_of([trial])
    to_run = ShardToRun(shard_id=shard.shard_id, attempt=1, shard=put_model(store, shard))
    store.times = times
    message = RunShards(
        audit_id="audit-1",
        shards=(to_run,),
        endpoint=EndpointSpec(backend="in_process", url="in-process://sums", served_name="sums", model_version=None),
        decoding=Decoding(),
        deadline_s=10.0,
    )
    asking = Attempts(loop, model, store)
    try:
        ((answer,),) = asking.run(message)
    finally:
        asking.close()
    return answer


def test_answers_that_met_a_full_disk_are_stored_when_there_is_room_again(
    tmp_path: Path, loop: EventLoopThread
) -> None:
    model = _Model()
    answer = _answer(loop, _FullFor(tmp_path, 0), model, times=3)
    assert answer.completions is not None
    assert model.asked == 1


def test_a_disk_that_stays_full_is_told_as_a_failure_that_may_pass(tmp_path: Path, loop: EventLoopThread) -> None:
    answer = _answer(loop, _FullFor(tmp_path, 0), _Model(), times=4)
    assert answer.completions is None
    assert answer.error == "No space left on device"
    assert answer.retryable
