"""Decisions on their way: what a worker must know of their exchange although it has nothing to do with decisions."""

from __future__ import annotations

from types import SimpleNamespace

from celery import Celery

from proctor.runtime.messaging.events import EXCHANGE, KnowsTheExchange


def test_a_worker_that_puts_back_what_another_had_in_hand_knows_that_decisions_go_by_topic(valkey_url: str) -> None:
    with Celery("test", broker=f"{valkey_url}/3") as app, app.connection_for_write() as connection:
        channel = connection.default_channel
        assert channel.typeof(EXCHANGE.name).type == "direct"
        worker = SimpleNamespace(connection=connection)
        KnowsTheExchange(worker).start(worker)
        assert channel.typeof(EXCHANGE.name).type == "topic"
