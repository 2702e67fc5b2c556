"""A deployment on paper: how much of everything so many trials a day take, by measured costs and assumptions.

Every line is a product; nothing is hidden in it. What was measured is in `UnitCosts`, what is assumed in `Assumptions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from autoscaling.day import Fleet
from autoscaling.traces import DAY_S
from autoscaling.unit_costs import UnitCosts

#: What the table has a column for.
TRIALS_A_DAY: Final = tuple(10**power for power in range(3, 10))


class Assumptions(NamedTuple):
    """What nobody measured here. docs/scaling.md says of each where it comes from."""

    output_tokens: float = 200.0
    """Of an answer."""
    gpu_tokens_s: float = Fleet().gpu_tokens_s
    """Of a GPU that has enough to do."""
    slot_tokens_s: float = Fleet().slot_tokens_s
    """Of a slot of an inference worker."""
    slots: int = Fleet().slots
    """Of an inference pod."""
    busy: float = 0.5
    """Share of the day over which work is spread: pools and processors idle, or start, in the rest."""
    trials_an_audit: int = 4_000
    """1,000 items in four wordings."""
    trials_a_shard: int = 32
    under_way: float = 0.1
    """Share of a day's trials whose audits are under way at once."""
    retention_days: int = 30


class Needs(NamedTuple):
    """What so many trials a day take."""

    trials: int
    audits: int
    gpus: int
    inference_pods: int
    routers: int
    scorers: int
    redis_cores: float
    redis_bytes: float
    object_bytes_a_day: float
    object_bytes_kept: float
    record_rows_a_day: float
    record_bytes_a_year: float


def needs(trials: int, costs: UnitCosts, given: Assumptions) -> Needs:
    """The sizes for so many trials a day."""
    busy_s = DAY_S * given.busy
    tokens_s = trials * given.output_tokens / busy_s
    audits = max(1, trials // given.trials_an_audit)
    items = trials / 4
    slots = tokens_s / given.slot_tokens_s

    def processes(seconds_a_trial: float) -> int:
        return max(1, math.ceil(trials * seconds_a_trial / busy_s))

    return Needs(
        trials=trials,
        audits=audits,
        gpus=max(1, math.ceil(tokens_s / given.gpu_tokens_s)),
        # By what they keep in flight, or by their own processor time.
        inference_pods=max(math.ceil(slots / given.slots), processes(costs.inference_s)),
        routers=processes(costs.router_s),
        scorers=processes(costs.scorer_s),
        redis_cores=trials * costs.redis_s / busy_s,
        redis_bytes=costs.redis_bytes_idle
        + given.under_way * trials / given.trials_a_shard * costs.redis_bytes_a_shard,
        object_bytes_a_day=trials * costs.object_bytes_a_trial,
        object_bytes_kept=trials * costs.object_bytes_a_trial * given.retention_days,
        record_rows_a_day=audits * costs.record_rows_an_audit + items * costs.record_rows_an_item,
        record_bytes_a_year=365 * (audits * costs.record_bytes_an_audit + items * costs.record_bytes_an_item),
    )


_ROWS: Final[Sequence[tuple[str, Callable[[Needs], str]]]] = (
    ("audits a day", lambda one: f"{one.audits:,}"),
    ("GPUs", lambda one: f"{one.gpus:,}"),
    ("inference worker pods", lambda one: f"{one.inference_pods:,}"),
    ("router replicas (of one core)", lambda one: f"{one.routers:,}"),
    ("scorer processes", lambda one: f"{one.scorers:,}"),
    ("Redis, cores", lambda one: f"{one.redis_cores:.2g}"),
    ("Redis, memory", lambda one: bytes_shown(one.redis_bytes)),
    ("object store, a day", lambda one: bytes_shown(one.object_bytes_a_day)),
    ("object store, kept", lambda one: bytes_shown(one.object_bytes_kept)),
    ("record store, rows a day", lambda one: f"{one.record_rows_a_day:,.0f}"),
    ("record store, a year", lambda one: bytes_shown(one.record_bytes_a_year)),
)


def table(costs: UnitCosts, given: Assumptions, trials: Sequence[int] = TRIALS_A_DAY) -> str:
    """A Markdown table with a column for each number of trials a day."""
    columns = [needs(one, costs, given) for one in trials]
    lines = [
        ["trials a day", *(f"{one:,}" for one in trials)],
        ["---", *["---:"] * len(trials)],
        *([name, *map(shown, columns)] for name, shown in _ROWS),
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def bytes_shown(value: float) -> str:
    """Bytes in the unit that leaves one to three digits before the point."""
    units = ("B", "KB", "MB", "GB", "TB")
    # From 999.5 on it would be rounded to four digits.
    place = next((place for place in range(len(units)) if value / 1_000**place < 999.5), len(units) - 1)
    shown = value / 1_000**place
    return f"{shown:,.0f} {units[place]}" if shown >= 9.95 else f"{shown:.1f} {units[place]}"
