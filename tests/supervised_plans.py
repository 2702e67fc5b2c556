"""Plans in the hands of a real supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proctor.localstack.service import Plan
from proctor.localstack.state import locked
from proctor.localstack.supervised import Supervised


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
