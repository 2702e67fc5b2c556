"""Expressions of + − × ÷ and parentheses as tokens, and their exact values. Nothing is ever handed to `eval`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final, NamedTuple

#: Values with longer numerators or denominators are no sums of a worked answer; squaring a text's own results over
#: and over would otherwise double their length with every line.
_MAX_BITS: Final = 4096
_MAX_DEPTH: Final = 20


class Kind(StrEnum):
    """What a token is to an expression."""

    NUMBER = "number"
    PERCENT = "percent"
    OPERATOR = "operator"
    OPEN = "open"
    CLOSE = "close"
    WORD = "word"
    STOP = "stop"
    """Ends whatever stood before it: a colon, a comma, the end of a sentence."""
    OTHER = "other"


class Token(NamedTuple):
    """A piece of text; `value` is set for numbers, and `start` and `end` are its span."""

    kind: Kind
    text: str
    start: int
    end: int
    value: Fraction | None = None


class NotArithmeticError(ValueError):
    """Tokens that are no expression, a division by zero, or a value past any that an answer holds."""


def evaluate(tokens: Sequence[Token], replaced: Mapping[Fraction, Fraction], *, percent: Fraction) -> Fraction:
    """The value of an expression, products before sums.

    Args:
        tokens: numbers, percent signs, + - * / and parentheses.
        replaced: values to use in place of those that are written.
        percent: what a percent sign multiplies its number with, 1/100 or 1.

    Raises:
        NotArithmeticError: where the tokens are not one expression that has a value.
    """
    parser = _Parser(tokens, replaced, percent)
    value = parser.sum(0)
    if not parser.ended:
        raise NotArithmeticError("more than one expression")
    return value


class _Parser:
    """Recursive descent: sum → product → signed → number or parenthesis."""

    def __init__(self, tokens: Sequence[Token], replaced: Mapping[Fraction, Fraction], percent: Fraction) -> None:
        self._tokens = tokens
        self._replaced = replaced
        self._percent = percent
        self._at = 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def sum(self, depth: int) -> Fraction:
        value = self._product(depth)
        while operator := self._operator("+-"):
            right = self._product(depth)
            value = _bounded(value + right if operator == "+" else value - right)
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._signed(depth)
        while operator := self._operator("*/"):
            right = self._signed(depth)
            if operator == "/" and right == 0:
                raise NotArithmeticError("a division by zero")
            value = _bounded(value * right if operator == "*" else value / right)
        return value

    def _signed(self, depth: int) -> Fraction:
        if self._operator("-"):
            return -self._operand(depth)
        return self._operand(depth)

    def _operand(self, depth: int) -> Fraction:
        token = self._next()
        if token.kind is Kind.NUMBER and token.value is not None:
            value = self._replaced.get(token.value, token.value)
        elif token.kind is Kind.OPEN and depth < _MAX_DEPTH:
            value = self.sum(depth + 1)
            if self._next().kind is not Kind.CLOSE:
                raise NotArithmeticError("a parenthesis that does not close")
        else:
            raise NotArithmeticError(f"{token.text!r} where a number is needed")
        if not self.ended and self._tokens[self._at].kind is Kind.PERCENT:
            self._at += 1
            value *= self._percent
        return value

    def _operator(self, wanted: str) -> str:
        """The next token's text where it is one of the operators wanted, consumed; '' otherwise."""
        if self.ended or self._tokens[self._at].kind is not Kind.OPERATOR or self._tokens[self._at].text not in wanted:
            return ""
        self._at += 1
        return self._tokens[self._at - 1].text

    def _next(self) -> Token:
        if self.ended:
            raise NotArithmeticError("an operand is missing")
        self._at += 1
        return self._tokens[self._at - 1]


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > _MAX_BITS:
        raise NotArithmeticError("a value of thousands of digits")
    return value
