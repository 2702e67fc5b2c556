"""Small pieces of which the document's tables are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from scipy import special

from calibration.cells import MODELS, Measure, Row


def percent(rate: float) -> str:
    """With one decimal: what 2,000 replications are worth."""
    return f"{100 * rate:.1f}"


def with_interval(row: Row) -> str:
    """A rate in percent with its exact 95 % interval (Clopper and Pearson 1934, Biometrika 26, 404–413)."""
    hits, misses = row.hits, row.trials - row.hits
    low = float(special.betaincinv(hits, misses + 1, 0.025)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, misses, 0.975)) if misses else 1.0
    return f"{percent(row.rate)} [{percent(low)}, {percent(high)}]"


def rate_at(rows: Iterable[Row], family: str, items: int, variants: int, share: float) -> str:
    """The rate of the first row of this situation, empty where there is none."""
    wanted = (family, items, variants, share)
    for row in rows:
        if (row.cell.family, row.cell.items, row.cell.variants, row.cell.leaked_share) == wanted:
            return percent(row.rate)
    return ""


def rows_of(rows: Iterable[Row], measure: Measure) -> list[Row]:
    """The rows of one measure."""
    return [row for row in rows if row.measure is measure]


def largest(rows: Iterable[Row], measure: Measure) -> float:
    """The largest rate of a measure."""
    return max((row.rate for row in rows if row.measure is measure), default=0.0)


def span(rows: Iterable[Row], measure: Measure, among: Callable[[Row], bool] = lambda row: True) -> str:
    """The smallest and the largest rate of a measure among some rows."""
    rates = [row.rate for row in rows if row.measure is measure and among(row)]
    if not rates:
        return ""
    low, high = percent(min(rates)), percent(max(rates))
    return low if low == high else f"{low}–{high}"


def families(rows: Iterable[Row]) -> list[str]:
    """Names of the families that are there, in the order of the tables."""
    present = {row.cell.family for row in rows}
    return [family for family in MODELS if family in present]


def listed(numbers: Iterable[int]) -> str:
    """Numbers in ascending order, joined by "and"."""
    return " and ".join(f"{number:,}" for number in sorted(numbers))


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
