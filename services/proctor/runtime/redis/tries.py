"""How often something was begun and not ended: what kills whoever tries it must not be tried for ever.

A try is noted before it begins and struck out when it ends, so that of what kills its process stays. It is kept beside
the ledger, and so outlives every worker:

| key | type | holds |
|---|---|---|
| `proctor:tries:{<digest>}` | hash | try → when it began (server's ms), 0 once it raised; `cause`: the last error |

A key expires a day after the last try.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from redis.client import Pipeline

from proctor.domain.errors import ProctorError, StoreError
from proctor.runtime.messaging.passing import passes
from proctor.runtime.redis import scripts
from proctor.runtime.redis.scripted import ScriptedRedis, milliseconds
from proctor.runtime.redis.scripts import Begun, TriesKey

logger = logging.getLogger(__name__)

#: Tries that may come to nothing: one that finds the fault, and more than a worker has deaths for other reasons in a
#: bad minute. With five, an audit was given up while services were killed every second (tests/chaos/stack_kills.py).
MAX_TRIES: Final = 10
#: Far longer than so many tries take, a visibility timeout apart.
KEY_TTL: Final = timedelta(days=1)
#: Characters of a cause that are kept.
_MAX_CAUSE: Final = 500
_KILLED: Final = "whoever tried it died before it was done"


class TriedTooOftenError(ProctorError):
    """Something was begun MAX_TRIES times and never came to its end."""


class Tries(ScriptedRedis):
    """The tries behind a Redis URL. While that cannot be reached nothing is counted, and nothing refused."""

    _NAME = "tries"

    def begin(self, what: str, this: str, grace: timedelta = timedelta(0)) -> Begun:
        """Note a try of a name of its own, unless there were too many.

        Raises:
            StoreError: when it cannot be noted; nothing was written then.
        """
        arguments = scripts.TryArguments(this, milliseconds(grace), MAX_TRIES, milliseconds(KEY_TTL))

        def key(name: TriesKey) -> str:
            del name
            return _key(what)

        return self._run(scripts.TRY, key, arguments)

    @contextmanager
    def trying(self, what: str, *, grace: timedelta = timedelta(0)) -> Iterator[None]:
        """Note a try while the block runs. One that ends well strikes out all that came to nothing before.

        An error that passes by itself is no fault of what was tried; any other counts, and its words are kept.

        Args:
            what: of the same name is the same.
            grace: how long a try may still be under way elsewhere, and does not count. Nothing, where nobody tries the
                same at the same time.

        Raises:
            TriedTooOftenError: instead of another try after MAX_TRIES came to nothing, with the last cause. They are
                forgotten then: who starts it again has as many as before.
        """
        key, this = _key(what), secrets.token_hex(8)
        self._note(what, this, grace)
        try:
            yield
        except Exception as error:
            if passes(error):
                self._settle(lambda pipe: pipe.hdel(key, this))
                raise
            cause = f"{type(error).__name__}: {error}"[:_MAX_CAUSE]
            self._settle(lambda pipe: _raised(pipe, key, this, cause))
            raise
        self._settle(lambda pipe: pipe.delete(key))

    def _note(self, what: str, this: str, grace: timedelta) -> None:
        try:
            begun = self.begin(what, this, grace)
        except StoreError as error:
            logger.warning("a try is not counted, because its count cannot be reached: %s", error)
            return
        if not begun.goes_on:
            raise TriedTooOftenError(f"it was tried {begun.vain} times in vain: {begun.cause or _KILLED}")

    def _settle(self, command: Callable[[Pipeline], object]) -> None:
        """What became of a try is not worth failing it: at worst it counts."""
        with self._pipeline() as pipe:
            command(pipe)
            try:
                self._reply(pipe)
            except StoreError as error:
                logger.warning("what became of a try is not noted: %s", error)


def _raised(pipe: Pipeline, key: str, this: str, cause: str) -> None:
    pipe.hset(key, mapping={this: 0, "cause": cause})
    pipe.expire(key, KEY_TTL)


def _key(what: str) -> str:
    return f"proctor:tries:{{{hashlib.sha256(what.encode()).hexdigest()[:32]}}}"
