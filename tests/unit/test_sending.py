"""Sending messages while the broker's connections break."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.domain.messages import TakeOn
from proctor.runtime import tasks


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
    monkeypatch.setattr(tasks.time, "sleep", lambda _: None)
    tasks.send(TakeOn(audit_id="a"))
    assert sent == ["router.take_on"] * 2


def test_a_channel_that_is_closed_time_and_again_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.app, "send_task", lambda *_, **__: _publish_on_a_closed_channel())
    monkeypatch.setattr(tasks.time, "sleep", lambda _: None)
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
