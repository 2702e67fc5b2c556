"""Worked solutions with annotated arithmetic, as GSM8K has them: `<<16-3-4=9>>`, evaluated in exact fractions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

_ANNOTATION: Final = re.compile(r"<<([^<>\n]*)>>")
_ANSWER: Final = re.compile(r"^####[ \t]*(\S.*)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"-?\$?-?(?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+|\.)?(?:/\d+)?")
_TOKEN: Final = re.compile(r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)|(?P<mark>[-+*/()]))")
#: No worked solution of a word problem comes near; longer input is refused before it is parsed.
_MAX_EXPRESSION: Final = 300
_MAX_DEPTH: Final = 40


class SolutionError(ValueError):
    """A solution that cannot be recomputed. `reason` is a code to count by."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Leaf(NamedTuple):
    """A number in an expression: the n-th of its solution."""

    number: int
    value: Fraction


class Operation(NamedTuple):
    """Two expressions and one of + - * /."""

    sign: str
    left: Expression
    right: Expression


Expression = Leaf | Operation


class Step(NamedTuple):
    """An annotation: what is computed, its leaves in reading order, and the value that is written behind it."""

    expression: Expression
    leaves: tuple[Leaf, ...]
    stated: Fraction
    decimals: int
    """Decimals of the stated value: a rounded one is right to so many."""

    @property
    def exact(self) -> bool:
        """Whether the stated value is the expression's."""
        return evaluate(self.expression) == self.stated

    @property
    def right(self) -> bool:
        """Whether the stated value is the expression's, perhaps rounded or cut to its decimals."""
        return abs(evaluate(self.expression) - self.stated) < Fraction(1, 10**self.decimals)


class Solution(NamedTuple):
    """The annotated steps in order, and the final answer."""

    steps: tuple[Step, ...]
    answer: Fraction
    gap: str
    """The beginning of a line with an equation that no annotation repeats; empty where there is none."""


def parse_solution(text: str) -> Solution:
    """Read a worked solution.

    Raises:
        SolutionError: `no_annotations`, `annotation_unreadable` or `no_answer`.
    """
    found = _ANSWER.findall(text)
    answer = _number(found[-1].strip()) if found else None
    if answer is None:
        raise SolutionError("no_answer", "the solution ends in no line '#### number'")
    steps = list(_steps(text))
    if not steps:
        raise SolutionError("no_annotations", "the solution has no <<expression=value>>")
    gaps = (line for line in text.splitlines() if _ANNOTATION.sub("", line).count("=") > len(_ANNOTATION.findall(line)))
    return Solution(tuple(steps), answer, next(gaps, "")[:80])


def evaluate(expression: Expression, value_of: Callable[[Leaf], Fraction] = lambda leaf: leaf.value) -> Fraction:
    """The exact value of an expression.

    Raises:
        ZeroDivisionError: for a division by 0.
    """
    if isinstance(expression, Leaf):
        return value_of(expression)
    left, right = evaluate(expression.left, value_of), evaluate(expression.right, value_of)
    if expression.sign == "+":
        return left + right
    if expression.sign == "-":
        return left - right
    return left * right if expression.sign == "*" else left / right


def _steps(text: str) -> Iterator[Step]:
    count = 0
    for annotation in _ANNOTATION.findall(text):
        left, equals, right = annotation.partition("=")
        stated = _number(right.strip())
        if not equals or stated is None or len(left) > _MAX_EXPRESSION:
            raise SolutionError("annotation_unreadable", f"<<{annotation[:80]}>>")
        try:
            reader = _Reader(left, count)
            expression = reader.read()
            evaluate(expression)
        except (ValueError, ZeroDivisionError) as error:
            raise SolutionError("annotation_unreadable", f"<<{annotation[:80]}>>: {error}") from None
        count += len(reader.leaves)
        point = right.partition(".")[2].strip()
        yield Step(expression, tuple(reader.leaves), stated, len(point))


def _number(text: str) -> Fraction | None:
    if not re.search(r"\d", text) or len(text) > _MAX_EXPRESSION or not _NUMBER.fullmatch(text.rstrip(". ")):
        return None
    try:
        return Fraction(text.rstrip(". ").replace(",", "").replace("$", ""))
    except (ValueError, ZeroDivisionError):
        return None


class _Reader:
    """Recursive descent over sum, product, and a number or a bracket."""

    def __init__(self, text: str, first_leaf: int) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._first = first_leaf
        self.leaves: list[Leaf] = []

    def read(self) -> Expression:
        whole = self._sum()
        if self._at < len(self._tokens):
            raise ValueError(f"{self._tokens[self._at]!r} is out of place")
        return whole

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _sum(self) -> Expression:
        left = self._product()
        while self._peek() in ("+", "-"):
            left = Operation(self._take(), left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._atom()
        while self._peek() in ("*", "/"):
            left = Operation(self._take(), left, self._atom())
        return left

    def _atom(self) -> Expression:
        mark = self._take()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("brackets are too deep")
        try:
            if mark in ("-", "+"):
                return Operation(mark, Leaf(-1, Fraction(0)), self._atom())
            if mark == "(":
                inner = self._sum()
                if self._take() != ")":
                    raise ValueError("a bracket is not closed")
                return inner
            if not mark or not (mark[0].isdigit() or mark[0] == "."):
                raise ValueError(f"{mark!r} is no number")
            leaf = Leaf(self._first + len(self.leaves), Fraction(mark))
            self.leaves.append(leaf)
            return leaf
        finally:
            self._depth -= 1


def _tokens(text: str) -> Sequence[str]:
    tokens, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at : at + 10]!r} is no arithmetic")
        tokens.append(match.group().strip())
        at = match.end()
    return tokens
