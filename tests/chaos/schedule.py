"""Which faults a run has, and in what order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.chaos import hooks, model_server
from tests.chaos.cluster import Role
from tests.chaos.crash_points import CRASH_POINTS
from tests.chaos.faults import (
    AskToLeave,
    CrashAt,
    EndpointsAway,
    Fault,
    KillChild,
    KillModel,
    KillTriton,
    KillWorker,
    LoseMessage,
    PauseWorker,
    Redeliver,
    ResetConnections,
    RestartBroker,
    Standing,
    WrongClock,
)
from tests.chaos.steering import PauseAudit


def kinds(roles: Sequence[Role], rng: random.Random, *, triton: bool = False) -> list[Fault]:
    """One fault of every kind, each with its victim drawn; that of Triton only where there is one."""
    any_role = rng.choice(roles)
    pools = [role for role in roles if role.has_children]
    answering = [role for role in roles if role.service in ("inference", "router")]
    return [
        *(
            KillWorker(rng.choice([role for role in roles if role.service == name]))
            for name in {r.service: 0 for r in roles}
        ),
        *(KillChild(rng.choice(pools), rng.randrange(1 << 16)) for _ in pools[:1]),
        AskToLeave(rng.choice([role for role in roles if role.service == "inference"])),
        PauseWorker(rng.choice(answering)),
        PauseAudit(rng.randrange(1 << 16)),
        RestartBroker(),
        ResetConnections(),
        Redeliver(),
        LoseMessage(),
        KillModel(),
        EndpointsAway(),
        *([KillTriton()] if triton else []),
        Standing("model slow", hooks.SLOW_MODEL, 2.0, "0.3"),
        Standing("model erring", hooks.BROKEN_MODEL, 0.5),
        Standing("model answers out of order", model_server.DISORDERED_MODEL, 2.0),
        Standing("model drops connections", model_server.ABRUPT_MODEL, 0.5),
        Standing("artifact store full", hooks.DISK_FULL, 0.5),
        WrongClock(any_role, rng.choice([-3600.0, 3600.0])),
        *(CrashAt(point) for point in CRASH_POINTS),
    ]


def schedule(roles: Sequence[Role], seed: int, *, triton: bool = False) -> Iterator[Fault]:
    """Faults without end: every kind once, in a drawn order, and again with other victims and in another order."""
    rng = random.Random(seed)
    while True:
        batch = kinds(roles, rng, triton=triton)
        rng.shuffle(batch)
        yield from batch
