"""What an audit asks a model, asked in this process and graded as an audit grades."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from planted_leaks.benchmarks import Benchmark, prompt
from planted_leaks.grades import ABSENT, Grades, sign
from planted_leaks.language_model import LanguageModel
from planted_leaks.rewordings import Admitted
from proctor.domain.trial import Outcome
from proctor.grading.extractors import EXTRACTORS

#: Instead of which items leak, until the run says so.
_UNKNOWN: Final = ""


class Asked(NamedTuple):
    """One prompt, and what its answer is held against."""

    prompt: str
    choices: tuple[str, ...]
    target: str


def graded_arms(
    model: LanguageModel, arms: Sequence[Sequence[Asked | None]], extractor: str, max_tokens: int
) -> list[str]:
    """Ask all arms at once, so that most prompts have others of their length beside them, and grade each answer."""
    asked = [one for arm in arms for one in arm if one is not None]
    signs = iter(_graded(model, asked, extractor, max_tokens))
    return ["".join(ABSENT if one is None else next(signs) for one in arm) for arm in arms]


def _graded(model: LanguageModel, asked: Sequence[Asked], extractor: str, max_tokens: int) -> list[str]:
    reader = EXTRACTORS[extractor]
    said = model.answers([one.prompt for one in asked], max_tokens)
    signs = []
    for one, text in zip(asked, said, strict=True):
        extracted = reader.extract(text, one.choices, None)
        if extracted is None:
            signs.append(sign(Outcome.INVALID))
        else:
            right = reader.agrees(extracted, one.target)
            signs.append(sign(Outcome.CORRECT if right else Outcome.INCORRECT))
    return signs


class Asking:
    """The arms of an audit of a benchmark: canonical, reworded, fresh."""

    def __init__(self, benchmark: Benchmark, admitted: Admitted) -> None:
        self._kind = benchmark.kind
        self._items = [question.item.item_id for question in benchmark.items]
        self._arms: list[list[Asked | None]] = [
            [Asked(prompt(one.item.question, one.item.choices), one.item.choices, one.item.target) for one in questions]
            for questions in (benchmark.items, benchmark.fresh)
        ]
        for number in range(self._kind.variants):
            arm: list[Asked | None] = []
            for question in benchmark.items:
                variants = admitted.by_item.get(question.item.item_id, [])
                if number < len(variants):
                    text, choices = variants[number]
                    arm.append(Asked(prompt(text, choices), choices, question.item.target))
                else:
                    arm.append(None)
            self._arms.append(arm)

    def ask(self, model: LanguageModel) -> Grades:
        """The grades of all arms; which items leak is not known here."""
        canonical, fresh, *reworded = graded_arms(model, self._arms, self._kind.extractor, self._kind.max_tokens)
        return Grades(_UNKNOWN, canonical, tuple(reworded), fresh)

    def grades_of(self, outcomes: Mapping[tuple[str, str], Outcome | None]) -> Grades:
        """The grades of an audit that somebody else asked: no fresh items, and which items leak is not known here.

        Args:
            outcomes: by item and prompt; None where no answer came, which is graded as an unreadable one.

        Raises:
            LookupError: a prompt was not asked.
        """
        canonical, _, *reworded = self._arms
        signs = [self._signs(arm, outcomes) for arm in (canonical, *reworded)]
        return Grades(_UNKNOWN, signs[0], tuple(signs[1:]), "")

    def _signs(self, arm: Sequence[Asked | None], outcomes: Mapping[tuple[str, str], Outcome | None]) -> str:
        written = []
        for item_id, one in zip(self._items, arm, strict=True):
            if one is None:
                written.append(ABSENT)
            elif (item_id, one.prompt) not in outcomes:
                raise LookupError(f"{item_id} was not asked as {one.prompt!r}")
            else:
                written.append(sign(outcomes[item_id, one.prompt] or Outcome.INVALID))
        return "".join(written)
