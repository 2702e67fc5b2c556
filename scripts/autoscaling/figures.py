"""What came of a day, in figures: a table with a column a policy, and what is promised of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from autoscaling.day import Outcome, Policy
from benchmarking.report import Claim, Figure

_HOUR_S = 3_600.0


class DayFigures(NamedTuple):
    """One policy's figures."""

    policy: Policy
    age_s: tuple[float, float, float]
    """Of half, 95 and 99 of 100 shards, from their stage's begin until a slot had them."""
    took_s: tuple[float, float]
    """Of half and 95 of 100 audits, from submission to the last answer; infinite where one is never over."""
    pod_hours: float
    gpu_hours: float
    handed_back: int
    redone: float
    """Share of the tokens that were written twice."""
    unfinished: int


def figures_of(outcome: Outcome) -> DayFigures:
    """The figures of a day."""
    waits = np.array([wait for wait, _ in outcome.waits])
    shards = np.array([count for _, count in outcome.waits])
    took = np.array([*(ended.took_s for ended in outcome.ended), *[float("inf")] * outcome.unfinished])
    nothing = float("nan")
    return DayFigures(
        outcome.policy,
        _weighted(waits, shards) if waits.size else (nothing,) * 3,
        # Of an audit that was there: between one that is over and one that never is there is no middle.
        (_percentile(took, 50), _percentile(took, 95)) if took.size else (nothing,) * 2,
        outcome.worker_s / _HOUR_S,
        outcome.gpu_s / _HOUR_S,
        outcome.handed_back,
        outcome.redone_tokens / outcome.tokens if outcome.tokens else 0.0,
        outcome.unfinished,
    )


def _percentile(values: np.ndarray, percent: float) -> float:
    return float(np.percentile(values, percent, method="higher"))


def _weighted(values: np.ndarray, weights: np.ndarray) -> tuple[float, float, float]:
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(reached, [0.50, 0.95, 0.99])
    low, middle, high = (float(values[order][min(place, values.size - 1)]) for place in places)
    return low, middle, high


def as_figures(days: Sequence[DayFigures]) -> list[Figure]:
    """A line for each figure of each policy, as benchmarks print them."""
    found = []
    for day in days:
        for name, value, unit in (
            ("queue age, half of the shards", day.age_s[0], "s"),
            ("queue age, 95 of 100", day.age_s[1], "s"),
            ("queue age, 99 of 100", day.age_s[2], "s"),
            ("an audit, half of them", day.took_s[0], "s"),
            ("an audit, 95 of 100", day.took_s[1], "s"),
            ("worker pods", day.pod_hours, "hours"),
            ("GPUs", day.gpu_hours, "hours"),
            ("shards handed back", float(day.handed_back), ""),
            ("audits not over at the day's end", float(day.unfinished), ""),
        ):
            found.append(Figure(f"{day.policy}: {name}", value, unit))
    return found


def _seconds(value: float) -> str:
    if math.isfinite(value):
        return f"{value:,.0f}"
    return "never" if value > 0 else "none"


def as_table(days: Sequence[DayFigures]) -> str:
    """A Markdown table with a column a policy."""
    rows = [
        ("queue age of a shard: 50, 95, 99 of 100, s", lambda day: ", ".join(map(_seconds, day.age_s))),
        ("an audit: 50, 95 of 100, s", lambda day: ", ".join(map(_seconds, day.took_s))),
        ("hours of worker pods", lambda day: f"{day.pod_hours:,.0f}"),
        ("hours of GPUs", lambda day: f"{day.gpu_hours:,.0f}"),
        ("shards handed back (tokens written twice)", lambda day: f"{day.handed_back:,} ({day.redone:.2%})"),
        ("audits not over at the day's end", lambda day: f"{day.unfinished:,}"),
    ]
    head = ["", *(str(day.policy) for day in days)]
    lines = [head, ["---", *["---:"] * len(days)], *([name, *map(shown, days)] for name, shown in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def claims_of(days: Sequence[DayFigures]) -> list[Claim]:
    """What is promised of the chart's rules, beside a fixed size and a list's length."""
    by = {day.policy: day for day in days}
    ours, fixed, blind = by[Policy.WORK], by[Policy.FIXED], by[Policy.LIST]
    return [
        Claim("audits not over at the day's end, by ledger work", float(ours.unfinished), 0),
        Claim("hours of worker pods, ledger work / fixed size", ours.pod_hours / fixed.pod_hours, 0.5),
        Claim("hours of GPUs, ledger work / fixed size", ours.gpu_hours / fixed.gpu_hours, 0.6),
        Claim("95 of 100 audits, ledger work / fixed size", ours.took_s[1] / fixed.took_s[1], 2.0),
        Claim("95 of 100 audits, list length / ledger work", blind.took_s[1] / ours.took_s[1], 1.5, at_least=True),
    ]
