"""A dashboard in the words that Proctor's need: sections of panels, each with its queries."""

from __future__ import annotations

from typing import Any, NamedTuple


class Query(NamedTuple):
    """One expression of a panel. `%` in it stands for the dashboard's own selection of series."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """One panel, as it is drawn."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    width: int = 8
    stacked: bool = False


class Section(NamedTuple):
    """A row of panels."""

    title: str
    panels: tuple[Panel, ...]


class Page(NamedTuple):
    """One dashboard."""

    name: str
    title: str
    description: str
    sections: tuple[Section, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """Further variables, each with the query of its values."""
    of_score: str = ""
    """What is added to the selection of `proctor_contamination_score`."""


def line(title: str, description: str, unit: str, *queries: tuple[str, str], **how: Any) -> Panel:
    """A panel of lines over time, each an expression and its legend."""
    return Panel(title, description, unit, tuple(Query(*query) for query in queries), **how)


def number(title: str, description: str, unit: str, expression: str) -> Panel:
    """A panel of one number."""
    return Panel(title, description, unit, (Query(expression, title),), kind="stat", width=4)
