"""The arithmetic that a worked answer writes down, found and executed again with exact fractions.

A stated result that does not follow is replaced by the one that does wherever it is used later, so that a slip in
line 2 is carried to the last line as the model would have carried the right value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fractions import Fraction
from itertools import islice
from typing import Final, NamedTuple

from proctor.grading.triage.arithmetic import Kind, NotArithmeticError, Token, evaluate
from proctor.grading.triage.tokens import leading_number, side_tokens, trailing_expression

#: A worked answer has tens of equals signs; a megabyte of them is not worth reading to its end.
MAX_SIGNS: Final = 5000
#: What is read of each side.
_SIDE_CHARACTERS: Final = 200
_EQUALS = re.compile(r"=|≈|\\approx(?![A-Za-z])")
_BULLET = re.compile(r"\s*(?:[-*•]\s|\d{1,3}[.)]\s)?")
_CONTINUED = re.compile(r"[\s&$\\\[\]()]*(?:=|≈|\\approx)")
_NAME = re.compile(r"[\s*•-]{0,20}([A-Za-z][^=≈\n]{0,100}?)\s{0,8}(?:=|≈|\\approx)")
_HUNDREDTH, _BARE = Fraction(1, 100), Fraction(1)


class Equation(NamedTuple):
    """`expression = stated`, with where the stated number stands in the text."""

    expression: tuple[Token, ...]
    stated: tuple[Token, ...]
    start: int
    written: str

    @property
    def value(self) -> Fraction:
        """The stated number as it is written, without regard to a percent sign."""
        number = next(token for token in self.stated if token.value is not None)
        assert number.value is not None
        return -number.value if self.stated[0].text == "-" else number.value


class Executed(NamedTuple):
    """An equation with the value that its arithmetic gives, wrong values before it put right."""

    equation: Equation
    recomputed: Fraction
    follows: bool
    """Whether the stated number is that value, exactly or rounded to the decimals that it is written with."""


def equations(text: str) -> Iterator[Equation]:
    """Every equation with arithmetic on its left and a number on its right, in reading order.

    `a + b = c + d = 7` states 7 for a + b. A line goes on from the one before where it begins with an equals sign, or
    with the same words before one ("Total = 3 + 4", "Total = 7").
    Algebra, powers, roots, results that are fractions and arithmetic in words are not read.
    """
    seen = 0
    source: list[Token] | None = None
    label, offset = "", 0
    for line in text.split("\n"):
        name = _NAME.match(line)
        goes_on = bool(_CONTINUED.match(line) or (name and name[1] == label))
        source = source if goes_on else None
        label = name[1] if name else label
        signs = list(islice(_EQUALS.finditer(line), MAX_SIGNS - seen))
        seen += len(signs)
        bounds = [0, *(sign.end() for sign in signs)], [*(sign.start() for sign in signs), len(line)]
        for index, (begin, end) in enumerate(zip(*bounds, strict=True) if signs or source is not None else ()):
            if index == 0:
                bullet = _BULLET.match(line, begin, end)
                begin = bullet.end() if bullet else begin
            else:
                stated = leading_number(side_tokens(line[begin : min(end, begin + _SIDE_CHARACTERS)]))
                if stated is not None and source is not None:
                    written = f"{''.join(_written(token) for token in source)} = {''.join(t.text for t in stated)}"
                    yield Equation(tuple(source), tuple(stated), offset + begin, written)
                    source = None
            if index == 0 and goes_on:
                continue
            tokens = side_tokens(line[max(begin, end - _SIDE_CHARACTERS) : end])
            expression = trailing_expression(tokens)
            # The first expression of a chain is what the chain computes, unless a later one begins anew.
            if expression is None or source is None or expression[0].start > tokens[0].start:
                source = expression
        offset += len(line) + 1


def execute(found: Iterator[Equation], *, given: Collection[Fraction] = ()) -> list[Executed]:
    """Execute equations in order.

    Args:
        found: equations in reading order.
        given: numbers of the question, which stay as they are even where a wrong result has the same value.
    """
    replaced: dict[Fraction, Fraction] = {}
    executed: list[Executed] = []
    for equation in found:
        try:
            recomputed = evaluate(equation.expression, replaced, percent=_HUNDREDTH)
            bare = evaluate(equation.expression, replaced, percent=_BARE)
        except NotArithmeticError:
            continue
        in_percent = equation.stated[-1].kind is Kind.PERCENT
        stated = equation.value
        # "12 / 16 * 100 = 75 %" and "12 / 16 = 75 %" are both how people write it.
        readings = {stated, stated / 100} if in_percent else {stated}
        exact = bool(readings & {recomputed, bare})
        follows = exact or any(_rounds_to(value, stated, _decimals(equation)) for value in (recomputed, bare))
        if exact:
            replaced.pop(stated, None)
        elif stated not in given:
            replaced[stated] = recomputed
        executed.append(Executed(equation, recomputed, follows))
    return executed


def _rounds_to(value: Fraction, stated: Fraction, decimals: int) -> bool:
    """Whether a number is a value rounded or cut to its decimals; a value that needs no rounding has to be exact."""
    scale = Fraction(10) ** decimals
    return (value * scale).denominator != 1 and abs(value - stated) * scale < 1


def _decimals(equation: Equation) -> int:
    number = next(token for token in equation.stated if token.kind is Kind.NUMBER)
    return len(number.text.partition(".")[2])


def _written(token: Token) -> str:
    return f" {token.text} " if token.kind is Kind.OPERATOR else token.text
