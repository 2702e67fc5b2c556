"""The scripts of presence and of tries: what each takes and gives."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, Never

from proctor.runtime.redis.script import Script

PresenceKey = Literal["seen", "workers", "held"]
TriesKey = Literal["tries"]
_PACKAGE: Final = "proctor.runtime.redis"


class AnnounceArguments(NamedTuple):
    """Of `announce`."""

    ttl_s: int
    worker: str
    entry: str
    """ "slots service"."""
    kept_ms: int
    """How long a silent worker is kept in the list."""


class WorkerArguments(NamedTuple):
    """Of `withdraw` and of `release`."""

    worker: str


class HoldArguments(NamedTuple):
    """Of `hold`."""

    ttl_s: int
    worker: str


class HeldField(NamedTuple):
    """A row of `hold` and of `release`: a shard's attempt, as it is kept."""

    held: str


class SilenceArguments(NamedTuple):
    """Of `living` and of `lost`."""

    silence_ms: int


class TryArguments(NamedTuple):
    """Of `try`."""

    id: str
    grace_ms: int
    most: int
    ttl_ms: int


class Begun(NamedTuple):
    """A try that was to begin."""

    goes_on: bool
    vain: int
    """Tries before it that came to nothing."""
    cause: str
    """The last error of them; empty where there was none."""


def _begun(found: Any) -> Begun:
    goes_on, vain, cause = found
    return Begun(bool(goes_on), int(vain), str(cause))


def _texts(found: Any) -> list[str]:
    return list(found)


ANNOUNCE = Script[PresenceKey, AnnounceArguments, Never, object](
    _PACKAGE, "announce", keys=("seen", "workers"), arguments=AnnounceArguments, reply=bool
)
WITHDRAW = Script[PresenceKey, WorkerArguments, Never, object](
    _PACKAGE, "withdraw", keys=("seen", "workers"), arguments=WorkerArguments, reply=bool
)
HOLD = Script[PresenceKey, HoldArguments, HeldField, object](
    _PACKAGE, "hold", keys=("seen", "held"), arguments=HoldArguments, row=HeldField, reply=bool
)
RELEASE = Script[PresenceKey, WorkerArguments, HeldField, object](
    _PACKAGE, "release", keys=("held",), arguments=WorkerArguments, row=HeldField, reply=bool
)
LIVING = Script[PresenceKey, SilenceArguments, Never, list[str]](
    _PACKAGE, "living", keys=("seen", "workers"), arguments=SilenceArguments, reply=_texts
)
LOST = Script[PresenceKey, SilenceArguments, Never, list[str]](
    _PACKAGE, "lost", keys=("seen", "held"), arguments=SilenceArguments, reply=_texts
)
TRY = Script[TriesKey, TryArguments, Never, Begun](
    _PACKAGE, "try", keys=("tries",), arguments=TryArguments, reply=_begun
)
SCRIPTS: Final = (ANNOUNCE, WITHDRAW, HOLD, RELEASE, LIVING, LOST, TRY)
