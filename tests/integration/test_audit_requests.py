"""Requests for audits are on record once, and each comes to one audit, on every database."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from proctor.domain.errors import StoreError
from proctor.runtime.records.requests import NewRequest, RequestState, RequestTakenError
from proctor.runtime.records.store import Records


@pytest.fixture
def records(records_url: str) -> Iterator[Records]:
    with closing(Records(records_url)) as found:
        yield found


def asked(key: str, **other: object) -> NewRequest:
    said = {"suite_digest": "sha256:s", "origin": "webhook", "facts": {"tags": {"a": "b\0\ud800"}}, **other}
    return NewRequest(key=key, registry="mlflow", model="m\0\ud800", version="1", **said)  # type: ignore[arg-type]


def test_a_request_is_new_once_and_stays_as_it_was(records: Records) -> None:
    requests = records.requests
    assert requests.add([asked("a"), asked("b"), asked("a")]) == {"a", "b"}
    assert requests.add([asked("a", origin="reconciler"), asked("c")]) == {"c"}
    found = requests.find(["a", "b", "c", "d"])
    assert sorted(found) == ["a", "b", "c"]
    assert found["a"].origin == "webhook"
    assert (found["a"].model, found["a"].facts) == ("m\ufffd?", {"tags": {"a": "b\0\ud800"}})
    assert requests.add([]) == frozenset()


def test_many_that_ask_at_once_are_told_of_one_new_request(records_url: str) -> None:
    stores = [Records(records_url) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        new = list(threads.map(lambda store: store.requests.add([asked(key) for key in "abc"]), stores))
    assert sorted(key for one in new for key in one) == ["a", "b", "c"]
    for store in stores:
        store.close()


def test_a_claim_is_one_process_s_until_its_time_is_over(records_url: str) -> None:
    stores = [Records(records_url) for _ in range(4)]
    now = [1_000.0]
    for store in stores:
        store.requests._clock = lambda: now[0]
    stores[0].requests.add([asked("a"), asked("other", suite_digest="sha256:t")])
    with ThreadPoolExecutor(4) as threads:
        claimed = list(threads.map(lambda store: store.requests.claim(["sha256:s"], hold_s=60), stores))
    assert [one.key for found in claimed for one in found] == ["a"]
    now[0] += 59
    assert stores[1].requests.claim(["sha256:s"], hold_s=60) == []
    now[0] += 1
    assert [one.key for one in stores[1].requests.claim(["sha256:s"], hold_s=60)] == ["a"]
    stores[1].requests.settle("a", RequestState.STARTED)
    now[0] += 3_600
    assert stores[2].requests.claim(["sha256:s"], hold_s=60) == []
    for store in stores:
        store.close()


def test_an_audit_and_its_request_are_written_together_or_not_at_all(records: Records) -> None:
    records.requests.add([asked("a")])
    audit = records.create_audit("s", "{}", {}, request="a")
    assert records.requests.find(["a"])["a"].audit_id == audit.audit_id
    for request in ("a", "none"):
        with pytest.raises(RequestTakenError):
            records.create_audit("s", "{}", {}, request=request)
    assert [one.audit_id for one in records.audits()] == [audit.audit_id]


def test_of_many_that_begin_the_audit_of_a_request_one_does(records_url: str) -> None:
    stores = [Records(records_url) for _ in range(6)]
    stores[0].requests.add([asked("a")])

    def begin(number: int) -> str | None:
        try:
            return stores[number].create_audit(f"s{number}", "{}", {}, request="a").audit_id
        except (RequestTakenError, StoreError):
            return None

    with ThreadPoolExecutor(6) as threads:
        begun = [one for one in threads.map(begin, range(6)) if one is not None]
    assert [one.audit_id for one in stores[0].audits()] == begun
    assert stores[0].requests.find(["a"])["a"].audit_id == begun[0]
    for store in stores:
        store.close()


def test_an_audit_is_attached_to_a_request_that_has_no_other(records: Records) -> None:
    records.requests.add([asked("a")])
    assert records.requests.attach("a", "x-1")
    assert records.requests.attach("a", "x-1")
    assert not records.requests.attach("a", "y-1")


def test_a_refused_request_is_looked_at_again_when_the_registry_says_something_else(records: Records) -> None:
    requests = records.requests
    requests.add([asked("a")])
    requests.settle("a", RequestState.REFUSED, "no digest")
    assert not requests.revive("a", {"tags": {"a": "b\0\ud800"}})
    assert requests.revive("a", {"tags": {"digest": "x"}})
    found = requests.find(["a"])["a"]
    assert (found.state, found.facts) == (RequestState.REQUESTED, {"tags": {"digest": "x"}})
    requests.settle("a", RequestState.STARTED)
    assert not requests.revive("a", {})


def test_a_cursor_is_where_it_was_moved_to_last(records: Records) -> None:
    assert records.requests.cursor("mlflow") == ""
    for cursor in ("one", "two"):
        records.requests.move_cursor("mlflow", cursor)
    assert records.requests.cursor("mlflow") == "two"
