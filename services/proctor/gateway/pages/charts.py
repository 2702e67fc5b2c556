"""The charts of the pages, in the form of the report's plots: inline SVG whose colours come from the style sheet.

Positions along x are percentages of the width, as in `proctor.scorer.page.plots`. What a chart shows stands in a table
beside it, too; rows and versions have numbers in the chart and names in the table, so no text of others is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup, escape

from proctor.domain.measure import Bounded
from proctor.scorer.page.phrases import counted, rounded
from proctor.scorer.page.plots import Axis, nice_axis
from proctor.studies.costs import CostMonth
from proctor.studies.item_health import ItemHealth
from proctor.studies.trends import Series, TrendPoint

_TOP_PX: Final = 14
_DEPTH_PX: Final = 190
_FOOT_PX: Final = 24
_LEFT_PCT: Final = 9.0
_RIGHT_PCT: Final = 99.0
_ROW_PX: Final = 22
#: Numbers below a chart that a phone has room for.
_MAX_NUMBERS: Final = 10
#: Of a month that stands alone.
_WIDEST_BAR_PCT: Final = 8.0


def trend_chart(chart_id: str, line: Series) -> Markup:
    """The score of each version with its interval, the floor's line, and where the level changed."""
    axis = nice_axis([*(edge for point in line.points for edge in _edges(point.score)), 0.0, *_floor(line)])
    parts = _scale(axis)
    if line.floor is not None:
        y = f"{_height(axis, line.floor.line):.1f}"
        parts.append(f'<line class="limit review" x1="{_LEFT_PCT}%" x2="{_RIGHT_PCT}%" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="limit-name review" x="{_RIGHT_PCT}%" y="{float(y) - 5:.1f}" text-anchor="end">floor</text>'
        )
    n = len(line.points)
    if line.change is not None and line.change.noted:
        x = f"{_across(line.change.number - 1.5, n):.2f}%"
        parts.append(f'<line class="shift" x1="{x}" x2="{x}" y1="{_TOP_PX}" y2="{_TOP_PX + _DEPTH_PX}"/>')
    for place, point in enumerate(line.points):
        parts += _version(axis, _across(place, n), point)
    parts += _numbers(n)
    floor = "" if line.floor is None else f" The floor's line is at {rounded(line.floor.line, 3)}."
    title = f"Contamination Score over {counted(n, 'version', 'versions')}"
    return _svg(chart_id, title, f"{line.note}{floor} The numbers stand in the table below.", _DEPTH_PX, parts)


