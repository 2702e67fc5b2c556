"""Whether a worker gets on: what counts as a step, and when a probe says that there was none."""

from __future__ import annotations

import os

import pytest

from proctor.domain.errors import StoreError
from proctor.runtime import progress
from proctor.runtime.messaging.stall import Stall
from proctor.runtime.metrics.probe_pages import probe_page

STALL_S = 300.0
#: What a kubelet leaves between two probes.
PERIOD_S = 10.0


class Worker:
    """A worker as a probe sees it, and its clock."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0
        self.waiting = 0
        self.held = 0
        self.away = False
        self.step_s = 0.0
        self.quiet_until_s = 0.0
        self.stall = Stall(STALL_S, self._waiting, lambda: self.held, self, lambda: self.now_s)  # type: ignore[arg-type]

    def _waiting(self) -> int:
        if self.away:
            raise StoreError("away")
        return self.waiting

    def step(self, quiet_for_s: float = 0.0) -> None:
        self.step_s = self.now_s
        self.quiet_until_s = max(self.quiet_until_s, self.now_s + quiet_for_s)

    def probed_for(self, seconds: float) -> str | None:
        """What the last of the probes says."""
        found = self.stall.look()
        for _ in range(int(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            found = self.stall.look()
        return found


def test_a_worker_that_takes_nothing_of_a_full_queue_is_stalled_after_its_time_and_not_before() -> None:
    worker = Worker()
    worker.waiting = 3
    assert worker.probed_for(STALL_S) is None
    assert worker.probed_for(PERIOD_S) == "no progress for 310 s, with 3 messages waiting and 0 in hand"


def test_a_worker_without_work_is_never_stalled() -> None:
    worker = Worker()
    assert worker.probed_for(100 * STALL_S) is None


def test_what_comes_after_a_long_idleness_has_its_full_time() -> None:
    worker = Worker()
    worker.step()
    assert worker.probed_for(10 * STALL_S) is None
    worker.waiting = 1
    assert worker.probed_for(STALL_S) is None


def test_a_queue_that_was_empty_once_in_between_begins_anew() -> None:
    worker = Worker()
    worker.waiting = 1
    assert worker.probed_for(STALL_S - PERIOD_S) is None
    worker.waiting = 0
    assert worker.probed_for(PERIOD_S) is None
    worker.waiting = 1
    assert worker.probed_for(STALL_S - PERIOD_S) is None


def test_two_looks_that_lie_far_apart_do_not_make_a_stall() -> None:
    worker = Worker()
    worker.waiting = 1
    assert worker.stall.look() is None
    worker.now_s += 3600
    assert worker.stall.look() is None
    worker.step()
    worker.now_s += 3600
    assert worker.stall.look() is None


def test_a_task_that_takes_steps_may_take_long() -> None:
    worker = Worker()
    worker.held = 1
    for _ in range(20):
        worker.step()
        assert worker.probed_for(STALL_S - PERIOD_S) is None


def test_a_task_that_takes_none_is_stalled() -> None:
    worker = Worker()
    worker.held = 1
    worker.step()
    assert "0 messages waiting and 1 in hand" in str(worker.probed_for(STALL_S + PERIOD_S))


def test_a_shard_may_wait_for_its_endpoint_until_its_deadline() -> None:
    worker = Worker()
    worker.held = 1
    worker.step(quiet_for_s=720)
    assert worker.probed_for(720 + STALL_S) is None
    assert worker.probed_for(PERIOD_S) is not None


def test_the_deadline_of_a_shard_that_was_answered_says_nothing_of_a_worker_that_takes_no_other() -> None:
    worker = Worker()
    worker.waiting = 5
    worker.step(quiet_for_s=720)
    assert worker.probed_for(STALL_S + PERIOD_S) is not None


def test_a_worker_whose_broker_is_away_is_not_stalled_and_has_its_full_time_once_it_is_back() -> None:
    worker = Worker()
    worker.held = worker.waiting = 1
    assert worker.probed_for(STALL_S - PERIOD_S) is None
    worker.away = True
    assert worker.probed_for(10 * STALL_S) is None
    worker.away = False
    assert worker.probed_for(STALL_S) is None
    assert worker.probed_for(PERIOD_S) is not None


def test_a_step_of_a_forked_process_is_its_workers() -> None:
    shared = progress.Progress()
    progress.note_in(shared)
    try:
        pid = os.fork()
        if pid == 0:
            with progress.handling():
                progress.note_step(quiet_for_s=60)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert 59 < shared.quiet_until_s - shared.step_s <= 60
    finally:
        progress.note_in(None)


def test_what_happens_beside_a_message_is_no_step_of_one() -> None:
    shared = progress.Progress()
    progress.note_in(shared)
    try:
        progress.note_step(quiet_for_s=5)
        assert (shared.step_s, shared.quiet_until_s) == (0, 0)
        with pytest.raises(KeyError), progress.handling():
            raise KeyError
        assert shared.step_s > 0
    finally:
        progress.note_in(None)


def test_a_shorter_wait_does_not_end_a_longer_one() -> None:
    shared = progress.Progress()
    shared.note(quiet_for_s=60)
    until_s = shared.quiet_until_s
    shared.note(quiet_for_s=1)
    assert shared.quiet_until_s == until_s


def test_a_page_says_the_reason_and_looks_once_for_all_that_ask() -> None:
    found: list[str | None] = ["it is torn", None]
    looks = iter(found)
    page, said = probe_page(lambda: next(looks), fresh_s=3600), list[str]()

    def started(status: str, headers: list[tuple[str, str]]) -> None:
        said.append(status)

    assert b"".join(page({}, started)) == b"it is torn\n"
    assert b"".join(page({}, started)) == b"it is torn\n"
    assert said == ["503 Service Unavailable"] * 2
    fine = probe_page(lambda: None)
    assert (b"".join(fine({}, started)), said[-1]) == (b"ok\n", "200 OK")
