"""Numbers as words on the page: rounded sensibly, with their unit, and never onto the wrong side of a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import StrEnum

from proctor.domain.evidence import Estimate, Verdict

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
#: Below this a p-value's digits mean nothing to a reader.
SMALLEST_P = 0.0001
_EXTRA_DIGITS = 4
_NEGATIVE = re.compile(r"(?<![\w.-])-(?=[0-9])", re.ASCII)
_UNIT = re.compile(r"(?<=[0-9]) (?=%|points?\b)", re.ASCII)

VERDICT_WORDS = {
    Verdict.CONTAMINATED: "Contaminated",
    Verdict.CLEAN: "Clean under this policy",
    Verdict.INCONCLUSIVE: "Inconclusive",
    Verdict.INVALID: "Invalid",
    Verdict.NOT_AUDITED: "Not audited",
}


class Side(StrEnum):
    """Where an interval lies against a suite's limits."""

    WITHIN = "within"
    ACROSS = "across"
    PAST = "past"
    UNKNOWN = "unknown"


def rounded(value: float, digits: int, *, apart_from: Sequence[float] = ()) -> str:
    """A number at a fixed count of decimals; more of them where rounding would make it equal a limit that it is not."""
    for extra in range(_EXTRA_DIGITS + 1):
        text = f"{value:.{digits + extra}f}"
        if all(value == limit or text != f"{limit:.{digits + extra}f}" for limit in apart_from):
            break
    if float(text) == 0.0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def sentence(text: str) -> str:
    """A text as a typeset sentence: capital, full stop, minus signs, no line break between a number and its unit."""
    text = _UNIT.sub(NBSP, _NEGATIVE.sub(MINUS, text.strip()))
    if not text:
        return text
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def count(value: int) -> str:
    """A count with thousands separated: 1,500."""
    return f"{value:,}".replace("-", MINUS)


def counted(value: int, one: str, many: str) -> str:
    """A count with its noun: `1 item`, `1,500 items`."""
    return f"{count(value)} {one if value == 1 else many}"


def percent(fraction: float | None, digits: int = 1) -> str:
    """A fraction as percent."""
    return "undefined" if fraction is None else f"{rounded(100.0 * fraction, digits)}{NBSP}%"


def points(value: float | None, *, apart_from: Sequence[float] = ()) -> str:
    """Percentage points, with the unit."""
    if value is None:
        return "undefined"
    number = rounded(value, 1, apart_from=apart_from)
    return f"{number}{NBSP}{'point' if number == '1.0' else 'points'}"


def p_value(value: float, *, apart_from: Sequence[float] = ()) -> str:
    """A p-value at two significant digits, or `< 0.0001`."""
    if value < SMALLEST_P:
        return f"<{NBSP}{SMALLEST_P}"
    digits = 2 if value >= 0.1 else 1 - math.floor(math.log10(value))
    return rounded(value, digits, apart_from=apart_from)


def interval(
    estimate: Estimate, *, digits: int, scale: float = 1.0, unit: str = "", apart_from: Sequence[float] = ()
) -> str:
    """The interval alone: `8.1 to 13.5 points`; `or more` and `or less` where it has no bound on that side.

    `scale` turns the estimate's unit into the printed one; `apart_from` is in the printed unit.
    """
    low, high = (
        None if bound is None else rounded(bound * scale, digits, apart_from=apart_from)
        for bound in (estimate.low, estimate.high)
    )
    suffix = f"{NBSP}{unit}" if unit else ""
    if low is not None and high is not None:
        return f"{low} to {high}{suffix}"
    if low is not None:
        return f"{low}{suffix} or more"
    if high is not None:
        return f"{high}{suffix} or less"
    return "unbounded"


def level(estimate: Estimate) -> str:
    """The confidence level: `95 %`."""
    return f"{100.0 * estimate.level:g}{NBSP}%"


def side(estimate: Estimate, *, allowed: float, blocked: float) -> Side:
    """Where the interval lies: its upper bound within `allowed`, its lower bound past `blocked`, or neither."""
    if estimate.value is None:
        return Side.UNKNOWN
    if estimate.high is not None and estimate.high <= allowed:
        return Side.WITHIN
    if estimate.low is not None and estimate.low > blocked:
        return Side.PAST
    return Side.ACROSS
