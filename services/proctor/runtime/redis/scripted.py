"""A Redis whose changes are Lua scripts, each one atomic step: what the ledger, the pools and presence are kept in.

A script that raises has written nothing: it computes first and writes last (`lua/step.lua`, with which every script
begins). What scripts take and give is declared beside them (`proctor.runtime.redis.script`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ClassVar

import redis
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.retry import Retry

from proctor.domain.errors import StoreError, StoreNotReadyError
from proctor.runtime.redis.script import Arguments, Key, Reply, Row, Script, values

#: A week: longer than any audit, short enough that a forgotten key clears itself away.
KEY_TTL = timedelta(days=7)
KEY_TTL_S = int(KEY_TTL.total_seconds())
#: Tries of a step beside the first, within about a second: a server that restarts, or that another takes over from.
_RETRIES = 3


def milliseconds(duration: timedelta) -> int:
    """A duration as the scripts take it."""
    return int(duration.total_seconds() * 1000)


def connect(url: str) -> redis.Redis:
    """A client of a Redis URL that tries again what met a broken connection, or a server that became a replica.

    The second matters after a failover: the address leads to the new primary, but a connection that is open leads to
    the old one, and would for ever.
    """
    retry = Retry(ExponentialBackoff(cap=1.0, base=0.05), _RETRIES)
    return redis.Redis.from_url(
        url, decode_responses=True, retry=retry, retry_on_error=[redis.exceptions.ReadOnlyError]
    )


class ScriptedRedis:
    """A Redis URL whose steps are scripts. Every method raises StoreNotReadyError when the server cannot be reached,
    and StoreError when it does not let a step be taken.
    """

    #: Name in messages.
    _NAME: ClassVar[str]

    def __init__(self, url: str) -> None:
        self._redis = connect(url)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def ping(self) -> None:
        """See to it that the server answers."""
        try:
            self._redis.ping()
        except redis.RedisError as error:
            raise self._silent(error) from error

    def _run(
        self,
        script: Script[Key, Arguments, Row, Reply],
        key: Callable[[Key], str],
        arguments: Arguments,
        rows: Iterable[Row] = (),
    ) -> Reply:
        """Take a step.

        Args:
            key: the name of a key in Redis, by its name in the script.
        """
        handed = [*map(key, script.keys), *values(arguments, rows)]
        try:
            try:
                found = self._redis.evalsha(script.digest, len(script.keys), *handed)
            except redis.exceptions.NoScriptError:
                found = self._redis.eval(script.text, len(script.keys), *handed)
        except redis.RedisError as error:
            raise self._silent(error) from error
        return script.reply(found)

    def _run_behind(
        self,
        commands: Callable[[Pipeline], object],
        script: Script[Key, Arguments, Row, Reply],
        key: Callable[[Key], str],
        arguments: Arguments,
    ) -> tuple[list[Any], Reply]:
        """Replies of commands, and of a step behind them, in one round trip. Each is by itself: they may be of several
        slots, and others may come between them.
        """
        handed = [*map(key, script.keys), *arguments]

        def sent(known: bool) -> list[Any]:
            pipe = self._redis.pipeline(transaction=False)
            commands(pipe)
            if known:
                pipe.evalsha(script.digest, len(script.keys), *handed)
            else:
                pipe.eval(script.text, len(script.keys), *handed)
            return list(pipe.execute())

        try:
            try:
                replies = sent(known=True)
            except redis.exceptions.NoScriptError:
                replies = sent(known=False)
        except redis.RedisError as error:
            raise self._silent(error) from error
        return replies[:-1], script.reply(replies[-1])

    def _pipeline(self) -> Pipeline:
        return self._redis.pipeline()

    def _reply(self, pipe: Pipeline) -> list[Any]:
        """Replies of several commands, in one round trip and one transaction."""
        try:
            return list(pipe.execute())
        except redis.RedisError as error:
            raise self._silent(error) from error

    def _silent(self, error: redis.RedisError) -> StoreError:
        away = isinstance(error, redis.ConnectionError | redis.TimeoutError)
        return (StoreNotReadyError if away else StoreError)(f"the {self._NAME} did not answer: {error}")
