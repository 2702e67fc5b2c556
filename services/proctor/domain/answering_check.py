"""What the answering check found of an audit's rewordings, as it is kept and as the report has it."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from proctor.domain.base import Frozen

#: Held rewordings that are listed with their answers, and characters of an answer and of a question in that list.
MAX_HELD_LISTED: Final = 1_000
MAX_ANSWER_CHARACTERS: Final = 120
MAX_HELD_QUESTION_CHARACTERS: Final = 1_000
#: Different answers of a solver to a wording that are listed, the most frequent first.
MAX_ANSWERS_LISTED: Final = 5


class AnswerCount(Frozen):
    """How often an answer was given."""

    answer: str | None
    """As the suite's extractor read it; None where it could not be read."""
    n: int


class SolverAnswers(Frozen):
    """What one solver answered to an item's own wording and to a rewording, the most frequent answers of each."""

    solver: str
    item: tuple[AnswerCount, ...]
    rewording: tuple[AnswerCount, ...]


class HeldVariant(Frozen):
    """A rewording that the check holds for reading, and why."""

    item_id: str
    variant_id: str
    finding: str
    """`answers_disagree`, or `not_checked` where too few answers came back."""
    question: str
    """Of the rewording."""
    p: float | None
    """Of the exact test that each solver answers both wordings alike; None where it was not made."""
    answers: tuple[SolverAnswers, ...]
    """Of every solver, heard or not."""
    kept: bool = Field(default=False, exclude_if=lambda kept: not kept)
    """Whether it is asked all the same: the suite allows it, or only lists what disagrees."""


class SolverFacts(Frozen):
    """A solver, as far as it can be told, and whether it is heard."""

    model: str
    digests: tuple[str, ...]
    """Digests of the weights that answered, in order."""
    calls: int
    """Prompts that it was asked."""
    failed: int
    """Those of them to which no answer came."""
    items: int
    """Items to whose own wording enough answers came."""
    known: int
    """Those of them to which its usual answer is right."""
    skill: float | None
    """The share of the items that it knows beyond what guessing gives; None where there is no item."""
    heard: bool
    """Whether that is enough to be heard."""


class AnsweringCheck(Frozen):
    """The answering check of an audit's rewordings."""

    solvers: tuple[SolverFacts, ...]
    samples: int
    """Answers of each solver to each wording that were asked for."""
    alpha: float
    """False discovery rate over all rewordings of which there are answers."""
    findings: dict[str, int]
    """Rewordings by what was found of them."""
    held: int
    """Rewordings that take no part in the audit because of the check."""
    listed: tuple[HeldVariant, ...]
    """Those that disagree or were not checked, in the order of the items; at most MAX_HELD_LISTED."""
    not_listed: int = 0
