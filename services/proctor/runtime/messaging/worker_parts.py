"""What a worker process consists of beside its tasks, and the end of the worker where a part of it has died.

Celery goes on without its timetable, and without children; prometheus_client without its server. Nobody would know:
the reconciler would never look again. So a worker is ready when all of its parts are, and ends with an error when one
is dead, for whoever started it to start it again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final, NamedTuple

from celery import bootsteps
from celery.beat import EmbeddedService, Scheduler
from celery.worker import state as worker_state

from proctor.domain.errors import ExitCode
from proctor.runtime.processes import started_at_ticks

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.2
#: Between two looks whether it is this process that leads.
_FOLLOWS_S: Final = 1.0
#: A pool whose children were all killed has others in a moment.
_DEAD_FOR_S: Final = 5.0
#: What a worker may take to leave by itself, on top of its grace, with a part of it dead.
_MARGIN_S: Final = 10.0


class Part(NamedTuple):
    """A part of a worker."""

    name: str
    lives: Callable[[], bool]
    dead_for_s: float = 0.0
    """For how long it may be dead before it counts."""


class LedScheduler(Scheduler):  # type: ignore[misc]  # Celery has no type information
    """A schedule in memory of which nothing is due while another process leads; then what is overdue is so at once."""

    def tick(self, *arguments: Any, **named: Any) -> Any:
        """Send what is due; gives the seconds until the next look."""
        if not Timetable.leads():
            return _FOLLOWS_S
        return super().tick(*arguments, **named)


class Timetable(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no type information
    """Celery's beat as a thread of the worker, with its schedule in memory.

    Celery's own way (`--beat`) is a child process with a file: it dies by itself when it cannot open that, or outlives
    a worker that is killed, and in neither case does anybody know.
    """

    requires = ("celery.worker.components:Pool",)
    leads: ClassVar[Callable[[], bool]] = staticmethod(lambda: True)
    """Whether this process is the one that sends; asked before each look."""

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        worker.timetable = None

    def start(self, worker: Any) -> None:
        """Begin to send what is due."""
        worker.timetable = EmbeddedService(worker.app, thread=True, scheduler_cls=LedScheduler)
        worker.timetable.start()

    def stop(self, worker: Any) -> None:
        """Send nothing more. The thread sleeps until something is due, and ends with the process."""
        if worker.timetable is not None:
            worker.timetable.service.stop(wait=False)


class WorkerParts:
    """The parts of the worker of this process.

    Args:
        service: its name, for the log.
        leave_s: what it may take to leave once a part is dead; past it, it is ended where it is.
        has_timetable: whether beat is one of its parts.
    """

    def __init__(self, service: str, *, leave_s: float, has_timetable: bool) -> None:
        self.exit_code: int | None = None
        """Set when a part was found dead."""
        self._service = service
        self._leave_s = leave_s
        self._has_timetable = has_timetable
        self._parts: list[Part] = []
        self._dead_since: dict[str, float] = {}
        self._worker: Any = None

    def add(self, part: Part) -> None:
        """One part more, that lives by now."""
        self._parts.append(part)

    def add_celery(self, worker: Any) -> None:
        """What Celery has made for this worker, once it consumes."""
        self._worker = worker
        self.add(Part("pool", lambda: _pool_lives(worker.pool), _DEAD_FOR_S))
        if self._has_timetable:
            self.add(Part("timetable", lambda: worker.timetable is not None and worker.timetable.is_alive()))

    @property
    def app(self) -> Any:
        """The Celery application that this worker runs, once it consumes."""
        return self._worker.app

    @property
    def has_begun(self) -> bool:
        """Whether it has consumed its queues, be it now or before its connection broke."""
        return self._worker is not None

    @property
    def consumes(self) -> bool:
        """Whether it consumes its queues now."""
        return self.has_begun and getattr(self._worker.consumer, "task_consumer", None) is not None

    def dead(self) -> list[str]:
        """The names of the parts that do not run at this moment."""
        return [part.name for part in tuple(self._parts) if not part.lives()]

    @contextmanager
    def watched(self, consuming: threading.Event, ready: Callable[[], None]) -> Iterator[None]:
        """Look after the parts while the block runs.

        Args:
            consuming: set when the worker takes messages.
            ready: called once it does and all parts live.
        """
        left = threading.Event()

        def watch() -> None:
            told = False
            while not self.is_leaving:
                dead = [part for part in tuple(self._parts) if not part.lives()]
                if consuming.is_set() and not dead and not told:
                    told = True
                    ready()
                if gone := self._for_good(dead):
                    return self._end(gone, left)
                if left.wait(_POLL_S):
                    return

        thread = threading.Thread(target=watch, name="parts", daemon=True)
        thread.start()
        try:
            yield
        finally:
            left.set()
            thread.join()

    @property
    def is_leaving(self) -> bool:
        """Whether Celery ends the parts itself, one after the other, while tasks come to their end."""
        return self._worker is not None and self._worker.blueprint.state != bootsteps.RUN

    def _for_good(self, dead: list[Part]) -> Part | None:
        now_s = time.monotonic()
        self._dead_since = {part.name: self._dead_since.get(part.name, now_s) for part in dead}
        return next((part for part in dead if now_s - self._dead_since[part.name] >= part.dead_for_s), None)

    def _end(self, part: Part, left: threading.Event) -> None:
        logger.critical("the %s worker ends with an error: its %s has died", self._service, part.name)
        self.exit_code = ExitCode.FAILURE
        # Celery's own order to leave, which its loop looks at now and then.
        worker_state.should_stop = int(ExitCode.FAILURE)
        if not left.wait(self._leave_s + _MARGIN_S):
            logger.critical("the %s worker does not leave by itself, and is ended", self._service)
            logging.shutdown()
            os._exit(ExitCode.FAILURE)


def _pool_lives(pool: Any) -> bool:
    """Whether a pool can still run a task: of processes, when there is one; of threads, until it is broken."""
    processes = getattr(pool, "_pool", None)
    if processes is not None:
        # Not by asking Celery's own handles, which would take the exit status from whoever waits for it there.
        return any(started_at_ticks(child.pid) is not None for child in tuple(processes._pool))
    return not getattr(getattr(pool, "executor", None), "_broken", False)
