"""What a solver answered to each wording, read by the suite's extractor, and whether it knows the benchmark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from proctor.domain.answering import AnsweringCheckSection, SolverSection
from proctor.domain.answering_check import MAX_ANSWER_CHARACTERS, SolverFacts
from proctor.domain.canonical import text_id
from proctor.domain.item import Item
from proctor.evidence.answering.holding import enough, skill, usual_answer
from proctor.evidence.answering.sameness import Counts
from proctor.grading import Extractor, resolve_extractor
from proctor.runtime.artifacts.calls import Call

_NOTHING: Counts = {}


class Targets(NamedTuple):
    """What is right for each item, and how answers are read."""

    extractor: Extractor
    right: Mapping[str, str]
    """Item id → target."""
    guessed: Mapping[str, float]
    """Item id → the chance that a guess is right."""


def targets_of(items: Iterable[Item], extractor: str) -> Targets:
    """Read what is right for the items, which are gone through once.

    Raises:
        BadInputError: the extractor cannot read the items' answers.
    """
    right, guessed = dict[str, str](), dict[str, float]()

    def noted() -> Iterator[Item]:
        for item in items:
            right[item.item_id] = item.target
            guessed[item.item_id] = 1.0 / len(item.choices) if len(item.choices) > 1 else 0.0
            yield item

    return Targets(resolve_extractor(extractor, noted()), right, guessed)


class Solver(NamedTuple):
    """What a solver answered, and what is known of it."""

    facts: SolverFacts
    given: Mapping[tuple[str, str | None], Counts]
    """(item, rewording; None for the item's own wording) → its answers. What got none is missing."""
    known: frozenset[str]
    """The items to whose own wording its usual answer is right; none where it is not heard."""

    def answers(self, item_id: str, variant_id: str | None) -> Counts:
        """Its answers to a wording."""
        return self.given.get((item_id, variant_id), _NOTHING)


def read_solver(
    calls: Iterable[Call], section: SolverSection, check: AnsweringCheckSection, targets: Targets
) -> Solver:
    """Read what a solver was asked and said. An error row is no answer.

    Args:
        calls: each of its calls once, in any order.
        section: the solver.
        check: the check, for its samples and for the skill that is heard.
        targets: of the audit's items.
    """
    given: dict[tuple[str, str | None], Counter[str | None]] = defaultdict(Counter)
    right: dict[str, set[str]] = defaultdict(set)
    n_calls = n_failed = 0
    digests = set[str]()
    for trial, said in calls:
        n_calls += 1
        if said is None or said.error is not None:
            n_failed += 1
            continue
        if said.model_digest is not None:
            digests.add(said.model_digest)
        answer = targets.extractor.extract(said.text, trial.choices, trial.labels)
        kept = None if answer is None else _bounded(answer)
        given[trial.item_id, trial.variant_id][kept] += 1
        if kept is not None and trial.variant_id is None and _is_right(answer, trial.item_id, targets):
            right[trial.item_id].add(kept)
    asked = [item for item, variant in given if variant is None and enough(given[item, None], check.samples)]
    known = {item for item in asked if usual_answer(given[item, None]) in right[item]}
    guessed = sum(targets.guessed[item] for item in asked) / len(asked) if asked else 0.0
    skilled = skill(len(known), len(asked), guessed)
    heard = skilled is not None and skilled >= check.min_skill
    facts = SolverFacts(
        model=section.model,
        digests=tuple(sorted(digests)),
        calls=n_calls,
        failed=n_failed,
        items=len(asked),
        known=len(known),
        skill=skilled,
        heard=heard,
    )
    return Solver(facts, given, frozenset(known if heard else ()))


def _is_right(answer: str | None, item_id: str, targets: Targets) -> bool:
    return answer is not None and targets.extractor.agrees(answer, targets.right[item_id])


def _bounded(answer: str) -> str:
    """An answer in at most MAX_ANSWER_CHARACTERS, and different ones differently: whole texts are answers too."""
    if len(answer) <= MAX_ANSWER_CHARACTERS:
        return answer
    mark = f"… {text_id(answer)}"
    return answer[: MAX_ANSWER_CHARACTERS - len(mark)] + mark
