"""Everything that a run needs before it trains: the questions dealt out, and the rewordings that the gate admits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from planted_leaks.benchmarks import KINDS, Benchmark, deal, training_problems
from planted_leaks.cells import FRESH, Plan
from planted_leaks.rewordings import Admitted, admitted, rephrased_by_rule


class Prepared(NamedTuple):
    """A benchmark and its admitted rewordings."""

    benchmark: Benchmark
    admitted: Admitted


def prepared(kind: str, plan: Plan, data: Path, work: Path) -> Prepared:
    """Deal the questions of a kind, and have its rewordings admitted.

    Items of which no rewording is admitted, or no leak can be rephrased, are no part of the benchmark.
    """
    drawn = deal(KINDS[kind], data, items=plan.items, fresh=FRESH)
    folder = work / "audits" / f"{kind}-{plan.items}"
    found = admitted(drawn, folder)
    items = tuple(question for question in drawn.items if question.item.item_id in found.by_item)
    training = drawn.training
    if kind == "worked":
        by_rule = rephrased_by_rule(items, drawn, work / "audits" / f"{kind}-{plan.items}-leaks")
        items = tuple(
            question._replace(leaked=tuple(by_rule[question.item.item_id]))
            for question in items
            if question.item.item_id in by_rule
        )
        training = training_problems(data)
    return Prepared(replace(drawn, items=items, training=training), found)
