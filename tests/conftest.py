"""Fixtures for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.installed_plugins import Plugins
from tests.postgres_server import PostgresServer, postgres_server
from tests.reports import travelling
from tests.scheduling import ROOMS, Scheduling, room_of
from tests.support import heed_signals, valkey_server

heed_signals()

# Tests run side by side, servers beside them: with a thread a core in each of these processes, torch's threads wait
# for each other and an answer takes ten times as long. Set before torch is imported, and inherited by the servers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Hypothesis' deadline measures the machine's load; pytest-timeout guards against hanging.
settings.register_profile("proctor", deadline=None)
settings.load_profile("proctor")

_MARKED = {"chaos": "faults", "cluster": "cluster", "models": "models"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """All of a room that has a target of make of its own is of that target."""
    room = room_of(item.nodeid)
    if room in _MARKED:
        item.add_marker(_MARKED[room])
    if room == "cluster":
        # Of the cluster's start too, of images that are built the first time, and of the other lane, for whose end
        # waits who started the cluster.
        item.add_marker(pytest.mark.timeout(2700))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by their rooms; within a room they stay as they are."""
    items.sort(key=lambda item: ROOMS.index(room_of(item.nodeid)))


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of every later collection of garbage, which goes through all of it."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Until the session has ended by itself it has not: see `pytest_sessionfinish`."""
    _note_end(session, "not yet")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Note how the session ended, for .ci/run: only of one that came to its end may what failed be all that failed."""
    _note_end(session, pytest.ExitCode(exitstatus).name)


def _note_end(session: pytest.Session, how: str) -> None:
    # Neither workers nor who runs without a cache (`-p no:cacheprovider`) have one to write to.
    cache = None if hasattr(session.config, "workerinput") else getattr(session.config, "cache", None)
    if cache is not None:
        cache.set("proctor/ended", how)


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """What a worker reports, in characters that can travel: half of a pair in a prompt would end the whole session."""
    return travelling((yield))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """How tests are given to workers, where there are several."""
    return Scheduling(config, log)


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Valkey server for the whole run; tests keep apart by the ids they use."""
    with valkey_server(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server for the whole run; each test has a database of its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def records_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a record store may be that is not there yet, on each of the databases that it may be in."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'records.sqlite'}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def bundle() -> Path:
    """The reference models and their benchmark as they are committed."""
    from proctor.runtime.settings import default_bundle

    return default_bundle()


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Distributions with plug-ins, for this test alone."""
    found = Plugins(tmp_path / "plugins", monkeypatch)
    yield found
    monkeypatch.undo()
    found.forget()
