"""Inference workers that are asked to leave, stop, or die: real processes on a real broker, with a slow model."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from proctor.domain.messages import Priority
from proctor.inference.worker.leaving import Leaving
from proctor.runtime.redis.presence import Held, Presence
from tests.forwarder import forwarding
from tests.support import free_port, wait_until
from tests.worker_processes import HoldingModel, Home, flushed, holding_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them")

LONG_S, SHORT_S = "600", "1.5"


@pytest.fixture
def model() -> Iterator[HoldingModel]:
    with holding_model() as model:
        yield model


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/12") as url:
        yield url


def home(folder: Path, broker: str, grace_s: str, **environment: str) -> Home:
    folder.mkdir()
    return Home(folder, broker, PROCTOR_GRACE_S=grace_s, **environment)


def nothing_is_left(broker: str) -> None:
    """No message is in a queue or in anybody's hand."""
    with redis.Redis.from_url(broker, decode_responses=True) as client:
        assert not {"inference", "inference.high", "inference.low", "unacked"} & set(client.keys())


def test_what_is_done_within_the_grace_is_answered_and_the_worker_is_gone(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    place = home(tmp_path / "a", broker, LONG_S)
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1", "s2")
        place.send_shards(model.url, "s3")
        wait_until(lambda: model.held == 3, what="three shards at the model")
        worker.signal(signal.SIGTERM)
        wait_until(lambda: "Warm shutdown" in worker.log, what="the worker to leave")
        model.release()
        assert worker.left() == 0
    answers = place.answers(3)
    assert {answer.shard_id for answer in answers} == {"s1", "s2", "s3"}
    assert [answer.error for answer in answers] == [None] * 3
    with place.presence() as presence:
        assert presence.slots("inference") == 0
        assert presence.lost() == []


def test_a_message_that_comes_while_a_worker_leaves_is_answered_by_it_or_by_the_next_one(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    place = home(tmp_path / "a", broker, LONG_S)
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1")
        wait_until(lambda: model.held == 1, what="a shard at the model")
        worker.signal(signal.SIGTERM)
        for number in range(2, 6):
            place.send_shards(model.url, f"s{number}")
        model.release()
        assert worker.left() == 0
    with place.worker("inference"):
        answers = place.answers(5)
    assert {answer.shard_id for answer in answers} == {"s1", "s2", "s3", "s4", "s5"}
    assert {answer.error for answer in answers} <= {None, "no worker has begun it"}
    nothing_is_left(broker)


def test_what_is_not_done_within_the_grace_is_handed_back_and_another_worker_does_it(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    place = home(tmp_path / "a", broker, SHORT_S)
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1", "s2")
        wait_until(lambda: model.held == 2, what="two shards at the model")
        worker.signal(signal.SIGTERM)
        assert worker.left() == 0
    answers = place.answers(2)
    assert [(answer.handed_back, answer.retryable) for answer in answers] == [(True, True)] * 2
    assert {answer.error for answer in answers} == {"the worker left before it was answered"}
    nothing_is_left(broker)
    model.release()
    other = home(tmp_path / "b", broker, SHORT_S, PROCTOR_ARTIFACTS=place.settings.artifacts)
    with other.worker("inference"):
        place.send_shards(model.url, "s1", "s2", attempt=2)
        again = place.answers(2)
    assert {(answer.shard_id, answer.attempt, answer.error) for answer in again} == {("s1", 2, None), ("s2", 2, None)}


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_has_everything_handed_back_at_once(
    tmp_path: Path, broker: str, model: HoldingModel, second: signal.Signals
) -> None:
    place = home(tmp_path / "a", broker, LONG_S)
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1")
        wait_until(lambda: model.held == 1, what="a shard at the model")
        worker.signal(signal.SIGTERM)
        wait_until(lambda: "Warm shutdown" in worker.log, what="the worker to leave")
        worker.signal(second)
        assert worker.left() == 0
    assert [answer.handed_back for answer in place.answers(1)] == [True]
    nothing_is_left(broker)


def test_an_idle_worker_leaves_before_its_grace_is_over(tmp_path: Path, broker: str) -> None:
    place = home(tmp_path / "a", broker, LONG_S)
    with place.worker("inference", "--concurrency", "3") as worker, place.presence() as presence:
        wait_until(lambda: presence.slots("inference") == 3, what="the worker's slots")
        worker.signal(signal.SIGTERM)
        assert worker.left() == 0
        wait_until(lambda: presence.slots("inference") == 0, what="the worker to be gone from the list")


def test_the_most_urgent_queue_is_emptied_first(tmp_path: Path, broker: str, model: HoldingModel) -> None:
    place = home(tmp_path / "a", broker, LONG_S)
    model.release()
    for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH):
        place.send_shards(model.url, f"{priority}-1", priority=priority)
        place.send_shards(model.url, f"{priority}-2", priority=priority)
    with place.worker("inference", "--concurrency", "1"):
        answers = place.answers(6)
    assert [answer.shard_id for answer in answers] == ["high-1", "high-2", "normal-1", "normal-2", "low-1", "low-2"]


def test_what_a_killed_worker_had_in_hand_is_lost_and_nothing_else(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    place = home(tmp_path / "a", broker, LONG_S, PROCTOR_PRESENCE_S="1")
    presence = Presence(broker, silence=timedelta(seconds=1))
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1", "s2")
        wait_until(lambda: model.held == 2, what="two shards at the model")
        assert presence.lost() == []
        worker.signal(signal.SIGKILL)
        wait_until(lambda: presence.lost() != [], what="the loss to be seen")
    assert presence.lost() == [Held("a1", "answer", "s1", 1), Held("a1", "answer", "s2", 1)]
    presence.close()


def test_a_worker_that_was_stopped_for_a_while_is_missed_and_then_back(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    place = home(tmp_path / "a", broker, LONG_S, PROCTOR_PRESENCE_S="1")
    presence = Presence(broker, silence=timedelta(seconds=1))
    with place.worker("inference") as worker:
        place.send_shards(model.url, "s1")
        wait_until(lambda: model.held == 1, what="a shard at the model")
        worker.signal(signal.SIGSTOP)
        wait_until(lambda: presence.lost() == [Held("a1", "answer", "s1", 1)], what="the loss to be seen")
        wait_until(lambda: presence.slots("inference") == 0, what="its slots to be gone")
        worker.signal(signal.SIGCONT)
        wait_until(lambda: presence.lost() == [], what="the worker to be back")
        wait_until(lambda: presence.slots("inference") == 4, what="its slots to be back")
        model.release()
        assert [answer.error for answer in place.answers(1)] == [None]
    presence.close()


def test_a_worker_whose_broker_goes_away_tells_what_it_had_in_hand_when_it_is_back_and_goes_on(
    tmp_path: Path, broker: str, model: HoldingModel
) -> None:
    server = urlsplit(broker)
    assert server.port is not None
    with forwarding(server.port) as forwarder:
        forwarded = f"redis://127.0.0.1:{forwarder.port}{server.path}"
        place = home(tmp_path / "a", broker, LONG_S, PROCTOR_BROKER_URL=forwarded)
        with place.worker("inference") as worker:
            place.send_shards(model.url, "s1")
            wait_until(lambda: model.held == 1, what="a shard at the model")
            forwarder._target = free_port()
            forwarder.drop()
            wait_until(lambda: "Cannot connect to redis" in worker.log, what="the worker to miss its broker")
            forwarder._target = server.port
            model.release()
            assert [answer.error for answer in place.answers(1)] == [None]
            place.send_shards(model.url, "s2")
            assert [answer.error for answer in place.answers(1)] == [None]
            worker.signal(signal.SIGTERM)
            assert worker.left() == 0


def test_a_process_whose_task_does_not_end_is_ended_when_the_grace_is_over() -> None:
    handed_back, ended = threading.Event(), threading.Event()
    leaving = Leaving(0.03, handed_back.set, end=ended.set)
    leaving.begin()
    assert handed_back.wait(10)
    assert ended.wait(10)


def test_hands_are_kept_on_the_work_until_the_grace_is_nearly_over_or_somebody_hurries() -> None:
    handed_back = threading.Event()
    leaving = Leaving(600.0, handed_back.set, end=lambda: None)
    leaving.begin()
    assert not handed_back.wait(0.05)
    leaving.begin()
    assert handed_back.wait(10)


def test_a_signal_that_comes_while_the_one_before_is_handled_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers of signals nest: the second runs between two steps of the first."""
    handed_back = threading.Event()
    leaving = Leaving(600.0, handed_back.set, end=lambda: None)
    second = [leaving.begin]

    class Interrupted(threading.Thread):
        def __init__(self, **arguments: Any) -> None:
            if second:
                second.pop()()
            super().__init__(**arguments)

    monkeypatch.setattr(threading, "Thread", Interrupted)
    leaving.begin()
    assert handed_back.wait(10)
