"""The notifier on real stores, a real broker and real servers: told once, whoever dies, races or delivers twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import redis
import sqlalchemy as sa
from celery import Celery

from proctor.cli.main import main
from proctor.domain.errors import BadInputError
from proctor.domain.notify.settings import NotifySettings
from proctor.domain.record.entry import EntryKind
from proctor.notifier.tasks import check_settings
from proctor.notifier.telling import RETRY_WAITS_S, Notifier
from proctor.runtime.messaging.events import EXCHANGE, NOTIFIER_QUEUE, publish_decision
from proctor.runtime.records.decision_log import NoKey, append
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.outbox import NotificationState
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import NOTIFICATIONS
from proctor.runtime.settings import Settings
from tests.integration.test_cloud_events import SECRETS, receiver
from tests.mail_and_chat import SECRET, Chat, Mailbox, chat_server, mail_server
from tests.record_samples import an_event
from tests.support import wait_until
from tests.worker_processes import Home

SUITE = {"governance": {"notify_on_failure": ["owner@example.org", "else@evil.example"]}}


@pytest.fixture
def chat() -> Iterator[Chat]:
    with chat_server() as server:
        yield server


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as server:
        yield server


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    """An emptied database of the test server: the queues' names are fixed."""
    url = f"{valkey_url}/8"
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


def decide(records: Records, subject: str, suite: dict[str, Any] | None = None, outcome: str = "block") -> str:
    audit_id = records.create_audit(subject, json.dumps(suite or {}), {}).audit_id
    assert records.decide(audit_id, an_event(audit_id, outcome=outcome))
    return audit_id


def states(records: Records) -> dict[str, NotificationState]:
    return {one.name: one.state for one in records.outbox.listed()}


def let_time_pass(records: Records) -> None:
    """Whatever waits is due, and every claim is over."""
    with records._engine.begin() as connection:
        connection.execute(sa.update(NOTIFICATIONS).values(due_at=0))


def notifier(records: Records, chat: Chat, mailbox: Mailbox | None = None, sink: str | None = None) -> Notifier:
    return Notifier(records, NotifySettings.model_validate(said(chat, mailbox, sink)), dashboard=None)


def said(chat: Chat, mailbox: Mailbox | None = None, sink: str | None = None) -> dict[str, Any]:
    targets: dict[str, Any] = {"chat": f"{chat.url}?rto=1"}
    if sink is not None:
        targets["sink"] = {"cloudevents": sink, "secrets": SECRETS}
    mail = {} if mailbox is None else {"mail": {"server": mailbox.url, "domains": ["example.org"]}}
    return {"targets": targets, "rules": [{"to": list(targets)}], **mail}


def test_a_block_is_told_to_the_operator_s_targets_and_to_whom_the_suite_may_name(
    records_url: str, chat: Chat, mailbox: Mailbox
) -> None:
    with closing(Records(records_url)) as records, receiver(200) as (url, got):
        audit_id = decide(records, "a", SUITE)
        telling = notifier(records, chat, mailbox, url)
        assert [telling.tell(audit_id), telling.tell(audit_id)] == [3, 0]
        assert telling.deliver() == 3
        assert telling.deliver() == 0
        assert set(states(records).values()) == {NotificationState.SENT}
    assert mailbox.recipients == ["owner@example.org"]
    assert len(chat.messages) == 1
    (event,) = got
    assert event.body is not None
    assert json.loads(event.body)["data"] == an_event(audit_id, outcome="block")


def test_a_chat_that_fails_is_told_again_until_it_takes_it_or_too_often(records_url: str, chat: Chat) -> None:
    with closing(Records(records_url)) as records:
        telling = notifier(records, chat)
        telling.tell(decide(records, "a"))
        chat.answers = [500, 503]
        for tried in (1, 2):
            assert telling.deliver() == 1
            (waiting,) = records.outbox.listed()
            assert (waiting.state, waiting.tries) == (NotificationState.WAITING, tried)
            assert telling.deliver() == 0
            let_time_pass(records)
        assert telling.deliver() == 1
        assert states(records) == {"chat": NotificationState.SENT}
        telling.tell(decide(records, "b"))
        chat.answers = [500] * 20
        for _ in range(len(RETRY_WAITS_S) + 1):
            assert telling.deliver() == 1
            let_time_pass(records)
        assert telling.deliver() == 0
        (failed,) = records.outbox.listed(states=[NotificationState.FAILED])
        assert failed.detail == "it was answered with HTTP 500"
    assert len(chat.messages) == 1


