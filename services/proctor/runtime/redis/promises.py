"""What a Redis promises to whoever keeps a ledger in it: that it evicts nothing, and has it all after a restart.

A ledger that lost keys is seen (`proctor.router.ledger.loss`), and its audits fail with that cause. But what they asked
is then asked, and paid for, again; so a router looks before it begins, and does not begin on a Redis that will lose
keys in the normal course of things.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import redis

from proctor.domain.errors import BadInputError, StoreError
from proctor.runtime.settings import LedgerCheck, Settings

logger = logging.getLogger(__name__)

#: What a router waits for its ledger before it begins unlooked: about what a Redis takes to load a large file.
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.5
#: A server that accepts and does not answer is as good as away.
_TIMEOUT_S: Final = 5.0
#: Characters of what a server says of itself that are repeated.
_SHOWN: Final = 60
_ACCEPT: Final = "or accept it with PROCTOR_LEDGER_CHECK=warn"


class Promise(StrEnum):
    """What a ledger's Redis has to promise."""

    NO_EVICTION = "no_eviction"
    PERSISTENCE = "persistence"


class Verdict(StrEnum):
    """How it is with a promise."""

    KEPT = "kept"
    DOUBTFUL = "doubtful"
    """Kept in part, or it cannot be seen."""
    BROKEN = "broken"


class Facts(NamedTuple):
    """What a server says of itself; None where it does not say."""

    policy: str | None = None
    """`maxmemory-policy`."""
    append_only: bool | None = None
    snapshots: bool | None = None
    """Whether it saves by itself now and then (`save`)."""


class Judgement(NamedTuple):
    """One promise of a server."""

    promise: Promise
    verdict: Verdict
    found: str
    mend: str = ""


def judge(facts: Facts) -> tuple[Judgement, ...]:
    """What the facts mean for a ledger. Pure."""
    return _eviction(facts), _persistence(facts)


def _eviction(facts: Facts) -> Judgement:
    promise, policy = Promise.NO_EVICTION, facts.policy
    if policy is None:
        return Judgement(promise, Verdict.DOUBTFUL, "it does not say whether it evicts keys", _LET_SEE)
    if policy == "noeviction":
        return Judgement(promise, Verdict.KEPT, "evicts nothing")
    # Every key of a ledger has a time to live, so the volatile policies evict them like the others. Nor is it any
    # better without a limit of memory: that is set later, by somebody else.
    found = f"maxmemory-policy is {policy[:_SHOWN]!r}: it drops audits' keys when memory runs low"
    return Judgement(promise, Verdict.BROKEN, found, "set maxmemory-policy to noeviction")


def _persistence(facts: Facts) -> Judgement:
    promise = Promise.PERSISTENCE
    if facts.append_only:
        return Judgement(promise, Verdict.KEPT, "keeps an append-only file")
    mend = "set appendonly to yes"
    if facts.append_only is None:
        return Judgement(promise, Verdict.DOUBTFUL, "it does not say whether it keeps an append-only file", _LET_SEE)
    if facts.snapshots:
        found = "it keeps snapshots alone: with it, the ledger goes back to the last of them"
        return Judgement(promise, Verdict.DOUBTFUL, found, mend)
    if facts.snapshots is None:
        found = "it keeps no append-only file, and does not say whether it keeps snapshots"
        return Judgement(promise, Verdict.DOUBTFUL, found, mend)
    return Judgement(promise, Verdict.BROKEN, "it keeps nothing on disk: a restart loses every audit's ledger", mend)


_LET_SEE: Final = (
    "see to it that maxmemory-policy is noeviction and appendonly is yes; to have it checked, let the user run "
    "CONFIG GET or INFO"
)


def read_facts(url: str, *, timeout_s: float = _TIMEOUT_S) -> Facts:
    """Ask a server: CONFIG GET, and INFO where that is closed, as it is on most that somebody else runs.

    Raises:
        BadInputError: when the URL is none, or its user and password are refused.
        StoreError: when it cannot be reached.
    """
    try:
        client = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=timeout_s, socket_connect_timeout=timeout_s
        )
    except ValueError as error:
        raise BadInputError(f"PROCTOR_LEDGER_URL is no URL of a Redis: {error}; write redis://host:6379/1") from None
    try:
        client.ping()
        said = _permitted(lambda: client.config_get("maxmemory-policy", "appendonly", "save"))
        info = {} if _is_whole(said) else _permitted(lambda: {**client.info("memory"), **client.info("persistence")})
    except redis.AuthenticationError as error:
        raise BadInputError(f"PROCTOR_LEDGER_URL: the Redis refuses its user and password: {error}") from error
    except (redis.RedisError, OSError) as error:
        raise StoreError(f"the ledger cannot be reached: {error}") from error
    finally:
        client.close()
    return _facts(said, info)


def _permitted(ask: Callable[[], Any]) -> Mapping[str, Any]:
    try:
        answer = ask()
    except redis.ResponseError:
        # NOPERM, or an unknown command where it was renamed. Whatever else: it does not say.
        return {}
    return answer if isinstance(answer, Mapping) else {}


def _is_whole(said: Mapping[str, Any]) -> bool:
    return {"maxmemory-policy", "appendonly", "save"} <= said.keys()


def _facts(said: Mapping[str, Any], info: Mapping[str, Any]) -> Facts:
    policy = said.get("maxmemory-policy", info.get("maxmemory_policy"))
    if "appendonly" in said:
        append_only = said["appendonly"] == "yes"
    else:
        append_only = bool(info["aof_enabled"]) if "aof_enabled" in info else None
    snapshots = bool(str(said["save"]).strip('" ')) if "save" in said else None
    return Facts(None if policy is None else str(policy), append_only, snapshots)


def check_ledger(
    settings: Settings,
    *,
    patience_s: float = _PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Look, before a router begins, whether its ledger's Redis will keep what is written there.

    A server that is not there yet is waited for, as the broker is: one that starts a moment later must not go unseen.

    Raises:
        BadInputError: when PROCTOR_LEDGER_URL leads to no Redis that lets this router in.
        StoreError: when it breaks a promise, and PROCTOR_LEDGER_CHECK is not `warn`.
    """
    until_s = clock() + patience_s
    while True:
        try:
            facts = read_facts(settings.ledger_url)
            break
        except StoreError as error:
            if clock() >= until_s:
                logger.warning("the ledger was not looked at before this router began: %s", error)
                return
            sleep(_POLL_S)
    found = judge(facts)
    for one in found:
        if one.verdict is not Verdict.KEPT:
            logger.warning("the ledger's Redis: %s; %s", one.found, one.mend)
    broken = [one for one in found if one.verdict is Verdict.BROKEN]
    if broken and settings.ledger_check is LedgerCheck.REFUSE:
        what = "; ".join(f"{one.found} ({one.mend})" for one in broken)
        raise StoreError(f"the Redis of PROCTOR_LEDGER_URL is not fit for a ledger: {what}; mend it, {_ACCEPT}")
