"""Printing what audits ended with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.terminal import clean, say, table

if TYPE_CHECKING:
    from proctor.cli.audits.auditing import AuditResult

_COLOURS = {"approve": "green", "review": "yellow", "block": "red"}
_HEADINGS = ("model", "decision", "canonical", "reworded", "inflation in points", "Contamination Score", "p")


def print_results(results: Sequence[AuditResult]) -> None:
    """Print decisions as a table, with the reasons and the reports' paths under it."""
    rows = [result.summary() for result in results]
    say(
        table(
            _HEADINGS,
            [
                (
                    row["model"],
                    row["decision"],
                    _percent(row["accuracy_canonical"]),
                    _percent(row["accuracy_perturbed"]),
                    *_weighed(row),
                )
                for row in rows
            ],
        )
    )
    say("(in brackets: 95 % confidence intervals; a decision is made from the interval, never from the point)")
    for result, row in zip(results, rows, strict=True):
        click.secho(f"\n{clean(row['model'])}: {row['decision']}", fg=_COLOURS[row["decision"]], bold=True)
        if row["scope_caveat"] is not None:
            say(f"  {row['scope_caveat']}")
        for reason in row["reasons"]:
            say(f"  - {reason}")
        if row["harder_wordings"] is not None:
            say(f"  {row['harder_wordings']}")
        if (stopped := row["sequential"]) is not None:
            say(
                f"  asked {stopped['items_asked']:,} of at most {stopped['items_planned']:,} items: ended at look "
                f"{stopped['look']} of {stopped['looks']} ({stopped['stop']})"
            )
        for printed in result.printed_by_channels():
            say(f"  {printed.line}")
        if row["weights"] is not None:
            say(f"  weights: {row['weights'].words}")
        say(f"  report: {row['report_path']}")


def _weighed(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The three numbers that decide; none of a model that answers no better than chance, of which they say nothing."""
    if not row["above_chance"]:
        return "–", "–", "–"
    return (
        _interval(row["score_inflation_points"], row["score_inflation_points_ci"], digits=1),
        _interval(row["contamination_score"], row["contamination_score_ci"], digits=3),
        "–" if row["p_value"] is None else f"{row['p_value']:.2g}",
    )


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _interval(value: float | None, bounds: Sequence[float | None], *, digits: int) -> str:
    if value is None:
        return "–"
    low, high = ("unbounded" if bound is None else f"{bound:.{digits}f}" for bound in bounds)
    return f"{value:.{digits}f} [{low}, {high}]"
