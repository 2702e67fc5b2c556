"""Queue entries that are no messages: real workers on a real broker put them aside and go on with the next."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.manifest import AnsweredShard
from proctor.domain.messages import GradeShards, Reconcile
from proctor.runtime.messaging.dead_letters import KEY, MAX_BYTES_SHOWN, MAX_LETTERS, DeadLetters, Fault
from tests.support import wait_until
from tests.worker_processes import Home, flushed

DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/11") as url:
        yield url


def envelope(body: Any = None, *, raw: str | None = None, **members: Any) -> bytes:
    """An entry as kombu writes one, but for what a test gives otherwise."""
    written = raw if raw is not None else json.dumps(body if body is not None else [[], {"message": {}}, {}])
    entry = {
        "body": base64.b64encode(written.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": "router.reconcile", "id": "i", "retries": 0, "timelimit": [None, None]},
        "properties": {
            "correlation_id": "i", "delivery_mode": 2, "priority": 0, "body_encoding": "base64",
            "delivery_tag": "tag", "delivery_info": {"exchange": "", "routing_key": "router"},
        },
    }  # fmt: skip
    return json.dumps({**entry, **members}).encode()


def with_headers(**headers: Any) -> bytes:
    return envelope(headers={**json.loads(envelope())["headers"], **headers})


FOREIGN = {
    "not JSON": b"{hello",
    "not text": b"\xff\xfe\x00",
    "deeply nested": b"[" * 200_000,
    "a number": b"17",
    "a list": b"[]",
    "an empty object": b"{}",
    "a decimal that is none": b'{"__type__": "decimal", "__value__": "x"}',
    "without properties": envelope(properties=None),
    "properties without members": envelope(properties={}),
    "delivery_info that is a list": envelope(properties={"delivery_tag": "t", "delivery_info": []}),
    "a delivery_tag that is an object": envelope(
        properties={"delivery_tag": {}, "delivery_info": {"exchange": "", "routing_key": "router"}}
    ),
    "headers that are null": envelope(headers=None),
    "headers that are a number": envelope(headers=5),
    "a task that is a list": with_headers(task=[]),
    "no task": envelope(headers={}),
    "no id": envelope(headers={"task": "router.reconcile"}),
    "an unknown task": with_headers(task="os.system"),
    "an eta that is a number": with_headers(eta=5),
    "an eta that is no time": with_headers(eta="x"),
    "an expiry that is no time": with_headers(expires="x"),
    "another content type": envelope(**{"content-type": "application/x-python-serialize"}),
    "a body that is not JSON": envelope(raw="{"),
    "a body that is deeply nested": envelope(raw="[" * 200_000),
    "a body that is no list": envelope({"a": 1}),
    "a body of another length": envelope([1]),
    "no message": envelope([[], {}, {}]),
    "arguments by place": envelope([[1, 2], {}, {}]),
    # Not a field that nobody knows: that is a later version's, and goes back to the queue.
    "a message of another shape": envelope(
        [[], {"message": {"audit_id": 7}}, {}], headers=json.loads(with_headers(task="router.start"))["headers"]
    ),
}


def test_a_router_puts_aside_what_is_no_message_and_handles_what_is(tmp_path: Path, broker: str) -> None:
    place = Home(tmp_path, broker)
    letters = DeadLetters(broker)
    with place.worker("router") as worker, redis.Redis.from_url(broker) as client:
        for entry in FOREIGN.values():
            client.lpush("router", entry)
        place.send(Reconcile())
        wait_until(
            lambda: (
                ("Task router.reconcile" in worker.log and client.llen("router") == 0)
                or worker.process.poll() is not None
            ),
            what="the message behind the others",
        )
        wait_until(lambda: client.llen(KEY) >= len(FOREIGN) or worker.process.poll() is not None, what="dead letters")
        assert worker.process.poll() is None, worker.log[-3000:]
        assert client.llen(KEY) == len(FOREIGN), worker.log[-3000:]
        assert client.ttl(KEY) > 0
        wait_until(lambda: not client.exists("unacked"), what="nothing to be delivered again")
        worker.signal(signal.SIGTERM)
        assert worker.left() == 0
    found = letters.all()
    letters.close()
    faults = {name: row["fault"] for name, row in zip(FOREIGN, reversed(found), strict=True)}
    assert faults["not JSON"] == Fault.UNDECODABLE
    assert faults["an unknown task"] == Fault.UNKNOWN_TASK
    assert faults["a message of another shape"] == Fault.INVALID
    assert found[-1]["begins"] == "{hello"
    assert found[-1]["where"] == "router"


@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_a_scorer_does_too(tmp_path: Path, broker: str, concurrency: str) -> None:
    place = Home(tmp_path, broker)
    entries = {name: entry.replace(b"router", b"scorer") for name, entry in FOREIGN.items()}
    with place.worker("scorer", "--concurrency", concurrency) as worker, redis.Redis.from_url(broker) as client:
        for entry in entries.values():
            client.lpush("scorer", entry)
        shard = AnsweredShard(shard=DIGEST, completions=DIGEST)
        place.send(GradeShards(audit_id="a", items=DIGEST, extractor="auto", shards=(shard,)))
        wait_until(
            lambda: "nothing is graded before its end" in worker.log or worker.process.poll() is not None,
            what="the message behind the others",
        )
        assert worker.process.poll() is None, worker.log[-3000:]
        worker.signal(signal.SIGTERM)
        assert worker.left() == 0


def test_an_unacknowledged_entry_that_is_none_keeps_no_other_from_being_delivered_again(
    tmp_path: Path, broker: str
) -> None:
    timing = {"PROCTOR_RECONCILE_INTERVAL_S": "600", "PROCTOR_LEASE_S": "601", "PROCTOR_ANSWER_TIME_S": "700"}
    place = Home(tmp_path, broker, PROCTOR_VISIBILITY_TIMEOUT_S="602", **timing)
    with redis.Redis.from_url(broker) as client:
        for number in range(20):
            client.hset("unacked", f"bad{number}", "{")
            client.zadd("unacked_index", {f"bad{number}": 2.0})
        lost = envelope([[], {"message": {}}, {}])
        client.hset("unacked", "good", json.dumps([json.loads(lost), "", "router"]))
        client.zadd("unacked_index", {"good": 1.0})
        client.sadd("_kombu.binding.router", "router\x06\x16\x06\x16router")
        with place.worker("router") as worker:
            wait_until(
                lambda: "Task router.reconcile" in worker.log or worker.process.poll() is not None,
                what="the message that was lost",
                timeout_s=60,
            )
            assert worker.process.poll() is None, worker.log[-3000:]


def test_dead_letters_are_few_and_short(broker: str) -> None:
    letters = DeadLetters(broker)
    for number in range(MAX_LETTERS + 5):
        letters.put(Fault.INVALID, "router", b"\xff\x1b[31m" + bytes([65 + number % 26]) * 10_000, "x" * 10_000)
    found = letters.all()
    assert len(found) == MAX_LETTERS
    assert all(len(row["begins"]) <= 4 * MAX_BYTES_SHOWN and "\x1b" not in row["begins"] for row in found)
    assert all(len(row["detail"]) <= 256 for row in found)
    letters.close()


def test_a_dead_letter_that_cannot_be_kept_is_logged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    DeadLetters("redis://127.0.0.1:1/0").put(Fault.INVALID, "router", "what came", "why")
    assert "what came" in caplog.text
    assert "cannot be kept" in caplog.text


_FAILS = """
import sys
from celery import bootsteps
from proctor.runtime.messaging.tasks import app

class Fails(bootsteps.StartStopStep):
    def start(self, parent):
        raise LookupError("a part of the worker failed")

app.steps["worker"].add(Fails)
from proctor.cli.main import main
sys.exit(main(["worker", "scorer"]))
"""


def test_a_worker_that_ends_by_an_error_says_so_in_its_exit_code(tmp_path: Path, broker: str) -> None:
    place = Home(tmp_path, broker)
    ended = subprocess.run(
        [sys.executable, "-c", _FAILS], env=dict(place.environment), capture_output=True, text=True, timeout=60
    )
    assert "a part of the worker failed" in ended.stderr
    assert ended.returncode == 1
