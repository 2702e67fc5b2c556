"""Charts of a model's Contamination Score over its versions: SVG files that stand alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proctor.studies import charts
from proctor.studies.charts import BLUE, FAINT, ORANGE, SMALL_PT, short_name

if TYPE_CHECKING:
    from proctor.studies.trends import Series, Trends

_CHART_PX: Final = 260
_NAME_CELLS: Final = 14
#: More names than this beside each other cannot be read.
_MAX_NAMES: Final = 12


def figures(found: Trends) -> list[str]:
    """An SVG document for each line.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    with charts.chart_style():
        return [_figure(found.model_id, one) for one in found.series]


def _figure(model_id: str, one: Series) -> str:
    axes = charts.chart_axes(_CHART_PX, left_px=62, top_px=90, below_px=90)
    drawn = []
    points = [
        (place, point) for place, point in enumerate(one.points) if point.usable and point.score.value is not None
    ]
    bounded = [(place, p.score) for place, p in points if p.score.low is not None and p.score.high is not None]
    if one.floor is not None:
        drawn.append(axes.axhline(one.floor.line, color=ORANGE, linestyle="--", label="floor: no news up to here"))
    axes.vlines(
        [place for place, _ in bounded],
        [score.low or 0.0 for _, score in bounded],
        [score.high or 0.0 for _, score in bounded],
        color=FAINT,
    )
    (line,) = axes.plot(
        [place for place, _ in points],
        [point.score.value or 0.0 for _, point in points],
        color=BLUE,
        marker="o",
        label=f"Contamination Score, {one.level:.0%} interval",
    )
    drawn.append(line)
    step = -(-len(one.points) // _MAX_NAMES)
    shown = range(0, len(one.points), max(1, step))
    names = [short_name(one.points[place].label, _NAME_CELLS) for place in shown]
    axes.set_xticks(list(shown), names, rotation=30, ha="right", fontsize=SMALL_PT)
    axes.set_xlim(-0.5, max(1, len(one.points)) - 0.5)
    charts.legend_below(axes, drawn)
    title = f"{short_name(model_id, 40)}: {short_name(one.suite_id, 40)}"
    return charts.as_svg(axes, title, short_name(one.note, 120))
