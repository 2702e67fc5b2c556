"""Numbers in sentences, written the same way wherever evidence speaks."""

from __future__ import annotations

from proctor.domain.evidence import Estimate


def points(value: float) -> str:
    """Percentage points with two significant decimals at most: '4.3 points'."""
    return f"{_short(value)} points"


def percent(share: float) -> str:
    """A fraction as percent: '4.3 %'."""
    return f"{_short(100 * share)} %"


def p_text(p_value: float) -> str:
    """'p = 0.013', or 'p < 0.0001'."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"


def in_points(estimate: Estimate) -> str:
    """'7.1 points (95 % interval 4.2 to 10.0)'."""
    return _with_interval(estimate, " points", 1)


def as_score(estimate: Estimate) -> str:
    """'0.083 (95 % interval 0.051 to 0.117)'."""
    return _with_interval(estimate, "", 3)


def counted(n: int, noun: str) -> str:
    """'1 item', '3 items', '1,319 items'."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _short(value: float) -> str:
    # Two decimals, so that 5.04 against a limit of 5 does not print as 5.0.
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _with_interval(estimate: Estimate, unit: str, decimals: int) -> str:
    value = "undefined" if estimate.value is None else f"{_signless(estimate.value, decimals)}{unit}"
    level = f"{100 * estimate.level:g} % interval"
    if estimate.low is None or estimate.high is None:
        return f"{value} ({level} unbounded)"
    return f"{value} ({level} {_signless(estimate.low, decimals + 1)} to {_signless(estimate.high, decimals + 1)})"


def _signless(value: float, decimals: int) -> str:
    """Fixed decimals without a minus before zero."""
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text
