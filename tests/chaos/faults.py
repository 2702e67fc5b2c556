"""The faults of a chaos run: each is done to a cluster, held for a while, and undone."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import redis

from tests.chaos import hooks
from tests.chaos.cluster import Cluster, Role
from tests.chaos.crash_points import EVENTS_QUEUE, QUEUES, TICK, CrashPoint
from tests.support import wait_until


class Fault(Protocol):
    """Something that goes wrong."""

    @property
    def name(self) -> str:
        """Its kind, as it is counted."""
        ...

    def hold_s(self, cluster: Cluster) -> float:
        """How long it lasts."""
        ...

    def inject(self, cluster: Cluster) -> bool:
        """Begin; False where there was nothing that it could be done to."""
        ...

    def undo(self, cluster: Cluster) -> None:
        """End."""
        ...


def recorded(cluster: Cluster) -> int:
    """How many answers of shards were recorded so far."""
    return sum(event["event"] == "record" for event in cluster.control.events())


@dataclass(frozen=True)
class _Momentary:
    """A fault without an end of its own."""

    def hold_s(self, cluster: Cluster) -> float:
        return 0.0

    def undo(self, cluster: Cluster) -> None:
        return None


@dataclass(frozen=True)
class KillWorker(_Momentary):
    """SIGKILL of a whole worker."""

    role: Role

    @property
    def name(self) -> str:
        return f"worker killed ({self.role.service})"

    def inject(self, cluster: Cluster) -> bool:
        cluster.control.log("killed", victims=[cluster.pids[self.role.name], *cluster.children(self.role)])
        cluster.kill(self.role)
        return True


@dataclass(frozen=True)
class KillChild(_Momentary):
    """SIGKILL of a pool's child under a parent that lives on."""

    role: Role
    draw: int
    name: str = "child killed"

    def inject(self, cluster: Cluster) -> bool:
        children = cluster.children(self.role)
        if not children:
            return False
        victim = children[self.draw % len(children)]
        cluster.control.log("killed", victims=[victim])
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        return True


@dataclass(frozen=True)
class PauseWorker:
    """SIGSTOP of a worker until after its lease and its message's visibility timeout; then it simply goes on."""

    role: Role
    name: str = "worker paused past the visibility timeout"

    def hold_s(self, cluster: Cluster) -> float:
        return 1.5 * cluster.settings.timing.visibility_timeout_s

    def inject(self, cluster: Cluster) -> bool:
        cluster.signal(self.role, signal.SIGSTOP)
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.signal(self.role, signal.SIGCONT)


@dataclass(frozen=True)
class RestartBroker:
    """SIGKILL of Valkey, which comes back over its append-only file."""

    down_s: float = 0.5
    name: str = "broker restarted"

    def hold_s(self, cluster: Cluster) -> float:
        return self.down_s

    def inject(self, cluster: Cluster) -> bool:
        cluster.stop_broker()
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.start_broker()


@dataclass(frozen=True)
class ResetConnections(_Momentary):
    """Every connection to the broker and the ledger breaks."""

    name: str = "connections reset"

    def inject(self, cluster: Cluster) -> bool:
        with suppress(redis.RedisError):
            for kind in ("normal", "pubsub"):
                cluster.broker.client_kill_filter(_type=kind)
        return True


@dataclass(frozen=True)
class Redeliver(_Momentary):
    """The broker delivers again what is in hand, as it does when a visibility timeout is over before the work is."""

    name: str = "message delivered twice"

    def inject(self, cluster: Cluster) -> bool:
        with suppress(redis.RedisError):
            held = [json.loads(text) for text in cluster.broker.hvals("unacked")]
            for message, _, queue in held:
                message["properties"]["delivery_info"]["redelivered"] = True
                # To the front, as kombu does. An event's routing key is not the name of its queue.
                cluster.broker.rpush(queue if queue in QUEUES else EVENTS_QUEUE, json.dumps(message))
            return bool(held)
        return False


@dataclass(frozen=True)
class LoseMessage(_Momentary):
    """A message is taken from its queue and reaches nobody, as when the broker's reply is dropped on its way."""

    task: str = ""
    """Only a message of this task; any by default, but for the one that comes by itself."""
    name: str = "message lost"

    def inject(self, cluster: Cluster) -> bool:
        with suppress(redis.RedisError):
            for queue in (*QUEUES, EVENTS_QUEUE):
                waiting: Any = cluster.broker.lrange(queue, 0, -1)
                for text in waiting:
                    task = json.loads(text)["headers"].get("task")
                    if task != TICK and self.task in ("", task):
                        return bool(cluster.broker.lrem(queue, 1, text))
        return False


