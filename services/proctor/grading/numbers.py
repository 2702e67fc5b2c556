"""Numbers as answers write them: thousands, currency, percent, LaTeX, fractions, signs; and the final one of a text.

Values are exact fractions, so that 0.50, 1/2 and 50/100 are equal and no rounding decides a grade.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

#: Longer runs of digits are not answers, and converting them costs quadratic time.
_MAX_DIGITS = 60

_UNSIGNED = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
# A minus counts as a sign only where no operand stands right before it: 10-5 ends in 5, not in -5. What a number can
# begin with is looked for first, which says the same and takes an eighth of the time.
_NUMBER = re.compile(
    rf"(?=[-+$€£¥.\d])(?<![\d.])(?P<sign>(?<![\w.)\]}}])[-+])?[$€£¥]?(?P<sign2>(?<=[$€£¥])-)?"
    rf"(?:(?P<whole>\d{{1,9}}) (?P<top>\d{{1,9}})/(?P<bottom>\d{{1,9}})(?![\d/])"
    rf"|(?P<number>{_UNSIGNED})(?P<exponent>[eE][-+]?\d{{1,2}}(?!\d))?(?:/(?P<divisor>{_UNSIGNED})(?![\w/]))?)"
)
#: No number has this in it, and none looks further than at the character behind it.
_NOT_IN_NUMBER = re.compile(r"[^\d ,./$€£¥eE+-]")
#: Characters of a text that are searched at once for its last number.
_PIECE = 128
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s{0,4}\{([^{}]{1,60})\}\s{0,4}\{([^{}]{1,60})\}")
_BRACE = re.compile(r"\\boxed\{|[{}]")
_MARKER = re.compile(r"####[ \t:*]{0,8}([^\n]{0,200})")
_CUE = re.compile(r"(?=a)\banswer(?:\s{1,4}is|\s{0,4}[:=])[\s:=*]{0,8}([^\n]{1,200})", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_REPLACEMENTS = (
    ("\u2212", "-"),
    ("\u2013", "-"),
    ("\uff0d", "-"),
    ("{,}", ","),
    ("\\,", ""),
    ("\\!", ""),
    ("\\$", "$"),
    ("\\%", "%"),
    ("\u00a0", " "),
    ("\u202f", " "),
)


def plain_notation(text: str) -> str:
    """The text with typographic minus signs, LaTeX spaces and LaTeX fractions in plain notation."""
    if text.isascii() and "\\" not in text and "{" not in text:
        # Nothing to replace, as in nearly every answer; looking for each of them takes longer than reading the number.
        return text
    for old, new in _REPLACEMENTS:
        text = text.replace(old, new)
    return _LATEX_FRACTION.sub(r"\1/\2", text)


def last_number(text: str) -> Fraction | None:
    """The last number of a text in plain notation; None without one."""
    # From the end, a piece at a time: an answer of pages ends in its number, and reading all of them takes long.
    end, length = len(text), _PIECE
    while end:
        start = end - length
        # Numbers are read from left to right, so a piece begins where none can be under way.
        apart = _NOT_IN_NUMBER.search(text, start, end - 1) if start > 0 else None
        if start > 0 and apart is None:
            length *= 2
            continue
        start = apart.end() if apart else 0
        for match in reversed(list(_NUMBER.finditer(text, start, end))):
            if (value := _value(match)) is not None:
                return value
        end = start
    return None


def first_number(text: str) -> Fraction | None:
    """The first number of a text in plain notation; None without one."""
    for match in _NUMBER.finditer(text):
        if (value := _value(match)) is not None:
            return value
    return None


def final_number(text: str) -> Fraction | None:
    """The number that a worked answer ends in.

    First of these that holds a number: what follows the first `####` (a model that does not stop writes other problems
    after it); the last `\\boxed{…}`; what follows the last "answer is" or "answer:" within its sentence, past an
    equals sign where there is one; the last number of the text.
    """
    text = plain_notation(text)
    for match in _MARKER.finditer(text):
        if (value := first_number(match[1])) is not None:
            return value
    for content in reversed(boxed(text)):
        if (value := last_number(content)) is not None:
            return value
    # Folded, because the pattern takes ſ for an s as well.
    for match in reversed(list(_CUE.finditer(text))) if "answer" in text.casefold() else ():
        sentence = _SENTENCE_END.split(match[1], maxsplit=1)[0]
        if (value := first_number(sentence.rpartition("=")[2])) is not None:
            return value
    return last_number(text)


def whole_number_text(text: str) -> Fraction | None:
    """The value of a text that is one number and nothing else but currency, percent and white space."""
    plain = plain_notation(text).strip().rstrip("%").rstrip()
    match = _NUMBER.fullmatch(plain)
    return _value(match) if match else None


def number_text(value: Fraction) -> str:
    """The one way in which a value is written: a terminating decimal where there is one, else `a/b`."""
    top, bottom = value.numerator, value.denominator
    if bottom == 1:
        return str(top)
    rest, places = bottom, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        places = max(places, power)
    if rest != 1 or places > _MAX_DIGITS:
        return f"{top}/{bottom}"
    digits = str(abs(top) * 10**places // bottom).rjust(places + 1, "0")
    return f"{'-' if top < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def boxed(text: str) -> list[str]:
    """The contents of every closed `\\boxed{…}`, in order; a box within a box is part of its content."""
    if "\\boxed{" not in text:
        return []
    open_braces: list[int | None] = []
    closed: list[tuple[int, int]] = []
    # One pass with a stack: looking for each box's end anew takes quadratic time over boxes that never close.
    for brace in _BRACE.finditer(text):
        if brace[0] == "}":
            begin = open_braces.pop() if open_braces else None
            if begin is not None:
                closed.append((begin, brace.start()))
        else:
            open_braces.append(brace.end() if brace[0] != "{" else None)
    contents: list[str] = []
    last_end = -1
    for begin, end in sorted(closed):
        if end > last_end:
            contents.append(text[begin:end])
            last_end = end
    return contents


def _value(match: re.Match[str]) -> Fraction | None:
    if match.end() - match.start() > _MAX_DIGITS:
        return None
    negative = match["sign"] == "-" or match["sign2"] == "-"
    if match["whole"] is not None:
        bottom = int(match["bottom"])
        if bottom == 0:
            return None
        value = int(match["whole"]) + Fraction(int(match["top"]), bottom)
    else:
        value = _exact(match["number"] + (match["exponent"] or ""))
        if match["divisor"] is not None:
            divisor = _exact(match["divisor"])
            if divisor == 0:
                return None
            value /= divisor
    return -value if negative else value


def _exact(digits: str) -> Fraction:
    plain = digits.replace(",", "")
    return Fraction(int(plain)) if plain.isdecimal() else Fraction(Decimal(plain))
