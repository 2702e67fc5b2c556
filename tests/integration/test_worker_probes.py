"""`/livez` and `/readyz` of real workers, on a Valkey of their own."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import redis

from proctor.domain.messages import Reconcile
from tests.support import REPOSITORY, free_port, valkey_server, wait_until
from tests.worker_processes import Home, holding_model

#: What Celery on kombu 5.6.2 came to after a reconnect (celery#10502): the loop goes on, and looks at no socket of
#: Redis any more.
FORGETS_ITS_SOCKETS = """
import kombu.transport.redis as transport
register, loops = transport.Transport.register_with_event_loop, []
def forgetful(self, connection, loop):
    before = set(loop.on_tick)
    register(self, connection, loop)
    if loops:
        loop.on_tick.intersection_update(before)
    loops.append(loop)
transport.Transport.register_with_event_loop = forgetful
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """Its own, because connections are killed, and it is stopped."""
    folder = tmp_path / "valkey"
    folder.mkdir()
    with valkey_server(folder) as url:
        yield f"{url}/0"


#: The timetable sends nothing meanwhile.
SELDOM = {"PROCTOR_RECONCILE_INTERVAL_S": "800"}


class Probed(Home):
    """A home with a worker whose metrics port is probed."""

    def __init__(self, folder: Path, broker_url: str, **environment: str) -> None:
        folder.mkdir()
        super().__init__(folder, broker_url, PROCTOR_METRICS_TOKEN="a-token-that-probes-lack", **environment)
        self.port = free_port()
        self.options = ("--metrics-port", str(self.port))

    def probe(self, path: str) -> tuple[int, str]:
        answer = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=15)
        return answer.status_code, answer.text.strip()

    def probed_until(self, path: str, status: int) -> str:
        """What a probe says once it has this status; it asks as often as a kubelet would with a short period."""
        said: list[str] = []

        def has_it() -> bool:
            code, text = self.probe(path)
            said.append(text)
            return code == status

        wait_until(has_it, timeout_s=40, what=f"{path} with {status}")
        return said[-1]


def forgetful(folder: Path) -> str:
    made = folder / "first"
    made.mkdir()
    (made / "sitecustomize.py").write_text(FORGETS_ITS_SOCKETS)
    return str(made)


def test_a_worker_is_ready_and_live_without_a_token_while_its_metrics_need_one(tmp_path: Path, broker: str) -> None:
    home = Probed(tmp_path / "home", broker)
    with home.worker("scorer", *home.options):
        assert home.probe("/readyz") == (200, "ok")
        assert home.probe("/livez") == (200, "ok")
        assert home.probe("/metrics")[0] == 401


def test_a_worker_whose_sockets_are_forgotten_after_a_reconnect_is_not_live_while_messages_wait(
    tmp_path: Path, broker: str
) -> None:
    path = f"{forgetful(tmp_path)}:{REPOSITORY / 'services'}"
    home = Probed(tmp_path / "home", broker, PYTHONPATH=path, PROCTOR_STALL_S="2", **SELDOM)
    with home.worker("router", *home.options) as worker, redis.Redis.from_url(broker) as client:
        home.send(Reconcile())
        wait_until(lambda: "Task router.reconcile" in worker.log, what="a task before the reconnect")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        # Nothing waits: whatever became of the worker, nobody is the worse for it.
        assert home.probe("/livez") == (200, "ok")
        home.send(Reconcile())
        said = home.probed_until("/livez", 503)
        assert "with 1 messages waiting and 0 in hand" in said
        assert client.llen("router") == 1
        assert worker.process.poll() is None
        # Its own signs of life are all well, which is why there is this probe.
        assert home.probe("/readyz") == (200, "ok")


def test_a_worker_that_comes_back_after_its_broker_was_away_was_live_and_not_ready_meanwhile(
    tmp_path: Path,
) -> None:
    folder, port = tmp_path / "valkey", free_port()
    folder.mkdir()
    home = Probed(tmp_path / "home", f"redis://127.0.0.1:{port}/0", PROCTOR_STALL_S="1", **SELDOM)
    with ExitStack() as stack:
        with valkey_server(folder, port=port):
            worker = stack.enter_context(home.worker("router", *home.options))
        assert home.probed_until("/readyz", 503) in (
            "no answer from: broker",
            "it does not consume its queues",
        )
        until_s = time.monotonic() + 3
        while time.monotonic() < until_s:
            assert home.probe("/livez") == (200, "ok")
        with valkey_server(folder, port=port):
            home.probed_until("/readyz", 200)
            home.send(Reconcile())
            wait_until(lambda: "Task router.reconcile" in worker.log, what="a task after the outage")


def test_a_worker_inside_a_shard_is_live_for_as_long_as_its_deadline_lets_it_wait(tmp_path: Path, broker: str) -> None:
    home = Probed(tmp_path / "home", broker, PROCTOR_STALL_S="1")
    with holding_model() as model, home.worker("inference", "--concurrency", "1", *home.options):
        home.send_shards(model.url, "s1")
        home.send_shards(model.url, "s2")
        wait_until(lambda: model.held > 0, what="the shard at the model")
        until_s = time.monotonic() + 4
        while time.monotonic() < until_s:
            assert home.probe("/livez") == (200, "ok")
        model.release()
        home.answers(2)
        assert home.probe("/livez") == (200, "ok")


def test_a_task_that_hangs_in_a_child_of_the_worker_is_seen(tmp_path: Path, broker: str) -> None:
    made = tmp_path / "first"
    made.mkdir()
    # Within a message, and without a step: a lock that nobody gives back.
    (made / "sitecustomize.py").write_text(
        "import threading, proctor.router.reconcile as reconciling\n"
        "reconciling.reconcile = lambda dispatcher: threading.Event().wait()\n"
    )
    path = f"{made}:{REPOSITORY / 'services'}"
    home = Probed(tmp_path / "home", broker, PYTHONPATH=path, PROCTOR_STALL_S="2")
    with home.worker("router", "--concurrency", "2", *home.options) as worker:
        home.send(Reconcile())
        assert "in hand" in home.probed_until("/livez", 503)
        worker.signal(signal.SIGKILL)


def test_a_worker_that_leaves_is_not_ready(tmp_path: Path, broker: str) -> None:
    home = Probed(tmp_path / "home", broker)
    with holding_model() as model, home.worker("inference", "--concurrency", "1", *home.options) as worker:
        home.send_shards(model.url, "s1")
        wait_until(lambda: model.held > 0, what="the shard at the model")
        worker.signal(signal.SIGTERM)
        assert home.probed_until("/readyz", 503) == "it leaves"
        assert home.probe("/livez") == (200, "ok")
        model.release()
        assert worker.left() == 0
