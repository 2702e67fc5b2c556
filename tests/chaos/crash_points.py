"""The boundaries of a run at which a worker may die, each reached in the worker's own process.

A boundary is armed by an order (`Control.order("crash-<name>")`). The first worker that comes to it takes the order and
kills itself with SIGKILL, so that nothing of it, no `finally` and no exit handler, runs on.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.chaos.control import Control


class CrashPoint(NamedTuple):
    """One boundary: between a call and what follows it, or between a call and what went before."""

    name: str
    service: str
    target: str
    """`module:attribute` or `module:Class.attribute` of the call."""
    after: bool = True
    when: Callable[[Any, tuple[Any, ...]], bool] = lambda result, arguments: True
    """Whether this call is the one that is meant, by its result (None before it) and arguments."""


_DELIVER, _ACK = "kombu.transport.virtual.base:Transport._deliver", "celery.worker.request:Request.acknowledge"
_LEDGER, _RECORDS = "proctor.router.ledger.store:Ledger", "proctor.runtime.records.store:Records"
_POOLS = "proctor.router.pools.store:Pools"
SERVICES = ("router", "perturbation", "inference", "scorer", "registry")
#: Searches of training data, which the workers of perturbation take from a queue of their own.
SEARCHES_QUEUE = "exposure"
QUEUES = (*SERVICES, SEARCHES_QUEUE)
#: Decisions on their way to the registry, which makes tasks of them.
EVENTS_QUEUE = "proctor.events.registry"


#: The message that comes by itself; losing one of those proves nothing.
TICK = "router.reconcile"


def _is_fetched(result: Any, arguments: tuple[Any, ...]) -> bool:
    _, message, queue = arguments
    return queue in SERVICES and message["headers"].get("task") != TICK


def _is_a_search(result: Any, arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[2] == SEARCHES_QUEUE)


def _is_acknowledged(result: Any, arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[0].name != TICK)


def _moved_to(state: str) -> Callable[[Any, tuple[Any, ...]], bool]:
    return lambda result, arguments: bool(result) and arguments[2] == state


def _came_to(outcome: str) -> Callable[[Any, tuple[Any, ...]], bool]:
    return lambda result, arguments: outcome in result


def _is_half_an_artifact(result: Any, arguments: tuple[Any, ...]) -> bool:
    path = os.readlink(f"/proc/self/fd/{arguments[0]}")
    return "/artifacts/" in path and os.path.basename(path).startswith(".")


#: In the order of a run.
CRASH_POINTS = (
    # Taken from the queue and not yet noted as taken: the broker's own hole, in which a message is gone.
    *(CrashPoint(f"fetch-{name}", name, _DELIVER, after=False, when=_is_fetched) for name in SERVICES),
    CrashPoint("fetch-search", "perturbation", _DELIVER, after=False, when=_is_a_search),
    # The work is done and the message not acknowledged: it will be delivered again.
    *(CrashPoint(f"ack-{name}", name, _ACK, after=False, when=_is_acknowledged) for name in SERVICES),
    CrashPoint("probe", "router", f"{_RECORDS}.advance", when=_moved_to("probing")),
    CrashPoint("reword", "router", f"{_RECORDS}.advance", when=_moved_to("rewording")),
    CrashPoint("answer", "router", f"{_RECORDS}.advance", when=_moved_to("answering")),
    # A part is laid down, and the next is not; with the last of them: nothing of them is handed out.
    CrashPoint("plan", "router", f"{_LEDGER}.plan", when=lambda result, _: bool(result)),
    # Credits of the pool are taken, and nothing is leased for them.
    CrashPoint("claim", "router", f"{_POOLS}.claim", when=lambda result, _: bool(result.granted)),
    # Leased in the ledger, and its message not sent.
    CrashPoint("lease", "router", f"{_LEDGER}.lease", when=lambda result, _: bool(result)),
    # Noted as in hand, and nothing asked.
    CrashPoint("hold", "inference", "proctor.runtime.redis.presence:Presence.holding"),
    # Answered by the model, and the answers not stored.
    CrashPoint("infer", "inference", "proctor.inference.worker.shards:Backends.answer"),
    # In the middle of storing: a file with another name is left.
    CrashPoint("storing", "inference", "os:fsync", after=False, when=_is_half_an_artifact),
    # Stored, and the router not told.
    CrashPoint("store", "inference", "proctor.inference.worker.attempts:put_model"),
    # Recorded, and what comes next not handed out, no credit given back, nothing graded.
    CrashPoint("record", "router", f"{_LEDGER}.record_all", when=_came_to("recorded")),
    # The one 'complete' answer was given, and whoever got it is dead.
    CrashPoint("fire", "router", f"{_LEDGER}.record_all", when=_came_to("complete")),
    # Smaller shards are in the place of one that was lost again, and nobody has them.
    CrashPoint("split", "router", f"{_LEDGER}.split", when=lambda result, _: bool(result)),
    # A shard of training data is searched, and the router not told; it was told, and hands out no other.
    CrashPoint("search", "perturbation", "proctor.exposure.tasks:shard_found_for"),
    CrashPoint("searched", "router", f"{_LEDGER}.record"),
    # All shards are put together, and the router not told; it was told, and what was found is not on record.
    CrashPoint("findings", "perturbation", "proctor.exposure.tasks:found_for"),
    CrashPoint("found", "router", "proctor.router.searching:ended", when=lambda result, _: result is not None),
    # Grades are stored, and the router not told.
    CrashPoint("grade", "scorer", "proctor.scorer.tasks:grade_and_store", when=lambda result, _: bool(result)),
    # Grades are noted, and the message that told of them is not acknowledged.
    CrashPoint("graded", "router", f"{_LEDGER}.note_graded"),
    # The manifest is on record, and nobody asked to score it.
    CrashPoint("finalise", "router", f"{_RECORDS}.advance", when=_moved_to("scoring")),
    # The report is written, and the decision is not on record.
    CrashPoint("report", "scorer", f"{_RECORDS}.decide", after=False),
    # The decision and its entry in the log are written, and the transaction is not over.
    CrashPoint("log", "scorer", "proctor.runtime.records.store:append"),
    # The decision is on record, and nobody was told.
    CrashPoint("decide", "scorer", f"{_RECORDS}.decide"),
    # The router was told, and the event did not leave; then that it left.
    CrashPoint("publish", "scorer", "proctor.scorer.tasks:publish_decision", after=False),
    CrashPoint("published", "scorer", "proctor.scorer.tasks:publish_decision"),
    # The router ends its wait for the scorer.
    CrashPoint("register", "router", f"{_RECORDS}.advance", when=_moved_to("registering")),
    # The registry has the decision, and the router does not know.
    CrashPoint("write", "registry", "proctor.registry.tasks:write_with_retries"),
)


def install(service: str, control: Control) -> None:
    """Lay the boundaries of a service's worker into this process."""
    for point in CRASH_POINTS:
        if point.service == service:
            _wrap(point, control)


def _wrap(point: CrashPoint, control: Control) -> None:
    module_name, _, path = point.target.partition(":")
    owner: Any = importlib.import_module(module_name)
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    call = getattr(owner, name)
    order = f"crash-{point.name}"

    def reached(result: Any, arguments: tuple[Any, ...]) -> None:
        if control.standing(order) is not None and point.when(result, arguments) and control.take(order):
            control.log("crash", point=point.name)
            os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(call)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        if not point.after:
            reached(None, arguments)
            return call(*arguments, **keywords)
        result = call(*arguments, **keywords)
        reached(result, arguments)
        return result

    @functools.wraps(call)
    async def wrapped_coroutine(*arguments: Any, **keywords: Any) -> Any:
        result = await call(*arguments, **keywords)
        reached(result, arguments)
        return result

    setattr(owner, name, wrapped_coroutine if inspect.iscoroutinefunction(call) else wrapped)
