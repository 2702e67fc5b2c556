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
SERVICES = ("router", "perturbation", "inference", "scorer", "registry")


#: The message that comes by itself; losing one of those proves nothing.
TICK = "router.reconcile"


def _is_fetched(result: Any, arguments: tuple[Any, ...]) -> bool:
    _, message, queue = arguments
    return queue in SERVICES and message["headers"].get("task") != TICK


def _is_acknowledged(result: Any, arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[0].name != TICK)


def _moved_to(state: str) -> Callable[[Any, tuple[Any, ...]], bool]:
    return lambda result, arguments: bool(result) and arguments[2] == state


#: In the order of a run.
CRASH_POINTS = (
    # Taken from the queue and not yet noted as taken: the broker's own hole, in which a message is gone.
    *(CrashPoint(f"fetch-{name}", name, _DELIVER, after=False, when=_is_fetched) for name in SERVICES),
    # The work is done and the message not acknowledged: it will be delivered again.
    *(CrashPoint(f"ack-{name}", name, _ACK, after=False, when=_is_acknowledged) for name in SERVICES),
    CrashPoint("probe", "router", "proctor.runtime.records:Records.advance", when=_moved_to("probing")),
    CrashPoint("reword", "router", "proctor.runtime.records:Records.advance", when=_moved_to("rewording")),
    CrashPoint("answer", "router", "proctor.runtime.records:Records.advance", when=_moved_to("answering")),
    CrashPoint("plan", "router", "proctor.router.ledger:Ledger.plan"),
    # Leased in the ledger, and its message not sent.
    CrashPoint("lease", "router", "proctor.router.ledger:Ledger.lease", when=lambda result, _: bool(result)),
    # Answered by the model, and the answers not stored.
    CrashPoint("infer", "inference", "proctor.inference.shards:Backends.answer"),
    # Stored, and the router not told.
    CrashPoint("store", "inference", "proctor.inference.tasks:put_model"),
    # In the middle of storing: a file with another name is left.
    CrashPoint("storing", "inference", "proctor.runtime.artifacts:packed"),
    # Recorded, and what comes next not handed out.
    CrashPoint("record", "router", "proctor.router.ledger:Ledger.record", when=lambda result, _: result == "recorded"),
    # The one 'complete' answer was given, and whoever got it is dead.
    CrashPoint("fire", "router", "proctor.router.ledger:Ledger.record", when=lambda result, _: result == "complete"),
    # The manifest is on record, and nobody asked to score it.
    CrashPoint("finalise", "router", "proctor.runtime.records:Records.advance", when=_moved_to("scoring")),
    # The report is written, and the decision is not on record.
    CrashPoint("report", "scorer", "proctor.runtime.records:Records.decide", after=False),
    # The decision is on record, and nobody was told.
    CrashPoint("decide", "scorer", "proctor.runtime.records:Records.decide"),
    # The router was told, and the event did not leave; then that it left.
    CrashPoint("publish", "scorer", "proctor.scorer.tasks:publish_decision", after=False),
    CrashPoint("published", "scorer", "proctor.scorer.tasks:publish_decision"),
    # The router ends its wait for the scorer.
    CrashPoint("register", "router", "proctor.runtime.records:Records.advance", when=_moved_to("registering")),
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
