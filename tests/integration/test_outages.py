"""A message whose handling an outage ended goes back to its queue: a real worker on a real broker takes it again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support import REPOSITORY
from tests.worker_processes import Home, flushed

#: A worker of one task, whose first two tries end by an outage.
_WORKER = """
import os, signal
from typing import ClassVar
from celery.concurrency import get_implementation
from kombu.exceptions import OperationalError
from proctor.domain.errors import StoreNotReadyError
from proctor.domain.messages import Message
from proctor.runtime.messaging import tasks
from proctor.runtime.settings import Settings

class Step(Message):
    task: ClassVar[str] = "router.step_of_a_test"

outages = [OperationalError("no route to host"), StoreNotReadyError("the ledger did not answer")]
tasks._STORE_WAITS_S = ()

def step(message):
    print("taken, redelivered:", tasks.redelivered(), flush=True)
    if outages:
        raise outages.pop(0)
    print("done", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

def told(message, cause):
    print("told:", cause, flush=True)

tasks.handles(Step, given_up=told, failed=told)(step)
app = tasks.configure(Settings.from_environment())
app.conf.worker_redirect_stdouts = False
tasks.send(Step())
app.Worker(queues="router", pool_cls=get_implementation("solo"), without_gossip=True, without_mingle=True).start()
"""


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/11") as url:
        yield url


def test_a_message_whose_step_an_outage_ended_is_taken_again_at_once_and_nobody_is_told(
    tmp_path: Path, broker: str
) -> None:
    environment = {**Home(tmp_path, broker).environment, "PYTHONPATH": str(REPOSITORY / "services")}
    ran = subprocess.run(
        [sys.executable, "-c", _WORKER], env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    said = [line for line in ran.stdout.splitlines() if line.startswith(("taken", "done", "told"))]
    assert said == [
        "taken, redelivered: False",
        "taken, redelivered: False",
        "taken, redelivered: False",
        "done",
    ], ran.stderr[-3000:]
    with redis.Redis.from_url(broker) as client:
        assert client.llen("router") == 0
        # Nor do they count as tries in vain.
        assert not client.keys("proctor:tries:*")
