"""The two forms of the published plots: lines over an axis, and strips of marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.studies.charts import INK, SMALL_PT, as_svg, chart_axes, legend_below

_ROW_PX: Final = 30
_LEGEND_PX: Final = 18
LIMIT: Final = "#b42318"
#: Okabe and Ito's colours, which every common form of colour vision tells apart; the eighth is its black.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d00", INK)
_LINES: Final = ("o-", "s--", "^:", "D-.")


class Series(NamedTuple):
    """A line: its name and its points, in the chart's units."""

    name: str
    points: tuple[tuple[float, float], ...]


class Scale(NamedTuple):
    """An axis with its ticks, from the first to the last; logarithmic where asked for."""

    label: str
    ticks: tuple[float, ...]
    log: bool = False


class Strip(NamedTuple):
    """A row of marks: its name, the values, and which of the chart's kinds they are."""

    name: str
    values: tuple[float, ...]
    kind: int


def line_chart(title: str, reading: str, series: Sequence[Series], x: Scale, y: Scale, *, limit: float) -> str:
    """Lines with a mark at each point and a legend below; the limit is a dashed red line across."""
    rows = (len(series) + 1) // 2
    axes = chart_axes(300, below_px=58 + rows * _LEGEND_PX)
    if x.log:
        axes.set_xscale("log")
    axes.set_xlim(x.ticks[0], x.ticks[-1])
    axes.set_ylim(y.ticks[0], y.ticks[-1])
    axes.set_xticks(x.ticks, labels=[f"{tick:,g}" for tick in x.ticks])
    axes.set_yticks(y.ticks)
    axes.minorticks_off()
    axes.grid(visible=False, axis="x")
    axes.set_xlabel(x.label)
    axes.set_ylabel(y.label)
    axes.axhline(limit, color=LIMIT, linestyle=(0, (6, 4)), linewidth=0.75)
    drawn = [
        axes.plot(*zip(*points, strict=True), _LINES[place % 4], color=COLOURS[place], label=name, clip_on=False)[0]
        for place, (name, points) in enumerate(series)
    ]
    # A legend fills its columns one by one; the order is that of the lines, row by row.
    legend_below(axes, [*drawn[::2], *drawn[1::2]])
    return as_svg(axes, title, reading)


def strip_chart(
    title: str, reading: str, strips: Sequence[Strip], kinds: Sequence[str], x_label: str, *, limit: float
) -> str:
    """Rows of marks over one axis from 0, a colour and a mark for each kind; the limit is a dashed red line down."""
    names = list(dict.fromkeys(strip.name for strip in strips))
    axes = chart_axes(len(names) * _ROW_PX, left_px=170, below_px=80)
    drawn = []
    for kind, label in enumerate(kinds):
        # In a band of its own within each row.
        marks = [
            (value, names.index(strip.name) - 0.5 + (kind + 1) / (len(kinds) + 1))
            for strip in strips
            if strip.kind == kind
            for value in strip.values
        ]
        form = _LINES[kind][0]
        drawn += axes.plot(
            *zip(*marks, strict=True), form, color=COLOURS[kind], alpha=0.55, mew=0, clip_on=False, label=label
        )
    axes.axvline(limit, color=LIMIT, linestyle=(0, (6, 4)), linewidth=0.75)
    axes.set_xlim(left=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), labels=names)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=SMALL_PT)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(x_label)
    legend_below(axes, drawn, columns=len(kinds))
    return as_svg(axes, title, reading)
