"""Sending and handling messages while the broker's connections break, or a store is away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from celery.exceptions import Ignore
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy.exc import DBAPIError as StatementError
from sqlalchemy.exc import OperationalError

from proctor.domain.errors import StoreError, StoreNotReadyError
from proctor.domain.messages import Message, TakeOn
from proctor.runtime.messaging import tasks


class _Closed:
    connection = None


def _publish_on_a_closed_channel() -> None:
    _Closed().connection.client  # type: ignore[attr-defined]  # noqa: B018  # as kombu does it


def test_a_message_whose_channel_was_closed_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()

    def send_task(task: str, **options: Any) -> None:
        sent.append(task)
        if len(sent) == 1:
            _publish_on_a_closed_channel()

    monkeypatch.setattr(tasks.app, "send_task", send_task)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    tasks.send(TakeOn(audit_id="a"))
    assert sent == ["router.take_on"] * 2


def test_a_channel_that_is_closed_time_and_again_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.app, "send_task", lambda *_, **__: _publish_on_a_closed_channel())
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(AttributeError, match="client"):
        tasks.send(TakeOn(audit_id="a"))


def test_a_defect_is_not_taken_for_a_closed_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()

    def send_task(task: str, **options: Any) -> None:
        sent.append(task)
        task.no_such_attribute  # type: ignore[attr-defined]  # noqa: B018

    monkeypatch.setattr(tasks.app, "send_task", send_task)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        tasks.send(TakeOn(audit_id="a"))
    assert len(sent) == 1


class _Handled(Message):
    task: ClassVar[str] = "router.handled_by_a_test"


@pytest.fixture
def no_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    yield
    tasks.app.tasks.unregister(_Handled.task)


@pytest.mark.parametrize("away", [StoreError("the ledger did not answer"), OperationalError("SELECT 1", {}, OSError())])
@pytest.mark.usefixtures("no_waits")
def test_a_step_that_a_store_did_not_let_end_is_taken_again(away: Exception) -> None:
    taken = list[Message]()

    def step(message: _Handled) -> None:
        taken.append(message)
        if len(taken) < 3:
            raise away

    tasks.handles(_Handled)(step)
    tasks.app.tasks[_Handled.task](message={})
    assert taken == [_Handled()] * 3


@pytest.mark.usefixtures("no_waits")
def test_a_step_that_a_store_never_lets_end_is_an_error() -> None:
    def step(message: _Handled) -> None:
        raise StoreError("the ledger did not answer")

    tasks.handles(_Handled)(step)
    with pytest.raises(StoreError, match="the ledger did not answer"):
        tasks.app.tasks[_Handled.task](message={})


@pytest.mark.parametrize(
    "outage",
    [
        BrokerError("Error 113 connecting to a broker: no route to host"),
        StoreNotReadyError("the record store does not answer"),
        StatementError("SELECT 1", {}, OSError(), connection_invalidated=True),
    ],
    ids=["broker", "store", "connection"],
)
@pytest.mark.usefixtures("no_waits")
def test_of_an_outage_nobody_is_told_as_if_the_step_had_failed(
    outage: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, sent = list[str](), list[Message]()
    monkeypatch.setattr(tasks, "send", sent.append)

    def step(message: _Handled) -> None:
        raise outage

    tasks.handles(_Handled, failed=lambda _, cause: told.append(cause))(step)
    with pytest.raises(Ignore):
        tasks.app.tasks[_Handled.task](message={})
    assert sent == [_Handled()]
    assert told == []


@pytest.mark.usefixtures("no_waits")
def test_of_what_a_store_lacks_somebody_is_told() -> None:
    told = list[str]()

    def step(message: _Handled) -> None:
        raise StoreError("artifact sha256:0 is not in the store")

    tasks.handles(_Handled, failed=lambda _, cause: told.append(cause))(step)
    tasks.app.tasks[_Handled.task](message={})
    assert told == ["artifact sha256:0 is not in the store"]