@pytest.mark.parametrize("answer", ["drop", "hold"])
def test_a_chat_that_falls_silent_is_never_told_twice_by_itself(records_url: str, chat: Chat, answer: str) -> None:
    with closing(Records(records_url)) as records:
        telling = notifier(records, chat)
        telling.tell(decide(records, "a"))
        chat.answers = [answer]
        assert telling.deliver() == 1
        assert states(records) == {"chat": NotificationState.UNKNOWN}
        let_time_pass(records)
        assert telling.deliver() == 0
    assert len(chat.messages) == 1


def test_a_sink_that_falls_silent_is_sent_the_same_event_again(records_url: str, chat: Chat) -> None:
    with closing(Records(records_url)) as records, receiver(500, 200) as (url, got):
        telling = notifier(records, chat, sink=url)
        telling.tell(decide(records, "a"))
        telling.deliver()
        let_time_pass(records)
        telling.deliver()
        assert states(records)["sink"] is NotificationState.SENT
    assert got[0].headers["webhook-id"] == got[1].headers["webhook-id"]
    assert got[0].body == got[1].body


def test_a_target_that_is_gone_is_said_to_have_failed(records_url: str, chat: Chat) -> None:
    with closing(Records(records_url)) as records:
        notifier(records, chat).tell(decide(records, "a"))
        Notifier(records, NotifySettings(), dashboard=None).deliver()
        (failed,) = records.outbox.listed()
        assert (failed.state, failed.detail) == (NotificationState.FAILED, "the operator has no such target any more")


def test_a_decision_whose_event_was_lost_is_told_of_by_the_log_and_no_older_one(records_url: str, chat: Chat) -> None:
    with closing(Records(records_url)) as records:
        decide(records, "before")
        telling = notifier(records, chat)
        telling.catch_up()
        assert records.outbox.listed() == []
        told = [decide(records, subject) for subject in ("a", "b")]
        with records._engine.begin() as connection:
            # What an entry tells of may be nothing that this version reads, and stands in nobody's way.
            append(connection, EntryKind.DECISION, "nobody-1", {"odd": True}, time="", key=NoKey("a test"))
        told.append(decide(records, "c"))
        telling.catch_up()
        assert sorted(one.audit_id for one in records.outbox.listed()) == told
        telling.catch_up()
        assert len(records.outbox.listed()) == 3


def publish(broker_url: str, records: Records, audit_id: str) -> None:
    event = records.decision(audit_id)
    assert event is not None
    with Celery("publisher", broker=broker_url, set_as_current=False) as publisher:
        publish_decision(decision_of(audit_id, event), publisher, [NOTIFIER_QUEUE])


def test_the_worker_tells_once_of_an_event_that_comes_again_and_puts_aside_what_is_none(
    tmp_path: Path, broker: str, chat: Chat, mailbox: Mailbox
) -> None:
    home = home_of(tmp_path, broker, said(chat, mailbox))
    with closing(Records(f"sqlite:///{tmp_path / 'records.sqlite'}")) as records:
        audit_id = decide(records, "a", SUITE)
        for _ in range(2):
            publish(broker, records, audit_id)
        publisher = Celery("publisher", broker=broker, set_as_current=False)
        with publisher, publisher.producer_or_acquire() as producer:
            for body in ({"outcome": "approve"}, ["\x1b[2J"], {"auditId": "no-such-1"}):
                producer.publish(body, exchange=EXCHANGE, routing_key="decision.x", declare=[NOTIFIER_QUEUE])
        with home.worker("notifier") as worker:
            wait_until(lambda: set(states(records).values()) == {NotificationState.SENT}, what="the notifications")
            publish(broker, records, audit_id)
            last = decide(records, "b")
            publish(broker, records, last)
            wait_until(lambda: len(chat.messages) == 2, what="the second decision")
            wait_until(lambda: "no-such-1, which has no decision" in worker.log, what="the forged event")
    assert mailbox.recipients == ["owner@example.org"]
    assert len(chat.messages) == 2
    assert worker.log.count("dead-lettered") == 2
    assert "else@evil.example, whom its suite names, is not told" in worker.log
    assert SECRET not in worker.log
    assert "\x1b[2J" not in worker.log


