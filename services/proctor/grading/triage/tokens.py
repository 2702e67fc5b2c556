"""One side of an equation in running text, as tokens: LaTeX, currency and units are seen through."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from proctor.grading.triage.arithmetic import Kind, Token

#: "5 red toy cars * $4": words between a number and its operator are its unit. More of them are a sentence.
_UNIT_WORDS: Final = 4
#: Longer runs of digits are no sums of a worked answer, and converting them costs quadratic time.
_MAX_DIGITS: Final = 60

_LATEX = (
    (re.compile(r"\\(?:text|mathrm|textbf|mbox|mathbf)\s?\{[^{}]{0,120}\}"), " "),
    (re.compile(r"\\boxed\s?\{([^{}]{0,60})\}"), r" \1 "),
    (re.compile(r"\\[dt]?frac\s?\{([^{}]{1,80})\}\s?\{([^{}]{1,80})\}"), r" ((\1)/(\2)) "),
    (re.compile(r"\\(?:left|right|quad|qquad|[()\[\],;:! &])|\*\*|[$€£¥`_&]"), " "),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])|[×·⋅∙]|(?<=[\d)])\s?[xX]\s?(?=[\d(])"), " * "),
    (re.compile(r"\\div(?![A-Za-z])|÷"), " / "),
    (re.compile(r"(?<![\d./])(\d{1,4}) (\d{1,4}/\d{1,4})(?![\d/])"), r"(\1+\2)"),
    (re.compile(r"\\%"), "%"),
    # "9 eggs/day" and "$2 per egg": a unit, and no division.
    (re.compile(r"/\s?(?=[A-Za-z])"), " "),
    (re.compile(r"%\s{1,3}of\s{1,3}(?=[\d(])"), "% * "),
    (re.compile(r"(?<=\d/)(\d{1,9}\)?)\s{1,3}of\s{1,3}(?=[\d(])"), r"\1 * "),
    (re.compile(r"\([A-Za-z ,'’-]{0,60}\)"), " "),
)
_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)|(?P<percent>%)|(?P<operator>[-+*/])|(?P<open>\()"
    r"|(?P<close>\))|(?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)|(?P<stop>[:;,?!\"]|\.(?!\d)|<<|>>)|(?P<gap>\s+)|(?P<other>.)",
    re.DOTALL,
)
_HEDGES: Final = frozenset({"approximately", "about", "roughly", "around", "only", "just"})


def side_tokens(side: str) -> list[Token]:
    """The tokens of one side, white space dropped; spans point into the side as it was cleaned."""
    for pattern, replacement in _LATEX:
        side = pattern.sub(replacement, side)
    tokens: list[Token] = []
    for match in _TOKEN.finditer(side):
        kind = match.lastgroup or "other"
        if kind == "gap":
            continue
        if kind == "number" and match.end() - match.start() > _MAX_DIGITS:
            kind = "other"
        value = Fraction(Decimal(match[0].replace(",", ""))) if kind == "number" else None
        tokens.append(Token(Kind(kind), match[0], match.start(), match.end(), value))
    return tokens


def trailing_expression(tokens: Sequence[Token]) -> list[Token] | None:
    """The arithmetic that a side ends in, units dropped; None where it ends in none.

    A letter or word that stands as an operand ("x + 165", "cost - 20", "3x") makes it algebra, which is not read.
    """
    reader = _TrailingExpression()
    for token in tokens:
        reader.take(token)
    return reader.result()


class _TrailingExpression:
    """Reads tokens from the left and keeps the expression that could end here."""

    def __init__(self) -> None:
        self._run: list[Token] = []
        self._depth = 0
        self._words = 0
        self._algebra = False
        self._after_word = False
        self._end = -1

    def take(self, token: Token) -> None:
        if token.kind is Kind.STOP:
            self._restart(algebra=False)
        elif token.kind is Kind.OTHER:
            self._restart(algebra=True)
        elif not self._algebra:
            getattr(self, f"_{token.kind.value}")(token)
        self._after_word = token.kind is Kind.WORD
        self._end = token.end

    def result(self) -> list[Token] | None:
        binary = any(token.kind is Kind.OPERATOR for token in self._run[1:])
        complete = bool(self._run) and self._ends_operand() and self._depth == 0
        return self._run if complete and binary and not self._algebra else None

    def _restart(self, *, algebra: bool) -> None:
        self._run, self._depth, self._words, self._algebra = [], 0, 0, algebra

    def _ends_operand(self) -> bool:
        return bool(self._run) and self._run[-1].kind in (Kind.NUMBER, Kind.CLOSE, Kind.PERCENT)

    def _number(self, token: Token) -> None:
        if self._ends_operand():
            self._restart(algebra=False)
        self._add(token)

    def _percent(self, token: Token) -> None:
        if self._ends_operand() and self._words == 0:
            self._add(token)
        else:
            self._restart(algebra=True)

    def _operator(self, token: Token) -> None:
        if self._ends_operand() or (token.text == "-" and not (not self._run and self._after_word)):
            self._add(token)
        else:
            self._restart(algebra=True)

    def _open(self, token: Token) -> None:
        if self._ends_operand():
            if self._words or token.start != self._end:
                self._restart(algebra=False)
            else:
                self._add(Token(Kind.OPERATOR, "*", token.start, token.start))
        self._depth += 1
        self._add(token)

    def _close(self, token: Token) -> None:
        if self._depth and self._ends_operand():
            self._depth -= 1
            self._add(token)
        else:
            self._restart(algebra=False)

    def _word(self, token: Token) -> None:
        if not self._run:
            return
        self._words += 1
        if not self._ends_operand() or len(token.text) == 1:
            self._restart(algebra=True)
        elif self._words > _UNIT_WORDS:
            self._restart(algebra=False)

    def _add(self, token: Token) -> None:
        self._run.append(token)
        self._words = 0


def leading_number(tokens: Sequence[Token]) -> list[Token] | None:
    """The one number that a side begins with, as sign, number and percent sign; None where arithmetic goes on."""
    at = 0
    while at < len(tokens) and (tokens[at].text in ("<<", ">>") or tokens[at].text.lower() in _HEDGES):
        at += 1
    found: list[Token] = []
    for wanted in ("-", None, "%"):
        if at < len(tokens) and (tokens[at].text == wanted if wanted else tokens[at].kind is Kind.NUMBER):
            found.append(tokens[at])
            at += 1
        elif wanted is None:
            return None
    words = 0
    while at < len(tokens) and tokens[at].kind is Kind.WORD and words <= _UNIT_WORDS:
        if len(tokens[at].text) == 1 and not words:
            return None
        at, words = at + 1, words + 1
    goes_on = at < len(tokens) and tokens[at].kind in (Kind.OPERATOR, Kind.OTHER, Kind.PERCENT)
    opens = at < len(tokens) and tokens[at].kind is Kind.OPEN and not words and tokens[at].start == tokens[at - 1].end
    return None if goes_on or opens else found
