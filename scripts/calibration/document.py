"""The generated parts of the document: tables in Markdown, each between a pair of markers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from calibration import coverage_tables, rejection_tables, sequential_tables
from calibration.cells import Measure, Row
from calibration.designs import DEFAULT
from calibration.judging import Verdict
from calibration.layouts import LARGEST, SMALLEST, Layout
from calibration.markdown import listed, percent, table
from proctor.domain.errors import BadInputError
from proctor.evidence.written_numbers import counted

Tables = Mapping[str, Sequence[Row]]


def filled(document: str, sections: Mapping[str, str]) -> str:
    """The document with each section's text between its markers.

    Raises:
        BadInputError: for a section whose markers the document lacks.
    """
    for name, text in sections.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, opened, rest = document.partition(begin)
        _, closed, after = rest.partition(end)
        if not (opened and closed):
            raise BadInputError(f"the document lacks <!-- begin {name} --> or <!-- end {name} -->")
        document = f"{before}{begin}{text}\n{end}{after}"
    return document


def sections(tables: Tables, verdicts: Sequence[Verdict]) -> dict[str, str]:
    """Text by section, for the studies that are there."""
    written = {"claims": _claims(tables, verdicts)}
    writers: Mapping[str, Callable[[Tables], str]] = {
        "size": rejection_tables.size,
        "power": rejection_tables.power,
        "coverage": coverage_tables.coverage,
        "comparison": coverage_tables.comparison,
        "gate": rejection_tables.gate,
        "approval": rejection_tables.approval,
        "sensitivity": rejection_tables.sensitivity,
        "control": coverage_tables.control,
        "replicates": coverage_tables.replicates,
        "clusters": coverage_tables.clusters,
        "fresh": coverage_tables.fresh,
        "conformal": coverage_tables.conformal,
        "sequential": sequential_tables.promises,
    }
    return written | {name: write(tables) for name, write in writers.items() if name in tables}


def sequential_sections(tables: Tables) -> dict[str, str]:
    """Text by section of the page on the sequential design; none where that is not simulated."""
    if "sequential" not in tables:
        return {}
    return {
        "decisions": sequential_tables.decisions(tables),
        "items": sequential_tables.items(tables),
        "promises": sequential_tables.promises(tables),
        "designs": sequential_tables.designs(tables),
        "clusters": sequential_tables.clusters(tables),
    }


def cell_words(row: Row) -> str:
    """Where a row was found, in few words."""
    cell = row.cell
    words = [cell.family, counted(cell.items, "item")]
    words += [counted(cell.variants, "variant")] * (cell.variants > 0)
    words += [f"{cell.replicates} replicates"] * (cell.replicates > 1)
    words += [f"{100 * cell.leaked_share:g} % leaked"] * (cell.leaked_share > 0)
    words += [f"{cell.control_items:,} control items"] * (cell.control_items > 0)
    sizes = f"{cell.cluster_items}" if cell.layout == Layout.EVEN else f"{SMALLEST} to {LARGEST}, {cell.layout}"
    words += [f"{cell.clusters:,} clusters of {sizes}, {100 * cell.shared:g} % shared"] * (cell.clusters > 0)
    words += [counted(cell.reference_models, "reference model")] * (cell.reference_models > 0)
    words += [cell.design] * (cell.design not in ("", DEFAULT))
    return ", ".join(words)


def _claims(tables: Tables, verdicts: Sequence[Verdict]) -> str:
    lines = []
    for verdict in verdicts:
        sign = "at least" if verdict.claim.at_least else "at most"
        lines.append(
            (
                verdict.claim.name,
                f"{verdict.rows:,}",
                f"{percent(verdict.worst.rate)} % ({_worst_words(verdict)})",
                f"{sign} {100 * verdict.claim.bound:g} %",
                f"{verdict.smallest_p_holm:.2g}",
                "yes" if verdict.holds else "**no**",
            )
        )
    rows = [row for study in tables.values() for row in study]
    cells, seeds = {row.cell for row in rows}, {row.seed for row in rows}
    audits = {row.trials for row in rows if row.measure is not Measure.ARTICLE_FLAGS}
    made = f"{len(cells):,} cells, {listed(audits)} simulated audits in each, seed {listed(seeds)}."
    headings = ("claim", "counts", "worst raw rate", "bound", "smallest Holm p", "holds")
    return f"{table(headings, lines)}\n\n{made}"


def _worst_words(verdict: Verdict) -> str:
    what = f"{verdict.worst.measure}: " if len(verdict.claim.measures) > 1 else ""
    return what + cell_words(verdict.worst)
