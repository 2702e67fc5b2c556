"""Deliveries go before audits, and many writes become one; neither waits for ever, and none is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from proctor.domain.errors import StoreError
from proctor.gateway.triggers import traffic
from proctor.gateway.triggers.traffic import Traffic
from proctor.runtime.records.together import Together


def test_what_is_less_urgent_waits_for_a_delivery_and_a_moment_behind_it() -> None:
    found = Traffic()
    with found.delivery():
        waiting = threading.Thread(target=found.give_way)
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
    waiting.join(5)
    assert not waiting.is_alive()


def test_it_waits_for_nothing_where_nothing_comes_and_not_for_ever_where_something_always_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(traffic, "_LONGEST_S", 0.2)
    found = Traffic()
    began_s = time.monotonic()
    found.give_way()
    assert time.monotonic() - began_s < 0.1
    with found.delivery():
        began_s = time.monotonic()
        found.give_way()
        assert time.monotonic() - began_s >= 0.2


def test_what_comes_while_one_writes_is_written_at_once_and_each_is_told_its_own() -> None:
    batches: list[list[str]] = []
    first, go = threading.Event(), threading.Event()

    def write(rows: Sequence[str]) -> frozenset[str]:
        batches.append(list(rows))
        first.set()
        assert go.wait(10)
        return frozenset(rows)

    together = Together(write)
    told: dict[str, frozenset[str]] = {}

    def ask(row: str) -> None:
        told[row] = together([row])

    threads = [threading.Thread(target=ask, args=(str(n),)) for n in range(8)]
    threads[0].start()
    assert first.wait(10)
    for thread in threads[1:]:
        thread.start()
    while len(together._waiting) < 7:
        pass
    go.set()
    for thread in threads:
        thread.join(10)
    assert [sorted(batch) for batch in batches] == [["0"], [str(n) for n in range(1, 8)]]
    assert all(row in new for row, new in told.items())
    assert len(told) == 8


def test_an_error_is_everybody_s_whose_rows_were_not_written_and_the_next_are() -> None:
    fails = True

    def write(rows: Sequence[str]) -> frozenset[str]:
        if fails:
            raise StoreError("the disk is full")
        return frozenset(rows)

    together = Together(write)
    for _ in range(2):
        with pytest.raises(StoreError):
            together(["a"])
    fails = False
    assert together(["a"]) == {"a"}
