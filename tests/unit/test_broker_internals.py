"""What Proctor stands on in kombu, Celery and redis-py that they do not promise is there, and of the form expected.

Their versions have ceilings in pyproject.toml for its sake. Whoever raises one learns here what was moved or renamed;
what it does is shown by real workers in tests/integration/test_foreign_entries.py, test_worker_parts.py, test_events.py
and tests/hostile/test_refused_writes.py.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final

import celery.apps.worker
import celery.beat
import celery.concurrency.prefork
import celery.concurrency.thread
import celery.schedules
import celery.worker.consumer.consumer
import celery.worker.state
import celery.worker.worker
import kombu.asynchronous.timer
import kombu.common
import kombu.message
import pytest
import redis
from celery import bootsteps
from kombu import Connection
from kombu.transport import redis as redis_transport
from kombu.transport.virtual import base as virtual
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from redis._parsers.base import BaseParser

from proctor.runtime.messaging.broker_loss import SurvivesItsBroker
from proctor.runtime.messaging.events import KnowsTheExchange
from proctor.runtime.messaging.foreign_entries import PutsAsideForeignTasks
from proctor.runtime.messaging.tasks import configure
from proctor.runtime.messaging.worker_parts import Timetable
from proctor.runtime.settings import Settings
from tests.support import REPOSITORY

_QoS, _Channel, _Transport = redis_transport.QoS, redis_transport.Channel, redis_transport.Transport
_Consumer: Final = celery.worker.consumer.consumer.Consumer
#: Each with the parameters that it is called with, or overridden by, in this order.
_FUNCTIONS: Final[tuple[tuple[Callable[..., Any], tuple[str, ...]], ...]] = (
    # foreign_entries, sole_worker
    (_QoS.restore_by_tag, ("self", "tag", "client", "leftmost")),
    (_QoS._remove_from_indices, ("self", "delivery_tag", "pipe")),
    # foreign_entries, broker_loss
    (_QoS.ack, ("self", "delivery_tag")),
    (_QoS.reject, ("self", "delivery_tag", "requeue")),
    (_QoS.restore_unacked, ("self", "client")),
    # foreign_entries
    (_Channel._create_client, ("self", "asynchronous")),
    (_Channel.basic_consume, ("self", "queue")),
    (virtual.Channel.basic_consume, ("self", "queue", "no_ack", "callback", "consumer_tag")),
    (redis.Redis.parse_response, ("self", "connection", "command_name", "options")),
    (_Consumer.on_decode_error, ("self", "message", "exc")),
    (_Consumer.on_unknown_message, ("self", "body", "message")),
    (_Consumer.on_unknown_task, ("self", "body", "message", "exc")),
    (_Consumer.on_invalid_task, ("self", "body", "message", "exc")),
    # events
    (_Channel.get_table, ("self", "exchange")),
    (virtual.BrokerState.queue_bindings_delete, ("self", "queue")),
    # versions
    (kombu.common.QoS.increment_eventually, ("self", "n")),
    (kombu.common.QoS.decrement_eventually, ("self", "n")),
    (kombu.asynchronous.timer.Timer.call_after, ("self", "secs", "fun", "args")),
    (kombu.message.Message.ack_log_error, ("self", "logger", "errors")),
    # logs/configuring: written to in signal handlers, and taken the place of
    (celery.apps.worker.safe_say, ("msg", "f")),
    # worker_parts
    (celery.beat.EmbeddedService, ("app",)),
    (celery.beat.Service.__init__, ("self", "app")),
    (celery.beat.Service.stop, ("self", "wait")),
    # steady_schedule
    (celery.schedules.schedule.now, ("self",)),
    (celery.schedules.schedule.is_due, ("self", "last_run_at")),
    (celery.schedules.schedule.maybe_make_aware, ("self", "dt")),
)


@pytest.mark.parametrize(("function", "parameters"), _FUNCTIONS, ids=[one.__qualname__ for one, _ in _FUNCTIONS])
def test_a_function_that_is_called_or_overridden_has_its_parameters(
    function: Callable[..., Any], parameters: tuple[str, ...]
) -> None:
    assert tuple(inspect.signature(function).parameters)[: len(parameters)] == parameters


def test_the_redis_transport_makes_its_channels_of_the_class_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        def __init__(self, connection: Any) -> None:
            pass

    monkeypatch.setattr(_Transport, "Channel", Named)
    transport = _Transport(Connection("redis://127.0.0.1:1"))
    assert isinstance(transport.create_channel(transport), Named)
    assert _Channel.QoS is _QoS


def test_what_a_broker_pops_goes_through_its_clients_parse_response_with_the_commands_name() -> None:
    asked = list[tuple[object, ...]]()
    client = SimpleNamespace(connection="connection", parse_response=lambda *arguments, **_: asked.append(arguments))
    with pytest.raises(redis_transport.Empty):
        _Channel._brpop_read(SimpleNamespace(client=client, connection_errors=(), _flush_brpop_reauth=lambda: None))
    assert asked == [("connection", "BRPOP")]


def test_a_consumers_callback_stands_under_its_queue_and_a_closed_channel_has_no_transport_with_a_client() -> None:
    with Connection("memory://") as connection:
        channel = connection.channel()
        taken = list[object]()
        channel.queue_declare("q")
        channel.basic_consume("q", no_ack=True, callback=taken.append, consumer_tag="c")
        assert getattr(channel.connection, "client", None) is connection
        assert callable(channel.connection._callbacks["q"])
        channel.close()
        assert getattr(channel.connection, "client", None) is None


def test_kombu_takes_a_missing_member_for_a_broker_that_is_away() -> None:
    assert KeyError in redis_transport.get_redis_error_classes().connection_errors
    assert redis.ConnectionError in redis_transport.get_redis_error_classes().connection_errors


def test_the_redis_transport_has_every_option_that_it_is_given(tmp_path: Any) -> None:
    options = configure(Settings(home=tmp_path)).conf.broker_transport_options
    assert set(options) <= {*_Channel.from_transport_options, "visibility_timeout", "unacked_restore_interval"}
    for name in options:
        assert hasattr(_Channel, name), name
    # The checker of chaos runs reads these keys, too.
    assert (_Channel.unacked_key, _Channel.unacked_index_key) == ("unacked", "unacked_index")


def test_a_consumer_looks_its_answers_to_foreign_entries_up_when_it_begins_to_consume() -> None:
    source = inspect.getsource(_Consumer.create_task_handler)
    for name in ("on_decode_error", "on_unknown_message", "on_unknown_task", "on_invalid_task"):
        assert f"self.{name}" in source, name


@pytest.mark.parametrize("step", [KnowsTheExchange, SurvivesItsBroker, PutsAsideForeignTasks, Timetable])
def test_a_step_comes_after_one_of_celerys_that_is_there(step: type[bootsteps.Step]) -> None:
    for required in step.requires:
        module, _, name = required.partition(":")
        assert issubclass(getattr(importlib.import_module(module), name), bootsteps.Step)


def test_a_worker_has_what_its_parts_are_looked_up_by() -> None:
    assert hasattr(celery.worker.state, "should_stop")
    assert hasattr(celery.worker.worker.WorkController, "exitcode")
    assert bootsteps.RUN != bootsteps.CLOSE
    # Threads: an executor that says when it is broken. Processes: billiard's pool, with its children in a list.
    threads = celery.concurrency.thread.TaskPool(limit=1)
    assert threads.executor._broken is False
    threads.executor.shutdown()
    assert "self._pool = Pool(" in inspect.getsource(celery.concurrency.prefork.TaskPool.on_start)
    billiard = importlib.import_module("billiard.pool")
    assert "self._pool = []" in inspect.getsource(billiard.Pool.__init__)


def test_the_timetable_is_a_thread_with_a_service_inside() -> None:
    app = celery.Celery("test")
    timetable = celery.beat.EmbeddedService(app, thread=True, scheduler_cls="celery.beat:Scheduler")
    assert timetable.daemon
    assert isinstance(timetable.service, celery.beat.Service)
    assert not timetable.is_alive()


def test_a_schedule_goes_by_its_own_clock() -> None:
    now = datetime(2001, 1, 1, tzinfo=UTC)

    class Standing(celery.schedules.schedule):  # type: ignore[misc]  # Celery has no type information
        def now(self) -> datetime:
            return now

    every = Standing(timedelta(seconds=30))
    assert every.is_due(now - timedelta(seconds=31)).is_due
    assert not every.is_due(now).is_due


def test_redis_py_makes_its_errors_by_a_table_of_their_first_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(redis.ConnectionError):
        pass

    monkeypatch.setitem(BaseParser.EXCEPTION_CLASSES, "NOREPLICAS", Refused)
    parse_error: Callable[[str], Exception] = BaseParser.parse_error
    assert isinstance(parse_error("NOREPLICAS Not enough good replicas to write."), Refused)
    assert {"OOM", "READONLY"} <= BaseParser.EXCEPTION_CLASSES.keys()


@pytest.mark.parametrize("name", ["celery", "kombu", "redis"])
def test_the_version_of_the_constraints_is_within_the_ceiling_and_so_is_the_one_here(name: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    (asked,) = (one for one in map(Requirement, project["dependencies"]) if canonicalize_name(one.name) == name)
    pins = dict(
        line.split("==") for line in (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines() if "==" in line
    )
    assert any(one.operator == "<" for one in asked.specifier), f"{name} has no ceiling"
    assert Version(pins[name]) in asked.specifier
    assert Version(importlib.metadata.version(name)) in asked.specifier, "these tests say nothing of another version"
