"""The class of a wrong answer: what went wrong with it, told from the question, the target and the text alone."""

from __future__ import annotations

import re
from enum import StrEnum
from fractions import Fraction
from typing import Final, NamedTuple

from proctor.grading.extractors import target_number
from proctor.grading.letters import normalised
from proctor.grading.numbers import number_text, plain_notation
from proctor.grading.triage.equations import Executed, equations, execute
from proctor.grading.triage.notations import numeral_in, readings, written_alike
from proctor.grading.triage.statements import (
    RETRACTION,
    conclusion,
    explicit_statements,
    stated_answer,
)

#: What is read of a text: no answer of a benchmark is longer, and 64 retractions are a loop and not a correction.
_MAX_CHARACTERS: Final = 1_000_000
_MAX_RETRACTIONS: Final = 64
_SHOWN: Final = 160


class WrongAnswer(StrEnum):
    """Classes of wrong answers in the order in which they are tried; the first that holds is the answer's."""

    TRUNCATED = "truncated"
    EXTRACTION = "extraction"
    STEPWISE = "stepwise"
    REGRESS = "self_correction_regress"
    NUMERAL_FORMAT = "numeral_format"
    REASONING = "reasoning"


class Triage(NamedTuple):
    """The class of a wrong answer, and the words that decided."""

    label: WrongAnswer
    evidence: str


def triage(
    question: str | None, expected: str, text: str, *, truncated: bool | None, extracted: str | None = None
) -> Triage:
    """Say what went wrong with an answer that was graded wrong. First match wins; deterministic, and no model judges.

    Args:
        question: the problem; None where the log does not have it.
        expected: the target, or a worked solution that ends in one (GSM8K's `#### 18`).
        text: what the model wrote. One million characters are read.
        truncated: whether the answer was cut at its token limit; None where it is not known, and then no answer is
            called truncated, for length and missing full stops prove nothing.
        extracted: what the log's extractor read; '' where it found nothing, None where the log does not say. It only
            tells `extraction` from `numeral_format`: without it, a numeral that is written as the target is decides.

    The classes, and what each misses:

    `truncated`: it was cut, and no answer is marked as one (`####`, `\\boxed`, "answer is"). Misses answers that were
    cut after a wrong intermediate "answer is".

    `extraction`: the answer that the text gives, by `####`, `\\boxed`, "answer is" or its concluding sentence, *is*
    the expected one, written with the same digits: the extractor read another place, or nothing. Misses concluding
    sentences with several numbers of which none is bold, and a right answer in the middle of a text.

    `stepwise`: executing the written arithmetic again, each slip carried on to where its result is used, gives the
    expected value where the text states another: the equation that computes the stated answer is the one that comes
    out right, or the last equation does. Misses algebra, powers, and arithmetic in words.

    `self_correction_regress`: the value given last before a retraction ("wait", "let me recalculate", "I made a
    mistake") is the expected one, and the answer after it is another. Misses changes of mind that are not announced.

    `numeral_format`: the stated answer is the expected one in another *numeral* (1.000 for 1,000; 18.00; 3 1/2; 25 %
    for 0.25; twelve): the extractor read the right place and took the number for another. Misses units (50 cents for
    $0.50) and rounding, which change the number.

    `reasoning`: the rest. A refusal, an answer to another problem, and an empty text are in it as well.
    """
    return _Case(question, expected, text, extracted).decide(truncated)


