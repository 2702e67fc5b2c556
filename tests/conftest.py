"""Fixtures for every test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import valkey_server

# Tests run side by side, servers beside them: with a thread a core in each of these processes, torch's threads wait
# for each other and an answer takes ten times as long. Set before torch is imported, and inherited by the servers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Hypothesis' deadline measures the machine's load; pytest-timeout guards against hanging.
settings.register_profile("proctor", deadline=None)
settings.load_profile("proctor")


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Valkey server for the whole run; tests keep apart by the ids they use."""
    with valkey_server(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def bundle() -> Path:
    """The reference models and their benchmark as they are committed."""
    from proctor.runtime.settings import default_bundle

    return default_bundle()
