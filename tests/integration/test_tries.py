"""What kills or fails whoever tries it: tried a few times, and then its audit fails with the cause."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu import Connection

from proctor.domain.errors import StoreError
from proctor.domain.messages import AuditScored, Reconcile, ScoreAudit
from proctor.router import tasks
from proctor.router.audit import AuditView
from proctor.router.stages.answer import AnswerStage
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.tries import MAX_TRIES, TriedTooOftenError, Tries
from tests.integration.router_support import router_bench
from tests.support import ending
from tests.worker_processes import Home, flushed

_KILLS = """
import os, signal, sys
import proctor.scorer.tasks as tasks

def kills(*_):
    open(sys.argv[1], "a").write("x")
    os.kill(os.getpid(), signal.SIGKILL)

tasks._decide = tasks.get_model = kills
from proctor.cli.main import main
sys.exit(main(["worker", "scorer", "--concurrency", "2"]))
"""


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/10") as url:
        yield url


@pytest.fixture
def tries(broker: str) -> Iterator[Tries]:
    made = Tries(broker)
    yield made
    made.close()


def fail(tries: Tries, what: str, error: BaseException, **options: Any) -> None:
    with pytest.raises(type(error)), tries.trying(what, **options):
        raise error


def test_what_failed_too_often_is_refused_with_the_last_cause_and_may_then_begin_anew(tries: Tries) -> None:
    for number in range(MAX_TRIES):
        fail(tries, "a", MemoryError(f"number {number}"))
    with pytest.raises(TriedTooOftenError, match=f"{MAX_TRIES} times in vain: MemoryError: number {MAX_TRIES - 1}"):
        fail(tries, "a", MemoryError())
    with tries.trying("a"):
        pass


def test_what_died_without_a_word_counts_as_well(tries: Tries) -> None:
    for _ in range(MAX_TRIES):
        # As if the process had been killed: nothing is noted afterwards.
        fail(tries, "a", SystemExit())
    with pytest.raises(TriedTooOftenError, match="whoever tried it died"), tries.trying("a"):
        pass


def test_tries_that_may_still_be_under_way_do_not_count(tries: Tries) -> None:
    for _ in range(3 * MAX_TRIES):
        fail(tries, "a", SystemExit(), grace=timedelta(minutes=1))
    with tries.trying("a", grace=timedelta(minutes=1)):
        pass


def test_a_try_that_ends_well_strikes_out_those_before(tries: Tries, broker: str) -> None:
    for _ in range(3):
        for _ in range(MAX_TRIES - 1):
            fail(tries, "a", ValueError())
        with tries.trying("a"):
            pass
    with redis.Redis.from_url(broker) as client:
        assert not client.keys("proctor:tries:*")


def test_a_store_that_is_away_is_no_fault_of_what_was_tried(tries: Tries) -> None:
    for _ in range(3 * MAX_TRIES):
        fail(tries, "a", StoreError("away"))


def test_every_count_expires(tries: Tries, broker: str) -> None:
    fail(tries, "a", ValueError())
    fail(tries, "b", SystemExit())
    with redis.Redis.from_url(broker) as client:
        assert len(client.keys("proctor:tries:*")) == 2
        assert all(client.ttl(key) > 0 for key in client.keys("proctor:tries:*"))


def test_without_its_redis_nothing_is_refused() -> None:
    away = Tries("redis://127.0.0.1:1/0")
    with away.trying("a"):
        pass


def test_a_request_that_kills_its_worker_fails_the_audit_after_a_few_deliveries(tmp_path: Path, broker: str) -> None:
    place, deaths = Home(tmp_path, broker), tmp_path / "deaths"
    request = ScoreAudit(audit_id="a1", manifest="sha256:" + "0" * 64)
    with closing(Tries(broker)) as tries:
        # All but the last two of them: a worker's death takes seconds.
        for number in range(MAX_TRIES - 2):
            tries.begin(f"{request.task} {request.model_dump_json()}", f"try-{number}")
    place.send(request)
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-c", _KILLS, str(deaths)], env=dict(place.environment), stdout=log, stderr=log
        )
    with ending(worker), Connection(broker) as connection, connection.SimpleQueue("router") as queue:
        message = queue.get(timeout=60)
        message.ack()
        answer = AuditScored.model_validate(message.payload[1]["message"])
    assert len(deaths.read_text()) == 2
    assert answer.audit_id == "a1"
    assert answer.error is not None
    assert f"scorer.score is given up: it was tried {MAX_TRIES} times in vain: whoever tried it died" in answer.error
    with redis.Redis.from_url(broker) as client:
        assert not client.exists("unacked", "scorer"), "the request is not delivered again"


@pytest.mark.parametrize("error", [MemoryError("no memory"), SystemExit()])
def test_an_audit_whose_plan_kills_the_router_fails_and_keeps_no_other_from_going_on(
    error: BaseException, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, tries: Tries
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        dispatcher = dataclasses.replace(tasks._dispatcher(), trying=tries.trying)
        monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)
        plan = AnswerStage.shards

        def kills(stage: AnswerStage, audit: AuditView, *arguments: Any) -> Any:
            if audit.audit_id == poisoned:
                raise error
            return plan(stage, audit, *arguments)

        poisoned = bench.submit()
        monkeypatch.setattr(AnswerStage, "shards", kills)
        with pytest.raises(type(error)):
            bench.to_answering()
        bench.another_suite("another")
        for _ in range(MAX_TRIES + 1):
            try:
                tasks.reconcile(Reconcile())
            except SystemExit:
                # The router has died, and another looks.
                continue
        assert bench.state(poisoned) is AuditState.FAILED
        detail = bench.records.audit(poisoned).detail
        assert f"cannot be asked: it was tried {MAX_TRIES} times in vain" in detail
        bench.sent.clear()
        assert bench.state(bench.to_answering()) is AuditState.ANSWERING
        assert bench.shards()


def test_a_prompt_that_is_too_large_fails_its_audit_at_once_with_the_cause(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        monkeypatch.setattr("proctor.router.submit.prompt_sizes.MAX_PROMPT_BYTES", 50)
        audit = bench.to_answering()
        assert bench.state(audit) is AuditState.FAILED
        assert "its prompt would have" in bench.records.audit(audit).detail
