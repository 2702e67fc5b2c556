"""Notifications in a real store: each once, claimed by one, and what is unknown said so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from proctor.domain.notify.recipients import Recipient, RecipientKind
from proctor.runtime.records.outbox import CLAIM_S, Claim, NotificationState, Outbox
from proctor.runtime.records.store import Records

CHAT = Recipient(RecipientKind.MESSAGE, "chat")
MAIL = Recipient(RecipientKind.MESSAGE, "a@example.org")
SINK = Recipient(RecipientKind.EVENT, "sink")


class Clock:
    """A clock that goes on when it is told."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(records_url: str, clock: Clock) -> Iterator[Outbox]:
    with closing(Records(records_url)) as records:
        yield Outbox(records._engine, clock)


def states(outbox: Outbox) -> dict[str, NotificationState]:
    return {one.name: one.state for one in outbox.listed()}


def claimed(outbox: Outbox) -> dict[str, Claim]:
    found = {one.name: outbox.claim(one) for one in outbox.due(10)}
    return {name: claim for name, claim in found.items() if claim is not None}


def test_who_is_told_of_a_decision_stands_there_once_however_often_it_comes(outbox: Outbox) -> None:
    assert outbox.add("a-1", "decision", [CHAT, MAIL]) == 2
    assert outbox.add("a-1", "decision", [MAIL, CHAT, SINK]) == 1
    assert outbox.add("a-2", "decision", [CHAT]) == 1
    assert len(outbox.due(10)) == 4
    for claim in claimed(outbox).values():
        outbox.sent(claim)
    assert outbox.add("a-1", "decision", [CHAT, MAIL, SINK]) == 0


def test_of_workers_that_claim_at_once_one_has_it(records_url: str) -> None:
    workers, rounds = 6, 5
    with closing(Records(records_url)) as records:
        for number in range(rounds):
            records.outbox.add(f"a-{number}", "decision", [CHAT, MAIL])
    won, start = list[tuple[str, str]](), threading.Barrier(workers)

    def claim_all() -> None:
        with closing(Records(records_url)) as records:
            due = records.outbox.due(100)
            start.wait()
            won.extend((one.audit_id, one.name) for one in due if records.outbox.claim(one) is not None)

    threads = [threading.Thread(target=claim_all) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(set(won)) == 2 * rounds


def test_what_was_not_sent_is_due_again_after_its_wait(outbox: Outbox, clock: Clock) -> None:
    outbox.add("a-1", "decision", [CHAT])
    outbox.set_back(claimed(outbox)["chat"], "it could not be reached", wait_s=30)
    assert outbox.due(10) == []
    clock.now += 31
    (again,) = outbox.due(10)
    assert (again.tries, again.detail) == (1, "it could not be reached")
    outbox.failed(claimed(outbox)["chat"], "it was answered with HTTP 404")
    clock.now += 10**6
    assert outbox.due(10) == []
    assert states(outbox) == {"chat": NotificationState.FAILED}


def test_a_claim_that_nobody_marked_is_unknown_for_people_and_sent_again_to_sinks(outbox: Outbox, clock: Clock) -> None:
    outbox.add("a-1", "decision", [CHAT, SINK])
    assert set(claimed(outbox)) == {"chat", "sink"}
    assert outbox.lapse() == 0
    assert states(outbox)["chat"] is NotificationState.SENDING
    clock.now += CLAIM_S + 1
    # Said before anybody has marked it.
    assert [one.name for one in outbox.listed(states=[NotificationState.UNKNOWN])] == ["chat"]
    assert [one.name for one in outbox.listed(states=[NotificationState.SENDING])] == ["sink"]
    assert states(outbox)["chat"] is NotificationState.UNKNOWN
    assert outbox.lapse() == 2
    assert states(outbox) == {"chat": NotificationState.UNKNOWN, "sink": NotificationState.WAITING}
    assert [one.name for one in outbox.due(10)] == ["sink"]


def test_a_worker_that_was_only_slow_still_says_that_it_sent(outbox: Outbox, clock: Clock) -> None:
    outbox.add("a-1", "decision", [CHAT])
    claim = claimed(outbox)["chat"]
    clock.now += CLAIM_S + 1
    outbox.lapse()
    outbox.sent(claim)
    assert states(outbox) == {"chat": NotificationState.SENT}


def test_a_person_has_it_sent_again_and_the_former_sender_has_no_say_any_more(outbox: Outbox, clock: Clock) -> None:
    outbox.add("a-1", "decision", [CHAT])
    first = claimed(outbox)["chat"]
    assert outbox.send_again("a-1", "chat") == 0
    clock.now += CLAIM_S + 1
    assert outbox.send_again("a-1", "chat") == 1
    second = claimed(outbox)["chat"]
    outbox.failed(first, "too late")
    assert states(outbox) == {"chat": NotificationState.SENDING}
    outbox.sent(second)
    assert outbox.send_again("a-1", "chat") == 0
    assert outbox.send_again("a-1", "chat", even_sent=True) == 1
    assert states(outbox) == {"chat": NotificationState.WAITING}
    assert outbox.send_again("a-1", "nobody") == outbox.send_again("a-2", "chat") == 0


def test_the_list_is_of_the_states_and_the_audit_that_are_asked_for(outbox: Outbox) -> None:
    outbox.add("a-1", "decision", [CHAT, MAIL])
    outbox.add("a-2", "decision", [CHAT])
    outbox.sent(claimed(outbox)["a@example.org"])
    assert {(one.audit_id, one.name) for one in outbox.listed(states=[NotificationState.SENT])} == {
        ("a-1", "a@example.org")
    }
    assert {one.name for one in outbox.listed(audit_id="a-2")} == {"chat"}
    assert len(outbox.listed(limit=2)) == 2
