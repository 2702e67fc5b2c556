"""The document's tables of tests and of the gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from calibration.cells import MODELS, Measure, Row
from calibration.grids import DEFAULT_ITEMS, DEFAULT_VARIANTS, GATE_SHARES, POWER_SHARES
from calibration.markdown import families, largest, percent, rate_at, rows_of, span, table

Tables = Mapping[str, Sequence[Row]]


def size(tables: Tables) -> str:
    """Clean models rejected, by family; the article's rule beside."""
    rows = tables["size"]
    lines = []
    for family in families(rows):
        own = [row for row in rows if row.cell.family == family]
        worst = max(rows_of(own, Measure.DEFAULT_P), key=lambda row: row.rate)
        lines.append(
            (
                family,
                f"{percent(worst.rate)} ({worst.cell.items:,} items, {worst.cell.variants} variants)",
                percent(largest(own, Measure.EXACT_P)),
                percent(largest(own, Measure.STUDENTISED_P)),
                span(own, Measure.ARTICLE_FLAGS, lambda row: row.cell.variants < 9),
                span(own, Measure.ARTICLE_FLAGS, lambda row: row.cell.variants >= 9),
                span(own, Measure.ARTICLE_BLOCKS, lambda row: row.cell.variants >= 9),
            )
        )
    return table(
        (
            "family",
            "default p, worst cell",
            "exact test alone, worst",
            "studentised mean alone, worst",
            "article: items flagged, 3–4 variants",
            "article: items flagged, 9–10 variants",
            "article: models blocked, 9–10 variants",
        ),
        lines,
    )


def power(tables: Tables) -> str:
    """Contaminated models found: by leaked share, by items, by variants."""
    rows, article = (rows_of(tables["power"], measure) for measure in (Measure.DEFAULT_P, Measure.ARTICLE_BLOCKS))
    shares = sorted(POWER_SHARES)
    by_share = [
        (
            family,
            *(rate_at(rows, family, DEFAULT_ITEMS, DEFAULT_VARIANTS, share) for share in shares),
            rate_at(article, family, DEFAULT_ITEMS, DEFAULT_VARIANTS, 0.10),
        )
        for family in families(rows)
    ]
    items = sorted({row.cell.items for row in rows})
    by_items = [
        (family, *(rate_at(rows, family, n, DEFAULT_VARIANTS, 0.10) for n in items)) for family in families(rows)
    ]
    variants = sorted({row.cell.variants for row in rows})
    by_variants = [
        (family, *(rate_at(rows, family, DEFAULT_ITEMS, v, 0.10) for v in variants)) for family in families(rows)
    ]
    return "\n\n".join(
        (
            f"{DEFAULT_ITEMS} items and {DEFAULT_VARIANTS} variants, by leaked share:",
            table(("family", *(f"{100 * share:g} % leaked" for share in shares), "article blocks at 10 %"), by_share),
            f"10 % leaked and {DEFAULT_VARIANTS} variants, by number of items:",
            table(("family", *(f"{n:,} items" for n in items)), by_items),
            f"10 % leaked and {DEFAULT_ITEMS} items, by number of variants:",
            table(("family", *(f"{v} variants" for v in variants)), by_variants),
        )
    )


def sensitivity(tables: Tables) -> str:
    """Smallest leaked share found with 80 % power."""
    rows = [row for row in tables["sensitivity"] if row.measure is Measure.DEFAULT_P]
    settings = sorted({(row.cell.items, row.cell.variants) for row in rows})
    lines = [
        (family, *(_found_share(rows, family, items, variants) for items, variants in settings))
        for family in families(rows)
    ]
    return table(("family", *(f"{items:,} items, {variants} variants" for items, variants in settings)), lines)


def _found_share(rows: Iterable[Row], family: str, items: int, variants: int) -> str:
    for row in rows:
        if (row.cell.family, row.cell.items, row.cell.variants) == (family, items, variants):
            return f"{percent(row.cell.leaked_share)} ({percent(row.rate)} found)"
    return "none"


def gate(tables: Tables) -> str:
    """Approve, review and block rates, and the article's gate."""
    rows = tables["gate"]
    lines = []
    for family in families(rows):
        for items in sorted({row.cell.items for row in rows}):
            at = [row for row in rows if row.cell.family == family and row.cell.items == items]
            rates = ["/".join(_whole(at, share)) for share in GATE_SHARES]
            article = [percent(_rate(at, Measure.ARTICLE_BLOCKS, share)) for share in (0.0, 0.10)]
            lines.append((family, f"{items:,}", *rates, *article))
    shares = (f"{100 * share:g} % leaked" if share else "clean" for share in GATE_SHARES)
    return table(("family", "items", *shares, "article blocks: clean", "article blocks: 10 % leaked"), lines)


def _whole(rows: Sequence[Row], share: float) -> list[str]:
    measures = (Measure.APPROVED, Measure.REVIEWED, Measure.BLOCKED)
    return [percent(_rate(rows, measure, share)) for measure in measures]


def _rate(rows: Sequence[Row], measure: Measure, share: float) -> float:
    return next(row.rate for row in rows if row.measure is measure and row.cell.leaked_share == share)


def approval(tables: Tables) -> str:
    """Items at which nine in ten clean models are approved."""
    rows = [row for row in tables["approval"] if row.measure is Measure.APPROVED]
    lines = [(MODELS[row.cell.family].title, f"{row.cell.items:,}", percent(row.rate)) for row in rows]
    return table(("family", "items for 90 % approval", "approved at that number, simulated anew"), lines)