def item_chart(chart_id: str, items: Sequence[ItemHealth]) -> Markup:
    """Of each item how many models had the published wording right, and the share of right rewordings."""
    depth = _ROW_PX * len(items)
    parts = []
    for tick in (0, 25, 50, 75, 100):
        x = f"{_share(tick / 100):.2f}%"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP_PX}" y2="{_TOP_PX + depth}"/>')
        anchor = "end" if tick == 100 else "middle"
        parts.append(f'<text class="tick" x="{x}" y="{_TOP_PX + depth + 17}" text-anchor="{anchor}">{tick} %</text>')
    for row, item in enumerate(items):
        y = _TOP_PX + _ROW_PX * (row + 0.5)
        published = _share(item.canonical_right / item.models if item.models else 0.0)
        reworded = _share(item.reworded_right / item.reworded_total if item.reworded_total else 0.0)
        css = "interval known" if item.known else "interval"
        parts.append(f'<text class="tick" x="{_LEFT_PCT - 2}%" y="{y + 4:.1f}" text-anchor="end">{item.rank}</text>')
        parts.append(f'<line class="{css}" x1="{reworded:.2f}%" x2="{published:.2f}%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_square(reworded, y))
        parts.append(_circle(published, y))
    return _svg(
        chart_id,
        "The first items by rank: published against reworded",
        "A circle is the share of models that had the published wording right, a square the share of right rewordings. "
        "The numbers stand in the table below.",
        depth,
        parts,
    )


def month_chart(chart_id: str, months: Sequence[CostMonth]) -> Markup:
    """Tokens of each month; those without a known price are drawn apart."""
    size, unit = (1e6, "Millions") if max(map(_tokens, months), default=0) >= 1e6 else (1e3, "Thousands")
    scaled = [(one, _tokens(one) / size, _unpriced(one) / size) for one in months]
    axis = nice_axis([0.0, *(whole for _, whole, _ in scaled)])
    parts = _scale(axis)
    n = len(months)
    width = min(_WIDEST_BAR_PCT, (_RIGHT_PCT - _LEFT_PCT) / max(1, n) * 0.6)
    for place, (one, whole, unpriced) in enumerate(scaled):
        x = _across(place, n)
        for css, low, high in (("area", unpriced, whole), ("area unpriced", 0.0, unpriced)):
            top, bottom = _height(axis, high), _height(axis, low)
            if bottom - top > 0:
                parts.append(
                    f'<rect class="{css}" x="{x - width / 2:.2f}%" y="{top:.1f}" width="{width:.2f}%" '
                    f'height="{bottom - top:.1f}"/>'
                )
        parts.append(
            f'<text class="tick" x="{x:.2f}%" y="{_TOP_PX + _DEPTH_PX + 17}" text-anchor="middle">'
            f"{escape(one.month[5:])}</text>"
        )
    said = (
        "Each bar is a month; its lower part, where there is one, has no known price. The numbers stand in the table."
    )
    seen = Markup('<p class="quiet">{} of tokens; what is outlined has no known price</p>').format(unit)
    return seen + _svg(chart_id, f"{unit} of tokens by month", said, _DEPTH_PX, parts)


def _tokens(one: CostMonth) -> int:
    return one.used.input_tokens + one.used.output_tokens


def _unpriced(one: CostMonth) -> int:
    return one.used.unpriced_input_tokens + one.used.unpriced_output_tokens


def _edges(score: Bounded) -> list[float]:
    return [edge for edge in (score.value, score.low, score.high) if edge is not None]


def _floor(line: Series) -> list[float]:
    return [] if line.floor is None else [line.floor.line]


def _version(axis: Axis, x: float, point: TrendPoint) -> list[str]:
    score, parts = point.score, list[str]()
    if score.value is None:
        return parts
    low, high = score.low if score.low is not None else axis.low, score.high if score.high is not None else axis.high
    parts.append(
        f'<line class="interval" x1="{x:.2f}%" x2="{x:.2f}%" y1="{_height(axis, low):.1f}" '
        f'y2="{_height(axis, high):.1f}"/>'
    )
    y = _height(axis, score.value)
    # A shape of its own, and not a colour alone.
    parts.append(_circle(x, y) if point.usable else _square(x, y))
    return parts


def _circle(x: float, y: float) -> str:
    return f'<svg class="marker circle" x="{x:.2f}%" y="{y:.1f}" overflow="visible"><circle r="5"/></svg>'


def _square(x: float, y: float) -> str:
    shape = '<rect x="-4.5" y="-4.5" width="9" height="9"/>'
    return f'<svg class="marker square" x="{x:.2f}%" y="{y:.1f}" overflow="visible">{shape}</svg>'


def _scale(axis: Axis) -> list[str]:
    parts = []
    # Steps are 1, 2, 2.5 or 5 times a power of ten.
    step = axis.ticks[1] - axis.ticks[0]
    digits = next(digits for digits in range(12) if math.isclose(step, round(step, digits), rel_tol=1e-6))
    for tick in axis.ticks:
        y = _height(axis, tick)
        css = "zero" if tick == 0.0 and axis.low < 0 else "grid"
        parts.append(f'<line class="{css}" x1="{_LEFT_PCT}%" x2="{_RIGHT_PCT}%" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = escape(rounded(tick, digits))
        parts.append(f'<text class="tick" x="{_LEFT_PCT - 1}%" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    return parts


def _numbers(n: int) -> list[str]:
    step = -(-n // _MAX_NUMBERS) if n else 1
    y = _TOP_PX + _DEPTH_PX + 17
    return [
        f'<text class="tick" x="{_across(place, n):.2f}%" y="{y}" text-anchor="middle">{place + 1}</text>'
        for place in range(0, n, step)
    ]


def _across(place: float, n: int) -> float:
    return _LEFT_PCT + (place + 0.5) / max(1, n) * (_RIGHT_PCT - _LEFT_PCT)


def _share(share: float) -> float:
    return _LEFT_PCT + share * (_RIGHT_PCT - 1 - _LEFT_PCT)


def _height(axis: Axis, value: float) -> float:
    share = (min(max(value, axis.low), axis.high) - axis.low) / (axis.high - axis.low)
    return _TOP_PX + (1 - share) * _DEPTH_PX


def _svg(chart_id: str, title: str, description: str, depth: float, parts: Sequence[str]) -> Markup:
    height = depth + _TOP_PX + _FOOT_PX
    return Markup(  # noqa: S704  (title and description are escaped; the rest is numbers and our own names)
        f'<svg class="plot" id="{chart_id}" width="100%" height="{height:.0f}" role="img" '
        f'aria-labelledby="{chart_id}-title {chart_id}-desc"><title id="{chart_id}-title">{escape(title)}</title>'
        f'<desc id="{chart_id}-desc">{escape(description)}</desc>{"".join(parts)}</svg>'
    )
