"""A worker is ready when all of its parts run, and ends with an error when one of them has died."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu import Connection

from proctor.domain.messages import Reconcile
from tests.support import REPOSITORY, free_port, wait_until
from tests.worker_processes import Home, flushed

#: Imported by the worker before anything else: a part dies as soon as the file is there.
DYING = {
    "timetable": """
import celery.beat
tick = celery.beat.Scheduler.tick
def dies(self, *arguments, **options):
    if there():
        raise RuntimeError("the timetable is torn")
    return min(tick(self, *arguments, **options), 0.1)
celery.beat.Scheduler.tick = dies
""",
    "metrics server": """
import socketserver
def dies(self):
    if there():
        raise RuntimeError("the socket is gone")
socketserver.BaseServer.service_actions = dies
""",
    "pool": """
import billiard.pool
repopulate = billiard.pool.Pool._repopulate_pool
def dies(self, *arguments, **options):
    return None if there() else repopulate(self, *arguments, **options)
billiard.pool.Pool._repopulate_pool = dies
""",
}


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    with flushed(f"{valkey_url}/9") as url:
        yield url


def home_where(folder: Path, broker_url: str, program: str, **environment: str) -> Home:
    """A home whose workers run a program first."""
    made = folder / "first"
    made.mkdir()
    head = f"import pathlib\ndef there():\n    return pathlib.Path({str(folder / 'die')!r}).exists()\n"
    (made / "sitecustomize.py").write_text(head + program)
    path = os.pathsep.join([str(made), str(REPOSITORY / "services")])
    home = folder / "home"
    home.mkdir()
    return Home(home, broker_url, PYTHONPATH=path, **environment)


def test_a_router_alone_in_a_fresh_home_runs_its_reconciler(tmp_path: Path, broker: str) -> None:
    home = Home(tmp_path / "home", broker, PROCTOR_RECONCILE_INTERVAL_S="0.3")
    home.folder.mkdir()
    with home.worker("router") as router:
        wait_until(lambda: router.log.count("Task router.reconcile") >= 2, what="the reconciler")
        router.signal(signal.SIGTERM)
        assert router.left() == 0


def test_a_worker_that_is_told_to_leave_ends_its_parts_without_an_error(tmp_path: Path, broker: str) -> None:
    home = Home(tmp_path / "home", broker, PROCTOR_RECONCILE_INTERVAL_S="0.1")
    home.folder.mkdir()
    with home.worker("router", "--concurrency", "2", "--metrics-port", str(free_port())) as router:
        router.signal(signal.SIGTERM)
        assert router.left() == 0
        assert "has died" not in router.log


@pytest.mark.parametrize(
    ("service", "part", "options"),
    [
        ("router", "timetable", ()),
        ("scorer", "metrics server", ("--metrics-port",)),
        ("scorer", "pool", ("--concurrency", "2")),
    ],
)
def test_a_worker_of_which_a_part_dies_ends_with_an_error(
    service: str, part: str, options: tuple[str, ...], tmp_path: Path, broker: str
) -> None:
    home = home_where(tmp_path, broker, DYING[part])
    port = (str(free_port()),) if options[-1:] == ("--metrics-port",) else ()
    with home.worker(service, *options, *port) as worker:
        (tmp_path / "die").touch()
        if part == "pool":
            for child in children(worker.pid):
                os.kill(child, signal.SIGKILL)
        assert worker.left() == 1
        assert f"the {service} worker ends with an error: its {part} has died" in worker.log
        assert not (home.folder / "run" / f"worker-{service}.ready").exists()


def test_a_worker_of_which_a_part_never_runs_is_never_ready(tmp_path: Path, broker: str) -> None:
    program = "import celery.beat\ndef dies(*_, **__):\n    raise OSError('no timetable')\n"
    home = home_where(tmp_path, broker, program + "celery.beat.Scheduler.__init__ = dies\n")
    done = subprocess.run(home.command("router"), env=home.environment, capture_output=True, text=True, timeout=40)
    assert done.returncode == 1, done.stderr
    assert "its timetable has died" in done.stderr
    assert not (home.folder / "run" / "worker-router.ready").exists()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_only_worker_of_a_service_takes_again_what_the_former_one_had_in_hand(tmp_path: Path, broker: str) -> None:
    home = Home(tmp_path, broker, PROCTOR_SOLE_WORKER="1")
    with redis.Redis.from_url(broker) as client:
        home.send(Reconcile())
        with Connection(broker) as connection:
            with connection.SimpleQueue("scorer") as scorer:
                scorer.put({})
            channel = connection.channel()
            for queue in ("router", "scorer"):
                # Taken by somebody who is killed before a word is said.
                assert channel.basic_get(queue) is not None
            channel.qos._delivered.clear()
            assert client.hlen("unacked") == 2
        with home.worker("router") as router:
            wait_until(lambda: "Task router.reconcile" in router.log, what="the message")
            assert "1 that the former worker had in hand are taken again" in router.log
        # The worker of another service may be alive and at it.
        assert client.hlen("unacked") == 1
