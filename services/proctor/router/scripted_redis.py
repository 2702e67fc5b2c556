"""A Redis whose changes are Lua scripts, each one atomic step: what the ledger and the pools are kept in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
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


def milliseconds(duration: timedelta) -> int:
    """A duration as the scripts take it."""
    return int(duration.total_seconds() * 1000)


class ScriptedRedis:
    """A Redis URL and the scripts of a folder beside this module. Every method raises StoreError when the server cannot
    be reached.
    """

    #: Name in messages.
    _NAME: ClassVar[str]
    #: Script name → file under `lua/`.
    _SCRIPTS: ClassVar[Mapping[str, str]]

    def __init__(self, url: str) -> None:
        self._redis: redis.Redis = redis.Redis.from_url(
            url, decode_responses=True, retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), 3)
        )
        folder = files("proctor.router").joinpath("lua")
        self._scripts: dict[str, Script] = {
            name: self._redis.register_script(folder.joinpath(file).read_text("utf-8"))
            for name, file in self._SCRIPTS.items()
        }

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _run(self, script: str, keys: Sequence[str], *arguments: str | int | float) -> Any:
        try:
            return self._scripts[script](keys=keys, args=arguments)
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