class _Case:
    """One wrong answer under examination."""

    def __init__(self, question: str | None, expected: str, text: str, extracted: str | None) -> None:
        self._question = question
        self._expected = expected.rpartition("####")[2].strip()
        self._target = target_number(expected)
        self._text = plain_notation(text[:_MAX_CHARACTERS])
        self._extracted = None if extracted is None else extracted.strip()
        numeric = self._target is not None
        self._explicit = explicit_statements(self._text, numeric=numeric)
        self._stated = stated_answer(self._text, self._explicit)

    def decide(self, truncated: bool | None) -> Triage:
        if truncated and not self._explicit:
            return Triage(WrongAnswer.TRUNCATED, f"cut, without a marked answer, at: …{_shown(self._text[-60:])}")
        hit = self._hit()
        if hit is WrongAnswer.EXTRACTION:
            return Triage(hit, self._stated_words())
        if (slip := self._slip()) is not None:
            return slip
        if (regress := self._regress()) is not None:
            return regress
        if hit is not None:
            return Triage(hit, self._stated_words())
        return Triage(WrongAnswer.REASONING, self._stated_words())

    def _stated_words(self) -> str:
        if self._stated is None:
            return "no answer is stated"
        return f"{self._stated.notation}: {_shown(self._stated.raw)}"

    def _hit(self) -> WrongAnswer | None:
        """Whether the stated answer is the expected one, and if so whether place or numeral kept it from being read."""
        if self._stated is None:
            return None
        raw = self._stated.raw
        if self._target is None:
            same = normalised(raw).strip("()[]$ ") == normalised(self._expected).strip("()[]$ ")
            return WrongAnswer.EXTRACTION if same else None
        if not self._readings(raw) & {self._target}:
            return None
        if self._extracted is None:
            elsewhere = written_alike(raw, self._expected)
        elif any(character.isalnum() for character in self._extracted):
            elsewhere = not self._read_there(raw, self._extracted)
        else:
            # Nothing was read: in digits it would have been, had the extractor looked there.
            elsewhere = any(character.isdecimal() for character in raw)
        return WrongAnswer.EXTRACTION if elsewhere else WrongAnswer.NUMERAL_FORMAT

    def _readings(self, raw: str) -> frozenset[Fraction]:
        return readings(raw, self._question)

    def _read_there(self, raw: str, extracted: str) -> bool:
        """Whether what was extracted is the stated numeral, or a piece of it."""
        if self._target in self._readings(extracted):
            return True
        piece = re.escape(extracted.strip("$.,% "))
        numeral = next((match[0] for match in numeral_in(raw)), raw)
        return re.search(rf"(?<!\w){piece}(?!\w)", numeral) is not None

    def _slip(self) -> Triage | None:
        if self._target is None:
            return None
        end = self._stated.end if self._stated is not None else len(self._text)
        given = {value for match in numeral_in(plain_notation(self._question or "")) for value in readings(match[0])}
        executed = execute(equations(self._text[:end]), given=given)
        answer = self._stated.value if self._stated is not None else None
        if answer is None and executed:
            answer = executed[-1].equation.value
        computing = next((one for one in reversed(executed) if one.equation.value == answer), None)
        for one in (computing, executed[-1] if executed else None):
            if one is not None and one.recomputed == self._target != answer:
                return Triage(WrongAnswer.STEPWISE, _slip_words(one, executed))
        return None

    def _regress(self) -> Triage | None:
        if self._target is None or self._stated is None or self._target in self._readings(self._stated.raw):
            return None
        given: list[tuple[int, Fraction]] = [
            *((one.start, one.value) for one in self._explicit if one.value is not None),
            *((one.start, one.value) for one in equations(self._text)),
        ]
        for number, match in enumerate(RETRACTION.finditer(self._text, 0, self._stated.start)):
            if number >= _MAX_RETRACTIONS:
                break
            before = [(start, value) for start, value in given if start < match.start()]
            concluded = conclusion(self._text[max(0, match.start() - 600) : match.start()])
            last = max(before, default=None)
            right = last is not None and last[1] == self._target
            if right or (concluded is not None and concluded.value == self._target):
                return Triage(WrongAnswer.REGRESS, _shown(self._text[max(0, match.start() - 50) : match.end() + 30]))
        return None


def _slip_words(one: Executed, executed: list[Executed]) -> str:
    slip = next((step for step in executed if not step.follows), one)
    return f"{_shown(slip.equation.written)}; executed again, the answer is {number_text(one.recomputed)}"


def _shown(text: str) -> str:
    return " ".join(text.split())[:_SHOWN]


def looks_cut(text: str) -> bool:
    """Whether a text looks as if it had been cut: a guess, and never the ground of a verdict.

    It has more than one line or sentence, marks no answer (`####`, `\\boxed`, "answer is"), and ends in a letter, a
    comma or an operator. Misses answers cut after a full stop or a digit, and those that ramble on past an answer;
    takes lists and code for cut.
    """
    plain = plain_notation(text[:_MAX_CHARACTERS]).rstrip()
    if not plain or not re.search(r"[.!?:]\s|\n", plain) or explicit_statements(plain, numeric=False):
        return False
    return plain[-1].isalpha() or plain[-1] in ",;:-+=/(&\\"
