"""Real workers log lines of JSON and nothing else, whatever is put into their queues, from their start to their end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from tests.answering_http import Asked, Reply, serving
from tests.support import wait_until
from tests.worker_processes import Home, flushed

pytestmark = pytest.mark.timeout(120)

_HOSTILE = 'x"}\n{"level": "CRITICAL", "audit_id": "forged"}\r\n\x1b[2J\u202e end'


@pytest.fixture
def home(tmp_path: Path, valkey_url: str) -> Iterator[Home]:
    with flushed(f"{valkey_url}/9") as url:
        yield Home(tmp_path, url, PROCTOR_LOG_FORMAT="json", POD_NAME="pod-1")


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def put(home: Home, task: str, message: Any, queue: str) -> None:
    with Celery(broker=home.broker_url) as app:
        app.send_task(task, kwargs={"message": message}, queue=queue, ignore_result=True)


@pytest.mark.parametrize("options", [(), ("--concurrency", "2")], ids=["solo", "prefork"])
def test_a_worker_logs_lines_of_json_alone(home: Home, options: tuple[str, ...]) -> None:
    with home.worker("scorer", *options) as worker:
        put(home, "scorer.score", {"audit_id": "audit-7", "manifest": f"sha256:{_HOSTILE}"}, "scorer")
        put(home, "scorer.score", {"audit_id": _HOSTILE, "unknown": _HOSTILE}, "scorer")
        put(home, "scorer.score", [_HOSTILE], "scorer")
        put(home, f"scorer.{_HOSTILE}", {"audit_id": "a"}, "scorer")
        wait_until(lambda: "audit-7" in worker.log, what="the failure")
        wait_until(lambda: worker.log.count("dead-lettered") >= 1, what="the dead letter")
        worker.signal(signal.SIGTERM)
        assert worker.left() == 0
        lines = lines_of(worker.log)
    assert {line["service"] for line in lines} == {"scorer"}
    assert {line["pod"] for line in lines} == {"pod-1"}
    assert "forged" not in {line.get("audit_id") for line in lines}
    failed = [line for line in lines if "exception" in line and line.get("audit_id") == "audit-7"]
    assert failed
    assert (failed[0]["task"], failed[0]["level"]) == ("scorer.score", "ERROR")
    assert failed[0]["message_id"]
    assert any("Warm shutdown" in line["message"] for line in lines)
    assert any(line["message"].endswith("ready.") for line in lines)
    pids = {line["pid"] for line in lines}
    assert len(pids) >= (2 if options else 1)


def boasting(number: int, asked: Asked) -> Reply:
    """An answer that counts more tokens than it can have, of which the worker warns."""
    choice = {"index": 0, "text": _HOSTILE, "finish_reason": "stop"}
    usage = {"prompt_tokens": 10**9, "completion_tokens": 1}
    return Reply(body=json.dumps({"model": "m", "choices": [choice], "usage": usage}).encode())


def test_the_lines_of_an_inference_worker_are_of_their_audit_stage_shard_and_trial(home: Home) -> None:
    with home.worker("inference") as worker, serving(boasting) as model:
        home.send_shards(f"{model.url}/v1", "s-1")
        (answer,) = home.answers(1)
        assert answer.completions is not None
        lines = lines_of(worker.log)
    (line,) = [line for line in lines if "shard_id" in line]
    assert "1,000,000,000 input tokens" in line["message"]
    assert (line["audit_id"], line["stage"], line["shard_id"]) == ("a1", "answer", "s-1")
    assert line["task"] == "inference.run_shards"
    assert line["trial_id"]
