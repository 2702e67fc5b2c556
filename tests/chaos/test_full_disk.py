"""A home whose disk is full in the middle of an audit: it waits, and goes on when there is room again.

The report is that of the same audit without trouble, and nothing is corrupt. The disk is a tmpfs of its own, which
takes a privilege to mount; without it the test is skipped.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from proctor.localstack.stack import LocalStack, StackSpec
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.artifacts.objects import StoredObject
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing
from tests.answering_http import Asked, Reply, serving
from tests.chaos import arithmetic
from tests.support import run_proctor, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(600),
]

DISK_MIB = 48
BENCHMARK = arithmetic.Benchmark("full", items=120, variants=1)
WORKERS = ("router", "perturbation", "inference", "scorer")
ONLY_VALKEY = StackSpec(mlflow=False, triton=False, workers=())
#: What is lost is looked for within seconds.
TIMING = Timing(
    reconcile_interval_s=1, lease_s=6, visibility_timeout_s=9, answer_time_s=12, grace_s=2, presence_s=3, outage_s=60
)
#: Longer than any worker tries a store again by itself, and than a shard's lease.
FULL_FOR_S = 8.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=700", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount here")
    if mounted.returncode != 0:
        pytest.skip(f"a disk of its own cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Take every byte that is left, but for the ends of pages that files have already."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 16, 4096, 1):
            with suppress(OSError):
                while True:
                    filler.write(b"x" * size)


class Model:
    """Adds as `arithmetic` does, and stops at a number of prompts until it is let go on."""

    def __init__(self, stops_after: int) -> None:
        self._stops_after = stops_after
        self.stopped, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, number: int, asked: Asked) -> Reply:
        if asked.body is None:
            return Reply(body=json.dumps({"data": [{"id": arithmetic.MODEL}]}).encode())
        if number > self._stops_after:
            self.stopped.set()
            self.goes_on.wait(120)
        prompt = asked.body["prompt"]
        # So that there is something to store that no compression takes away.
        words = "".join(hashlib.sha256(f"{prompt}{n}".encode()).hexdigest() for n in range(30))
        choice = {"index": 0, "text": f"{words} {arithmetic.answer(prompt)}", "finish_reason": "stop"}
        usage = {"prompt_tokens": 5, "completion_tokens": 5}
        return Reply(body=json.dumps({"model": arithmetic.MODEL, "choices": [choice], "usage": usage}).encode())


def submitted(suite: Path, home: Path) -> str:
    done = run_proctor("audit", "submit", suite, "--format", "json", home=home)
    assert done.returncode == 0, done.stderr
    audit_id: str = json.loads(done.stdout)["audit"]["audit_id"]
    return audit_id


def decided(records: Records, audit_id: str, suite: Path, home: Path) -> bytes:
    """The report of an audit, which is started again where it failed, as its owner would."""

    def is_decided() -> bool:
        record = records.audit(audit_id)
        if record.state is AuditState.FAILED:
            assert "No space" in record.detail or "full" in record.detail, record.detail
            assert submitted(suite, home) == audit_id
        return record.state is AuditState.DECIDED

    wait_until(is_decided, timeout_s=90, what=f"a decision of {audit_id}")
    event = records.decision(audit_id)
    assert event is not None
    return LocalArtifacts(home / "artifacts").get(event["reportDigest"])


def refuses_writes(url: str) -> bool:
    with closing(redis.Redis.from_url(url)) as client:
        try:
            client.set("proctor-test-room", "x", px=1000)
        except redis.RedisError as error:
            return "No space" in str(error)
    return False


def test_a_disk_that_is_full_for_a_while_costs_time_and_nothing_else(tmp_path: Path, disk: Path) -> None:
    home, model = disk / "home", Model(stops_after=BENCHMARK.trials // 3)
    settings = Settings(home=home, timing=TIMING)
    with serving(model) as server, LocalStack(home, replace(ONLY_VALKEY, workers=WORKERS), settings) as stack:
        suite = BENCHMARK.write(tmp_path / "suite", f"{server.url}/v1")
        other = arithmetic.Benchmark("other", items=40).write(tmp_path / "suite", f"{server.url}/v1")
        ledger = stack.start().ledger_url
        with closing(Records(settings.records_url)) as records:
            audit_id = submitted(suite, home)
            assert model.stopped.wait(90)
            fill(disk)
            model.goes_on.set()
            wait_until(lambda: refuses_writes(ledger), what="a refusal of Valkey's")
            full_until_s = time.monotonic() + FULL_FOR_S
            refused = run_proctor("audit", "submit", other, home=home)
            assert refused.returncode == 1
            assert "Traceback" not in refused.stderr
            assert "No space left on device" in refused.stderr or "disk is full" in refused.stderr, refused.stderr
            wait_until(lambda: time.monotonic() > full_until_s)
            assert records.audit(audit_id).state is not AuditState.DECIDED
            stack.check()
            (disk / "filler").unlink()
            report = decided(records, audit_id, suite, home)
            # The same once more, on a disk with room: the calm run, of workers that have come through.
            calm_id = submitted(suite, home)
            assert calm_id != audit_id
            assert decided(records, calm_id, suite, home) == report
            stack.check()
    assert_whole(home)


def assert_whole(home: Path) -> None:
    """No half of anything is left in a home whose stack has ended, and what Valkey wrote is read again."""
    with closing(sqlite3.connect(home / "records.sqlite")) as records:
        assert records.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store = LocalArtifacts(home / "artifacts")
    objects: list[StoredObject] = [one for batch in store.objects() for one in batch]
    assert len(objects) > 10
    for one in objects:
        assert one.whole
        store.get("sha256:" + one.name[3:-2])
    with LocalStack(home, ONLY_VALKEY) as stack, closing(redis.Redis.from_url(stack.start().ledger_url)) as ledger:
        assert ledger.dbsize() > 0
