"""A Redis whose changes are Lua scripts, each one atomic step: what the ledger, the pools and presence are kept in.

A script that raises has written nothing: it computes first and writes last (`lua/step.lua`, with which every script
begins).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import redis
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.commands.core import Script
from redis.retry import Retry

from proctor.domain.errors import StoreError

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


@cache
def script_source(package: str, name: str) -> str:
    """The text of a script of a package's folder `lua`, behind what every script begins with."""
    parts = (("proctor.runtime.redis", "step"), (package, name))
    return "".join(files(of).joinpath(f"lua/{file}.lua").read_text("utf-8") for of, file in parts)


class ScriptedRedis:
    """A Redis URL and scripts of a package. Every method raises StoreError when the server cannot be reached, or does
    not let a step be taken.
    """

    #: Name in messages.
    _NAME: ClassVar[str]
    #: Package whose folder `lua` holds the scripts.
    _PACKAGE: ClassVar[str]
    #: Script name → name of its file, without `.lua`.
    _SCRIPTS: ClassVar[Mapping[str, str]]

    def __init__(self, url: str) -> None:
        self._redis = connect(url)
        self._scripts: dict[str, Script] = {
            name: self._redis.register_script(script_source(self._PACKAGE, file))
            for name, file in self._SCRIPTS.items()
        }

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _run(self, script: str, keys: Sequence[str], *arguments: str | int | float) -> Any:
        try:
            try:
                return self._scripts[script](keys=keys, args=arguments)
            except redis.exceptions.NoScriptError:
                # Another server took over between the loading of the script and its call.
                return self._redis.eval(str(self._scripts[script].script), len(keys), *keys, *arguments)
        except redis.RedisError as error:
            raise StoreError(f"the {self._NAME} did not answer: {error}") from error

    def _pipeline(self) -> Pipeline:
        return self._redis.pipeline()

    def _reply(self, pipe: Pipeline) -> list[Any]:
        """Replies of several commands, in one round trip and one transaction."""
        try:
            return list(pipe.execute())
        except redis.RedisError as error:
            raise StoreError(f"the {self._NAME} did not answer: {error}") from error


def flattened(rows: Iterable[Collection[str | int | float]]) -> list[str | int | float]:
    """Rows as a script takes them, one value after another."""
    return [value for row in rows for value in row]
