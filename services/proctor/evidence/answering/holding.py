"""Which rewordings are held for reading: those to which solvers systematically answer something else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from proctor.evidence.answering.sameness import Counts, TwoWordings, same_answers
from proctor.evidence.discrete_fdr import DiscreteP, discoveries


class Finding(StrEnum):
    """What the check says of one rewording."""

    AGREE = "agree"
    """No systematic difference was found. With few samples a difference can go unseen."""
    DISAGREE = "answers_disagree"
    """The answers differ beyond chance, and most solvers that know the item give another answer."""
    NO_SOLVER_KNOWS = "no_solver_knows"
    """No solver that can be heard knows the item in its own wording, so that nothing could be told."""
    NOT_CHECKED = "not_checked"
    """Too few answers came back."""


class SolverPair(NamedTuple):
    """One solver's answers to an item's own wording and to a rewording."""

    answers: TwoWordings
    known: bool
    """Whether most of its answers to the item's own wording are right."""


class Held(NamedTuple):
    """What was found of one rewording."""

    finding: Finding
    p: float | None
    """Of the exact test that all solvers answer both wordings alike; None where it was not made."""


def usual_answer(answers: Counts) -> str | None:
    """The answer that more than half of the samples give; None where there is none, or it cannot be read."""
    total = sum(answers.values())
    return next((answer for answer, n in answers.items() if answer is not None and 2 * n > total), None)


def enough(answers: Counts, samples: int) -> bool:
    """Whether more than half of the samples that were asked for came back."""
    return 2 * sum(answers.values()) > samples


def findings(pairs: Sequence[Sequence[SolverPair]], alpha: float) -> list[Held]:
    """What is found of each rewording of an audit, which are one family.

    A rewording disagrees where the exact test is a discovery at the false discovery rate alpha, over all rewordings of
    which there are answers, and where, of the solvers that know the item, more usually give another answer to the
    rewording than the same. So a solver without a usual answer, or with a wrong one to the item's own wording, holds
    nothing: one that guesses differs by chance, and one that is wrong may be wrong in another way. Scattered answers
    to a rewording hold nothing either: a harder wording brings them too, and so does a solver's memory of the item.

    Args:
        pairs: of each rewording the solvers that gave enough answers to both wordings; none where there is no such.
        alpha: the false discovery rate.
    """
    tests = [None if not solvers else same_answers([one.answers for one in solvers]) for solvers in pairs]
    made = [test for test in tests if test is not None]
    discovered = iter(discoveries(made, alpha))
    return [
        _found(solvers, test, test is not None and next(discovered)) for solvers, test in zip(pairs, tests, strict=True)
    ]


def _found(solvers: Sequence[SolverPair], test: DiscreteP | None, discovery: bool) -> Held:
    if test is None:
        return Held(Finding.NOT_CHECKED, None)
    known = [one.answers for one in solvers if one.known]
    if not known:
        return Held(Finding.NO_SOLVER_KNOWS, test.value)
    usual = [(usual_answer(one.item), usual_answer(one.rewording)) for one in known]
    other = sum(second is not None and second != first for first, second in usual)
    same = sum(second is not None and second == first for first, second in usual)
    return Held(Finding.DISAGREE if discovery and other > same else Finding.AGREE, test.value)


def skill(known: int, asked: int, guessed: float) -> float | None:
    """The share of items that a solver knows beyond what guessing would bring; None where it was asked none.

    Args:
        known: items to whose own wording its usual answer is right.
        asked: items to whose own wording it gave enough answers.
        guessed: the chance that a guess is right, below 1.
    """
    return None if asked == 0 else (known / asked - guessed) / (1.0 - guessed)
