"""What a numeral may mean to readers other than one grader: 1.000 and 1,000, 25 % and 0.25, twelve and 12."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from proctor.grading.numbers import plain_notation, whole_number_text
from proctor.text.numerals import numerals

#: Longer runs are no answers.
_MAX_CHARACTERS: Final = 60
#: A numeral with all that may belong to it: signs, currency, separators of any country, a fraction, an exponent.
_NUMERAL = re.compile(
    r"(?:(?<![\w.)\]}])[-+])?[$€£¥]?"
    r"(?:\d{1,9} \d{1,9}/\d{1,9}|\d{1,3}(?:[.,'’ ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
    r"(?:[eE][-+]?\d{1,2}(?!\d))?(?:/\d{1,9})?(?:\s?%|\s?percent\b)?"
)
_GROUPED = re.compile(r"(?P<groups>\d{1,3}(?:(?P<mark>[.,'’ ])\d{3})(?:(?P=mark)\d{3}){0,6})(?:[.,](?P<decimals>\d+))?")
_DECIMAL_COMMA = re.compile(r"(\d+),(\d+)")
_PERCENT = re.compile(r"\s?(?:%|percent)$")
_NO_CURRENCY: Final = {ord(sign): None for sign in "$€£¥"}
_ASKS_PERCENT = re.compile(r"%|\bper\s?cent|\bpercentage", re.IGNORECASE)


def numeral_in(text: str) -> Iterator[re.Match[str]]:
    """Numerals of a text in plain notation, each with its currency sign, separators, fraction and percent sign."""
    return _NUMERAL.finditer(text)


def readings(raw: str, question: str | None = None) -> frozenset[Fraction]:
    """Every value that the first numeral of a stated answer can mean.

    The plain one; separators read as thousands or as a decimal comma (1.000 is 1000 and 1; 1,5 is 1.5); a percent
    sign read and unread (25 % is 25 and 1/4), and a fraction as a percentage where the question asks for one; where
    there is no digit, the one number in words (twelve, three and a half). Empty where there is none of these.
    """
    raw = plain_notation(raw)
    match = _NUMERAL.search(raw)
    if match is None:
        spelled = numerals(raw[:_MAX_CHARACTERS])
        return frozenset(Fraction(value) for value in spelled) if len(spelled) == 1 else frozenset()
    token = match[0]
    if len(token) > _MAX_CHARACTERS:
        return frozenset()
    unsigned = token.lstrip("+").translate(_NO_CURRENCY)
    bare = _PERCENT.sub("", unsigned)
    sign, digits = ("-", bare[1:]) if bare.startswith("-") else ("", bare)
    written = {digits}
    if grouped := _GROUPED.fullmatch(digits):
        whole = grouped["groups"].replace(grouped["mark"], "")
        written.add(whole + (f".{grouped['decimals']}" if grouped["decimals"] else ""))
    if comma := _DECIMAL_COMMA.fullmatch(digits):
        written.add(f"{comma[1]}.{comma[2]}")
    values = {value for text in written if (value := whole_number_text(sign + text)) is not None}
    if bare != unsigned:
        values |= {value / 100 for value in values}
    elif question is not None and _ASKS_PERCENT.search(question):
        values |= {value * 100 for value in values}
    return frozenset(values)


def written_alike(raw: str, expected: str) -> bool:
    """Whether the first numeral of a stated answer is written as the expected one, but for currency and markup."""
    match = _NUMERAL.search(plain_notation(raw))
    return match is not None and _bared(match[0]) == _bared(plain_notation(expected))


def _bared(numeral: str) -> str:
    return numeral.strip().lstrip("+$€£¥").rstrip(".")
