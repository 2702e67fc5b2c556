"""Fixtures of the tests on a real cluster (`make test-cluster`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.kit import Cluster, any_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Kubernetes with KEDA, for the whole run; tests keep apart by namespaces."""
    with any_cluster() as found:
        yield found
