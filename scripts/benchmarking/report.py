"""Figures and claims of a benchmark, as a table or as JSON."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """Something measured."""

    name: str
    value: float
    unit: str
    note: str = ""


class Claim(NamedTuple):
    """A line of the promise: a figure and its bound."""

    name: str
    value: float
    bound: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is on the right side of the bound."""
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def medians_s(tasks: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Median seconds of each task over rounds in which every task runs once, after a round that does not count.

    Taking turns, so that what else the machine does in the meantime falls on all of them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            started_s = time.perf_counter()
            task()
            if turn:
                seconds[name].append(time.perf_counter() - started_s)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def as_json(machine: Mapping[str, object], figures: Sequence[Figure], claims: Sequence[Claim]) -> str:
    """One document: `machine`, `figures`, `claims`."""
    return json.dumps(
        {
            "machine": dict(machine),
            "figures": [figure._asdict() for figure in figures],
            "claims": [
                {
                    "name": claim.name,
                    "value": claim.value,
                    "at_least" if claim.at_least else "at_most": claim.bound,
                    "holds": claim.holds,
                }
                for claim in claims
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def as_text(machine: Mapping[str, object], figures: Sequence[Figure], claims: Sequence[Claim]) -> str:
    """A Markdown table of the figures, and a line for each claim."""
    lines = [", ".join(f"{name} {value}" for name, value in machine.items()), ""]
    lines += ["| what | median | |", "| --- | ---: | --- |"]
    lines += [f"| {figure.name} | {_shown(figure.value)} {figure.unit} | {figure.note} |" for figure in figures]
    lines.append("")
    for claim in claims:
        bound = f"{'at least' if claim.at_least else 'at most'} {claim.bound:g}"
        lines.append(f"{'holds' if claim.holds else 'FAILS'}: {claim.name}: {_shown(claim.value)}, {bound}")
    return "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
