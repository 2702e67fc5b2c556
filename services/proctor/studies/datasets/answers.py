"""Answers to items graded one by one, with the share of each dimension that is right."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.trial import Arm, Outcome, Trial
from proctor.evidence.intervals import wilson
from proctor.evidence.planning.accuracy import LEVEL
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.rows import position_unit, read_rows
from proctor.grading import EXECUTION, EXTRACTORS, Extractor, read_answer, resolve_extractor
from proctor.grading.constraints import checked, parse_constraints
from proctor.scorer.grading.programs import Programs


class GradedAnswer(NamedTuple):
    """What an answer is worth, and why."""

    item_id: str
    dimension: str
    outcome: Outcome
    passed: int
    """Tests passed or constraints kept; 1 or 0 where there is one thing to be right about."""
    total: int
    detail: str


class DimensionScore(NamedTuple):
    """How a dimension was answered."""

    dimension: str
    items: int
    correct: int
    invalid: int
    unanswered: int
    accuracy: float
    """Of all items, unanswered ones included."""
    low: float
    high: float
    """Bounds of the accuracy (Wilson, 95 %)."""
    pass_rate: float
    """Mean share of tests passed, or of constraints kept."""


def read_answers(path: Path, items: Sequence[Item]) -> dict[str, str]:
    """Item id → answer, from rows with `item_id` and `answer`.

    Raises:
        BadInputError: with file and line.
    """
    known, faults = {item.item_id for item in items}, Faults(str(path), unit=position_unit(path))
    found: dict[str, str] = {}
    try:
        for row in read_rows(path, faults):
            name, answer = row.values.get("item_id"), row.values.get("answer")
            if not isinstance(name, str) or name not in known:
                faults.add(row.position, f"item_id is {shown(name)}, which is none of the items")
            elif not isinstance(answer, str):
                faults.add(row.position, f"answer is {shown(answer)}; text is needed")
            elif name in found:
                faults.add(row.position, f"the item {shown(name)} was answered before; keep one answer")
            else:
                found[name] = answer
    except TooManyFaults:
        pass
    if faults:
        faults.refuse()
    if not found:
        raise BadInputError(f"{path} holds no answers")
    return found


def grade_answers(
    items: Sequence[Item], answers: Mapping[str, str], extractor: str, programs: Programs
) -> list[GradedAnswer]:
    """Grade the answers in the order of the items; items without one are left out.

    Raises:
        BadInputError: where the extractor cannot read the items' answers.
        CodeExecutionError: where answers are code and nothing is run.
    """
    resolved = resolve_extractor(extractor, items)
    if resolved.name == EXECUTION:
        programs.check()
    given = [(item, answers[item.item_id]) for item in items if item.item_id in answers]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as grading:
        return list(grading.map(lambda one: _graded(one[0], one[1], resolved, programs), given))


def scores(items: Sequence[Item], graded: Sequence[GradedAnswer]) -> list[DimensionScore]:
    """How each dimension was answered, in the order in which the items have them."""
    asked: dict[str, int] = defaultdict(int)
    for item in items:
        asked[item.dimension] += 1
    of: dict[str, list[GradedAnswer]] = {dimension: [] for dimension in asked}
    for one in graded:
        of[one.dimension].append(one)
    return [_score(dimension, asked[dimension], answers) for dimension, answers in of.items()]


def _graded(item: Item, answer: str, extractor: Extractor, programs: Programs) -> GradedAnswer:
    def worth(outcome: Outcome, passed: int, total: int, detail: str) -> GradedAnswer:
        return GradedAnswer(item.item_id, item.dimension, outcome, passed, total, detail)

    trial = Trial(arm=Arm.CANONICAL, item_id=item.item_id, prompt=item.question, choices=item.choices)
    if extractor.name == EXECUTION:
        code = extractor.extract(answer, ())
        if code is None:
            return worth(Outcome.INVALID, 0, 1, "no code in the answer")
        tried = programs.tried(code, item.target)
        return worth(tried.outcome, tried.passed, tried.total, tried.detail)
    reading = read_answer(trial, answer, item.target, extractor)
    if extractor.name == EXTRACTORS["constraints"].name and reading.extracted is not None:
        constraints = parse_constraints(item.target)
        kept = checked(reading.extracted, constraints)
        broken = [one.kind for one, held in zip(constraints, kept, strict=True) if not held]
        return worth(reading.outcome, sum(kept), len(kept), f"broken: {', '.join(broken)}" if broken else "")
    right = reading.outcome is Outcome.CORRECT
    said = "no answer found" if reading.extracted is None else f"read as {reading.extracted[:60]!r}"
    return worth(reading.outcome, int(right), 1, "" if right else said)


def _score(dimension: str, items: int, answers: Sequence[GradedAnswer]) -> DimensionScore:
    correct = sum(one.outcome is Outcome.CORRECT for one in answers)
    interval = wilson(correct, items, LEVEL)
    assert interval.low is not None
    assert interval.high is not None
    return DimensionScore(
        dimension,
        items,
        correct,
        sum(one.outcome is Outcome.INVALID for one in answers),
        items - len(answers),
        correct / items,
        interval.low,
        interval.high,
        sum(one.passed / one.total for one in answers) / items,
    )


def plain(graded: Sequence[GradedAnswer], found: Sequence[DimensionScore]) -> dict[str, Any]:
    """Both as JSON-ready data."""
    return {"dimensions": [one._asdict() for one in found], "answers": [one._asdict() for one in graded]}
