"""The seed by which a worker asks each replicate of a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.messages import RunShards, ShardToRun
from proctor.domain.replicates import of_replicate
from proctor.domain.suite import PromptSection
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.attempts import Attempts
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.inference.worker.shards import Backends
from proctor.router.plan import plan_shards, plan_trials, replicated
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.settings import Settings
from tests.unit.test_plan import item, variant


class _Model(Backends):
    """Answers everything, and notes by which decoding it was asked what."""

    def __init__(self) -> None:
        super().__init__(Settings(home=Path()))
        self.asked: list[tuple[Decoding, tuple[Trial, ...]]] = []

    async def answer(
        self,
        spec: EndpointSpec,
        trials: Sequence[Trial],
        decoding: Decoding,
        *,
        deadline_s: float,
        last_attempt: bool = True,
    ) -> list[Completion]:
        self.asked.append((decoding, tuple(trials)))
        return [Completion(trial_id=trial.trial_id, text="4") for trial in trials]


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    thread = EventLoopThread()
    yield thread
    thread.stop()


def _seeds(loop: EventLoopThread, folder: Path, *, seed: int | None, replicates: int) -> dict[int, set[int | None]]:
    """Replicate → the seeds by which it was asked, over an audit of forty items."""
    store, model = LocalArtifacts(folder), _Model()
    items = [item(number) for number in range(40)]
    trials = plan_trials(items, [variant(one, 1) for one in items], PromptSection())
    shards = list(plan_shards(replicated(trials, replicates), shard_trials=32, replicates_apart=True))
    message = RunShards(
        audit_id="audit-1",
        shards=tuple(ShardToRun(shard_id=one.shard_id, attempt=1, shard=put_model(store, one)) for one in shards),
        endpoint=EndpointSpec(backend="in_process", url="in-process://sums", served_name="sums", model_version=None),
        decoding=Decoding(temperature=0.7, seed=seed),
        deadline_s=10.0,
        replicates=replicates,
    )
    asking = Attempts(loop, model, store)
    try:
        answers = [answer for batch in asking.run(message) for answer in batch]
    finally:
        asking.close()
    assert len(answers) == len(shards)
    found: dict[int, set[int | None]] = {}
    for decoding, asked in model.asked:
        for trial in asked:
            found.setdefault(trial.replicate, set()).add(decoding.seed)
    assert sum(len(asked) for _, asked in model.asked) == 80 * replicates
    return found


@pytest.mark.parametrize("seed", [None, 0, 11])
def test_each_replicate_is_asked_by_the_one_seed_that_the_suite_s_decides(
    loop: EventLoopThread, tmp_path: Path, seed: int | None
) -> None:
    decoding = Decoding(temperature=0.7, seed=seed)
    expected = {number: {of_replicate(decoding, number).seed} for number in range(4)}
    assert _seeds(loop, tmp_path, seed=seed, replicates=4) == expected


@pytest.mark.parametrize("seed", [None, 11])
def test_what_is_asked_once_is_asked_as_the_suite_says(loop: EventLoopThread, tmp_path: Path, seed: int | None) -> None:
    assert _seeds(loop, tmp_path, seed=seed, replicates=1) == {0: {seed}}
