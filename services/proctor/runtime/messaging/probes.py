"""What a worker tells its platform: whether it is ready, and whether it gets on.

Ready is a worker that consumes, of which all parts run, and whose broker, ledger and record store answer. Live is one
that is not stalled (`proctor.runtime.messaging.stall`), whatever is away: another process would find it away too.
Nothing is kept open between two looks: processes that are forked later would inherit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

import redis
from celery.worker import state as worker_state
from kombu.exceptions import OperationalError

from proctor.domain.errors import ProctorError, StoreError
from proctor.runtime.messaging.stall import Stall
from proctor.runtime.messaging.worker_parts import WorkerParts
from proctor.runtime.metrics.probe_pages import LIVEZ, READYZ, probe_page
from proctor.runtime.metrics.server import Application
from proctor.runtime.progress import Progress
from proctor.runtime.settings import Settings

#: A probe waits no longer for a server that accepts and does not answer.
_TIMEOUT_S: Final = 2.0


class WorkerProbes:
    """The probes of the worker of this process.

    Args:
        settings: the worker's.
        parts: what it consists of.
        progress: its steps.
        queues: where its messages lie.
        keeps_records: whether it uses the record store.
    """

    def __init__(
        self, settings: Settings, parts: WorkerParts, progress: Progress, queues: Sequence[str], *, keeps_records: bool
    ) -> None:
        self._settings = settings
        self._parts = parts
        self._queues = queues
        self._stall = Stall(settings.timing.stall_s, self._waiting, _in_hand, progress)
        self._stores: dict[str, Callable[[], object]] = {"broker": self._waiting, "ledger": self._ask_ledger}
        if keeps_records:
            self._stores["records"] = self._ask_records

    @property
    def pages(self) -> Mapping[str, Application]:
        """Their pages."""
        return {LIVEZ: probe_page(self.stalled), READYZ: probe_page(self.unready)}

    def stalled(self) -> str | None:
        """Why the worker needs to be started anew; None where it does not."""
        if not self._parts.has_begun or self._parts.is_leaving:
            return None
        return self._stall.look()

    def unready(self) -> str | None:
        """Why the worker cannot do its work now; None where it can."""
        if self._parts.is_leaving:
            return "it leaves"
        if not self._parts.consumes:
            return "it does not consume its queues"
        if dead := self._parts.dead():
            return f"dead: {', '.join(dead)}"
        for name, ask in self._stores.items():
            try:
                ask()
            except ProctorError:
                # No more: a message of a store's may hold what nobody without a token should read.
                return f"no answer from: {name}"
        return None

    def _waiting(self) -> int:
        return messages_waiting(self._parts.app, self._queues)

    def _ask_ledger(self) -> None:
        client = redis.Redis.from_url(
            self._settings.ledger_url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        )
        with closing(client):
            try:
                client.ping()
            except redis.RedisError as error:
                raise StoreError("the ledger does not answer") from error

    def _ask_records(self) -> None:
        # Not by an inference worker, which has none, and none of SQLAlchemy in its memory.
        import sqlalchemy as sa

        from proctor.runtime.records.engine import open_engine

        engine = open_engine(self._settings.records_url, poolclass=sa.pool.NullPool)
        try:
            with engine.connect() as connection:
                connection.execute(sa.select(sa.literal(1)))
        except sa.exc.SQLAlchemyError as error:
            raise StoreError("the record store does not answer") from error


def messages_waiting(app: Any, queues: Sequence[str]) -> int:
    """Messages that lie in the broker's queues, and that no worker has taken.

    Raises:
        StoreError: the broker does not answer.
    """
    timeouts = {"socket_timeout": _TIMEOUT_S, "socket_connect_timeout": _TIMEOUT_S}
    try:
        with app.connection_for_read(transport_options=timeouts) as connection:
            channel = connection.channel()
            return sum(channel._size(queue) for queue in queues)
    except (OperationalError, redis.RedisError, OSError) as error:
        raise StoreError("the broker does not answer") from error


def _in_hand() -> int:
    return len(worker_state.reserved_requests)
