"""Which workers live, and what each of them has in hand: so that what a dead one had goes to another at once.

Beside the ledger, whose leases are the guarantee; this only makes them quicker than they are long. All keys share the
hash tag `{presence}`, and with it a slot of a Redis Cluster:

| key | type | holds |
|---|---|---|
| `proctor:presence:{presence}:seen` | sorted set | workers, by when they were last heard of (server's ms) |
| `proctor:presence:{presence}:workers` | hash | worker → "slots service" |
| `proctor:presence:{presence}:held` | hash | `["audit","stage","shard",attempt]` → the worker that has it in hand |

Every key expires a day after the last word of any worker.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar, NamedTuple

from proctor.domain.errors import StoreError
from proctor.runtime.redis import scripts
from proctor.runtime.redis.scripted import ScriptedRedis, milliseconds
from proctor.runtime.redis.scripts import HeldField, PresenceKey
from proctor.runtime.timing import DEFAULT_TIMING

logger = logging.getLogger(__name__)

KEY_TTL = timedelta(days=1)
_TTL_S = int(KEY_TTL.total_seconds())
SILENCE = timedelta(seconds=DEFAULT_TIMING.presence_s)
#: A worker says so often within the time of its silence that it lives: three may go astray.
_ANNOUNCEMENTS = 4
#: A worker that was silent for so many times that long is cleared away.
_KEPT_SILENCES = 50
#: In a worker's place where there is none; no worker has this name.
_NOBODY = "-"
#: How long a count of slots is good for: it is wanted many times a second, and workers come and go in minutes.
_SLOTS_FRESH_S = 1.0


class Held(NamedTuple):
    """A shard's attempt that a worker has in hand."""

    audit_id: str
    stage: str
    shard_id: str
    attempt: int


class Presence(ScriptedRedis):
    """The workers behind a Redis URL. Raises StoreError when the server cannot be reached.

    Args:
        url: the ledger's.
        silence: a worker that was not heard of for so long is lost.
    """

    _NAME: ClassVar[str] = "list of workers"

    def __init__(self, url: str, *, silence: timedelta = SILENCE) -> None:
        super().__init__(url)
        self._silence_ms = milliseconds(silence)
        self._slots: dict[str, tuple[float, int]] = {}

    def announce(self, worker_id: str, service: str, slots: int) -> None:
        """Say that a worker of a service lives and takes `slots` messages at a time."""
        kept_ms = self._silence_ms * _KEPT_SILENCES
        self._run(scripts.ANNOUNCE, _key, scripts.AnnounceArguments(_TTL_S, worker_id, f"{slots} {service}", kept_ms))

    def withdraw(self, worker_id: str) -> None:
        """A worker leaves. What it still has in hand is lost from now on."""
        self._run(scripts.WITHDRAW, _key, scripts.WorkerArguments(worker_id))

    def holding(self, worker_id: str, held: Sequence[Held]) -> None:
        """A worker has taken these in hand."""
        self._run(scripts.HOLD, _key, scripts.HoldArguments(_TTL_S, worker_id), _rows(held))

    def released(self, worker_id: str, held: Sequence[Held]) -> None:
        """A worker is done with these; what another one holds by now stays with it."""
        self._run(scripts.RELEASE, _key, scripts.WorkerArguments(worker_id), _rows(held))

    def begun(self, held: Sequence[Held]) -> set[Held]:
        """Those of them that some worker, living or dead, has taken in hand, and that were not seen to since."""
        pipe = self._pipeline()
        pipe.hmget(_key("held"), [*map(_field, held)])
        workers = self._reply(pipe)[0]
        return {one for one, worker in zip(held, workers, strict=True) if worker is not None}

    def abandoned(self, held: Sequence[Held]) -> None:
        """No worker is at these any more, and no answer told so: they are lost from now on."""
        pipe = self._pipeline()
        pipe.hset(_key("held"), mapping={_field(one): _NOBODY for one in held})
        pipe.expire(_key("held"), _TTL_S)
        self._reply(pipe)

    def slots(self, service: str) -> int:
        """How many messages the living workers of a service take at a time, together; at most a second old."""
        found = self._slots.get(service)
        if found is None or time.monotonic() - found[0] > _SLOTS_FRESH_S:
            living = self._run(scripts.LIVING, _key, scripts.SilenceArguments(self._silence_ms))
            entries = (entry.split(" ", 1) for entry in living)
            found = (time.monotonic(), sum(int(slots) for slots, of in entries if of == service))
            self._slots[service] = found
        return found[1]

    def lost(self) -> list[Held]:
        """What workers had in hand that are silent or gone; told again and again until it is forgotten."""
        fields = self._run(scripts.LOST, _key, scripts.SilenceArguments(self._silence_ms))
        return sorted(Held(*json.loads(field)) for field in fields)

    def forget(self, held: Sequence[Held]) -> None:
        """Strike out what was lost and has been seen to, whoever had it."""
        if not held:
            return
        pipe = self._pipeline()
        pipe.hdel(_key("held"), *map(_field, held))
        self._reply(pipe)


def new_worker_id() -> str:
    """An id for this process; a worker that comes after it on the same machine has another."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def announcing(presence: Presence, worker_id: str, service: str, slots: int) -> Iterator[None]:
    """Announce a worker while the block runs, from a thread of its own, and withdraw it afterwards.

    An announcement that does not get through is logged: the worker works on, and at worst its shards are redone.
    """
    left = threading.Event()
    interval_s = presence._silence_ms / 1000 / _ANNOUNCEMENTS

    def announce() -> None:
        while True:
            with tolerated("announce this worker"):
                presence.announce(worker_id, service, slots)
            if left.wait(interval_s):
                return

    thread = threading.Thread(target=announce, name="presence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()
        with tolerated("withdraw this worker"):
            presence.withdraw(worker_id)


@contextmanager
def tolerated(doing: str) -> Iterator[None]:
    """Log that Redis did not take in what was said, and go on: the ledger's leases see to it later."""
    try:
        yield
    except StoreError as error:
        logger.warning("could not %s: %s", doing, error)


def _key(name: PresenceKey) -> str:
    return f"proctor:presence:{{presence}}:{name}"


def _rows(held: Sequence[Held]) -> Iterator[HeldField]:
    return (HeldField(_field(one)) for one in held)


def _field(held: Held) -> str:
    return json.dumps(held, separators=(",", ":"))
