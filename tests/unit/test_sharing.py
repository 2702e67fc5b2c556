"""One cluster of a test run is started once, ends after the last worker that uses it, and is one run's at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.cluster.sharing import shared
from tests.support import wait_until


class Server:
    """Counts how often it was started, and whether it runs."""

    def __init__(self) -> None:
        self.starts = 0
        self.runs = False

    @contextmanager
    def started(self) -> Iterator[Path]:
        assert not self.runs
        self.starts, self.runs = self.starts + 1, True
        yield Path("kubeconfig")
        self.runs = False


class Worker:
    """Uses it until it is let go."""

    def __init__(self, pool: ThreadPoolExecutor, server: Server, folder: Path, run: str) -> None:
        self.has = threading.Event()
        self._let_go = threading.Event()
        self._done: Future[None] = pool.submit(self._work, server, folder, run)

    def _work(self, server: Server, folder: Path, run: str) -> None:
        with shared(folder, server.started, run) as found:
            assert found == Path("kubeconfig")
            assert server.runs
            self.has.set()
            self._let_go.wait(30)
            assert server.runs

    def let_go(self) -> None:
        self._let_go.set()

    @property
    def left(self) -> bool:
        return self._done.done()

    def check(self) -> None:
        self._done.result(30)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as found:
        yield found


def test_workers_of_one_run_have_one_and_who_started_it_leaves_last(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    server = Server()
    first = Worker(pool, server, tmp_path / "cluster", "run 1")
    assert first.has.wait(10)
    second = Worker(pool, server, tmp_path / "cluster", "run 1")
    assert second.has.wait(10)
    assert server.starts == 1
    first.let_go()
    assert not first.left
    second.let_go()
    second.check()
    first.check()
    assert not server.runs


def test_another_run_waits_until_it_is_free_and_starts_its_own(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    server = Server()
    ours = Worker(pool, server, tmp_path / "cluster", "run 1")
    assert ours.has.wait(10)
    other = Worker(pool, server, tmp_path / "cluster", "run 2")
    assert not other.has.wait(0.5)
    ours.let_go()
    ours.check()
    assert other.has.wait(10)
    assert server.starts == 2
    other.let_go()
    other.check()


def test_one_that_did_not_start_is_started_by_the_next_worker(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    def broken() -> AbstractContextManager[Path]:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"), shared(tmp_path / "cluster", broken, "run 1"):
        pass
    server = Server()
    next_one = Worker(pool, server, tmp_path / "cluster", "run 1")
    wait_until(next_one.has.is_set, timeout_s=10, what="the next worker to have it")
    next_one.let_go()
    next_one.check()