@dataclass(frozen=True)
class Standing:
    """An order that a model server or a store finds for as long as it stands."""

    name: str
    order: str
    seconds: float
    value: str = "1"

    def hold_s(self, cluster: Cluster) -> float:
        return self.seconds

    def inject(self, cluster: Cluster) -> bool:
        cluster.control.order(self.order, self.value)
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.control.withdraw(self.order)


@dataclass(frozen=True)
class KillModel:
    """The model server dies, and is back after a moment."""

    down_s: float = 1.0
    name: str = "model server killed"

    def hold_s(self, cluster: Cluster) -> float:
        return self.down_s

    def inject(self, cluster: Cluster) -> bool:
        cluster.stop_model()
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.start_model()


@dataclass(frozen=True)
class EndpointsAway:
    """Every model is away for longer than a worker tries again: the breakers of their pools open, and close again."""

    away_s: float = 3.0
    name: str = "endpoint away"

    def hold_s(self, cluster: Cluster) -> float:
        return self.away_s

    def inject(self, cluster: Cluster) -> bool:
        cluster.control.order(hooks.BROKEN_MODEL)
        cluster.stop_model()
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.control.withdraw(hooks.BROKEN_MODEL)
        cluster.start_model()


@dataclass(frozen=True)
class AskToLeave:
    """SIGTERM of a worker with a shard in hand: it hands back what it cannot finish in its grace, and leaves."""

    role: Role
    name: str = "worker asked to leave"

    def hold_s(self, cluster: Cluster) -> float:
        return cluster.settings.timing.grace_s + 1.0

    def inject(self, cluster: Cluster) -> bool:
        cluster.ask_to_leave(self.role)
        return True

    def undo(self, cluster: Cluster) -> None:
        # A last look where it was asked only now: its grace is not over.
        cluster.tend_until(lambda: cluster.see_off(self.role), timeout_s=3 * cluster.settings.timing.grace_s)


@dataclass(frozen=True)
class KillTriton:
    """The Triton server dies with its stubs, and starts again after a moment. Nothing where a run has none."""

    down_s: float = 1.0
    name: str = "Triton killed"

    def hold_s(self, cluster: Cluster) -> float:
        return self.down_s

    def inject(self, cluster: Cluster) -> bool:
        if cluster.triton is not None:
            cluster.triton.kill()
        return cluster.triton is not None

    def undo(self, cluster: Cluster) -> None:
        if cluster.triton is not None:
            cluster.triton.start(wait=False)


@dataclass(frozen=True)
class WrongClock:
    """A worker comes back with a clock that is an hour off, and stays so for a while."""

    role: Role
    seconds: float
    name: str = "clock wrong by an hour"

    def hold_s(self, cluster: Cluster) -> float:
        return 3.0

    def inject(self, cluster: Cluster) -> bool:
        cluster.wrong_clock(self.role, self.seconds)
        return True

    def undo(self, cluster: Cluster) -> None:
        cluster.wrong_clock(self.role, 0.0)


@dataclass(frozen=True)
class CrashAt(_Momentary):
    """The next worker that comes to a boundary dies there."""

    point: CrashPoint

    @property
    def name(self) -> str:
        return f"crash at {self.point.name}"

    def inject(self, cluster: Cluster) -> bool:
        cluster.control.order(f"crash-{self.point.name}")
        return True


@dataclass(frozen=True)
class FailOver(_Momentary):
    """Valkey dies, and a replica takes over its address that had not heard of the last answers.

    The model is held while the replica is made and while Valkey is changed: by lengths of time alone, a slow machine
    let audits end that were to be under way.
    """

    unheard: int
    """Shards whose record the replica lacks, at least."""
    name: str = "failed over to a replica that lags"

    def inject(self, cluster: Cluster) -> bool:
        cluster.control.order(hooks.HELD_MODEL)
        cluster.start_replica()
        cluster.cut_replica_off()
        enough = recorded(cluster) + self.unheard
        cluster.control.withdraw(hooks.HELD_MODEL)
        wait_until(lambda: recorded(cluster) >= enough, what="records that the replica does not hear of")
        cluster.control.order(hooks.HELD_MODEL)
        cluster.fail_over()
        cluster.control.withdraw(hooks.HELD_MODEL)
        return True


@dataclass(frozen=True)
class EmptyValkey(_Momentary):
    """Everything in Valkey is gone: ledger, presence, messages and queues."""

    name: str = "Valkey emptied"

    def inject(self, cluster: Cluster) -> bool:
        cluster.ledger.flushall()
        return True
