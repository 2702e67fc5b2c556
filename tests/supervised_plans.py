"""Plans in the hands of a real supervisor."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proctor.localstack.service import Plan, Service
from proctor.localstack.state import locked
from proctor.localstack.supervised import Supervised


def plan_of(home: Path, *services: Service) -> Plan:
    """A plan with a token of its own, as every stack has: by it its processes are found, and ended."""
    return Plan(home=home, token=uuid.uuid4().hex, services=services)


@contextmanager
def supervised(plan: Plan) -> Iterator[Supervised]:
    """A plan all of whose services are ready; it is stopped at exit, pass or fail.

    Raises:
        StackError: a service failed.
    """
    with locked(plan.home) as lock:
        running = Supervised.start(plan, lock)
    try:
        yield running
    finally:
        running.stop()