def test_what_a_killed_worker_left_is_unknown_listed_and_sent_again_on_purpose(
    tmp_path: Path, broker: str, chat: Chat, command: Commands
) -> None:
    home = home_of(tmp_path, broker, said(chat) | {"targets": {"chat": f"{chat.url}?rto=60"}})
    with closing(Records(f"sqlite:///{tmp_path / 'records.sqlite'}")) as records:
        audit_id = decide(records, "a")
        chat.answers = ["hold"]
        publish(broker, records, audit_id)
        with home.worker("notifier") as worker:
            assert chat.held.wait(20)
            worker.signal(signal.SIGKILL)
            worker.left()
        assert states(records) == {"chat": NotificationState.SENDING}
        # The broker gives the task to the next worker, and somebody publishes the event once more.
        publish(broker, records, audit_id)
        with home.worker("notifier"):
            last = decide(records, "b")
            publish(broker, records, last)
            wait_until(lambda: len(chat.messages) == 2, what="the next decision")
            let_time_pass(records)
            publish(broker, records, decide(records, "c"))
            wait_until(lambda: len(chat.messages) == 3, what="the one after it")
            listed = json.loads(command(home, "notify", "list", "--state", "unknown", "--format", "json"))
            assert [(one["audit_id"], one["tries"]) for one in listed] == [(audit_id, 1)]
            assert f"chat is told of audit {audit_id} again" in command(home, "notify", "send", audit_id, "chat")
            wait_until(lambda: len(chat.messages) == 4, what="what was sent on purpose")
            wait_until(lambda: set(states(records).values()) == {NotificationState.SENT}, what="its mark")
        assert "Nothing of audit" in command(home, "notify", "send", audit_id, "chat", code=1)


def test_two_workers_on_one_store_tell_of_each_decision_once(tmp_path: Path, broker: str, chat: Chat) -> None:
    url = f"sqlite:///{tmp_path / 'records.sqlite'}"
    with closing(Records(url)) as records, ExitStack() as running:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            home = home_of(tmp_path / name, broker, said(chat), PROCTOR_RECORDS_URL=url)
            running.enter_context(home.worker("notifier"))
        audits = [decide(records, f"a{number}") for number in range(12)]
        for audit_id in audits * 2:
            publish(broker, records, audit_id)
        wait_until(lambda: len(records.outbox.listed()) == len(audits), what="the outbox")
        wait_until(lambda: set(states(records).values()) == {NotificationState.SENT}, what="the notifications")
        wait_until(
            lambda: not records.outbox.listed(states=[NotificationState.WAITING, NotificationState.SENDING]),
            what="all of them",
        )
    told = [message["text"].partition("Audit: ")[2].split()[0] for message in chat.messages]
    assert sorted(told) == sorted(audits)


def test_a_worker_whose_targets_cannot_be_reached_by_anything_does_not_start(tmp_path: Path, broker: str) -> None:
    for settings, why in (
        ({}, "nobody is to be told of anything: set PROCTOR_NOTIFY"),
        ({"targets": {"ops": f"nosuch://host/{SECRET}"}}, "the URL of 'ops' is none that apprise knows"),
    ):
        home = home_of(tmp_path, broker, settings)
        with pytest.raises(BadInputError) as refused:
            check_settings(Settings.from_environment(home.environment))
        assert why in str(refused.value)
        assert SECRET not in str(refused.value)


def test_a_test_says_whether_the_target_took_it(tmp_path: Path, broker: str, chat: Chat, command: Commands) -> None:
    with receiver(200) as (url, got):
        home = home_of(tmp_path, broker, said(chat, sink=url))
        assert "chat took a test" in command(home, "notify", "test", "chat")
        assert "sink took a test" in command(home, "notify", "test", "sink")
        assert got[0].body is not None
        assert json.loads(got[0].body)["type"] == "proctor.test.v1"
        chat.answers = [404, "drop"]
        assert "was not sent: it was answered with HTTP 404" in command(home, "notify", "test", "chat", code=1)
        assert "may have arrived: the connection broke" in command(home, "notify", "test", "chat", code=1)
        assert '"nobody" is no target of PROCTOR_NOTIFY' in command(home, "notify", "test", "nobody", code=2)


def home_of(folder: Path, broker_url: str, settings: dict[str, Any], **environment: str) -> Home:
    file = folder / "notify.json"
    file.write_text(json.dumps(settings))
    return Home(folder, broker_url, PROCTOR_NOTIFY=f"@{file}", **environment)


class Commands:
    """Commands in this process, on the stores of a home."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, home: Home, *arguments: str, code: int = 0) -> str:
        for name, value in home.environment.items():
            self._monkeypatch.setenv(name, value)
        assert main(arguments) == code
        said = self._capsys.readouterr()
        return said.out + said.err


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)
