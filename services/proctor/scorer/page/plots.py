"""The report's plots: inline SVG from pure functions, no library and no script.

Positions along x are percentages of the picture's width and the rest is pixels, so a plot fills any column and
its text keeps its size on a phone. Colours come from the page's style sheet through classes, so the plots follow
light, dark and print. A marker's shape tells the arm as well as its colour does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from markupsafe import Markup, escape

from proctor.scorer.page.phrases import rounded
from proctor.scorer.page.visible import visible

Marker = Literal["circle", "square", "diamond"]
LimitKind = Literal["allowed", "block", "review"]

#: Room at both ends of the axis, in percent of the width, so that a marker at the end is not cut.
_INSET_PCT = 1.5
_ROW_TEXT_PX = 24
_LABEL_PX = 17
_STRIP_PX = 26
_ROW_GAP_PX = 10
_AXIS_PX = 26
_MARKER_PX = 5.5
#: More steps than this in the rank plot are finer than a pixel.
_MAX_STEPS = 600


class Axis(NamedTuple):
    """A linear axis from `low` to `high` with ticks at round numbers."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def percent(self, value: float) -> float:
        """Position of a value in percent of the width, held inside the picture."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return _INSET_PCT + share * (100.0 - 2 * _INSET_PCT)


class Limit(NamedTuple):
    """A limit of the suite, drawn as a line with its name."""

    value: float
    label: str
    kind: LimitKind


class Interval(NamedTuple):
    """A point with its interval; None where it is undefined, or unbounded on that side."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    reading: str
    """The numbers in words, printed at the right end of the row."""
    marker: Marker = "circle"


def nice_axis(values: Sequence[float], *, max_ticks: int = 6) -> Axis:
    """An axis over all finite values, with steps of 1, 2, 2.5 or 5 times a power of ten."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    if high - low < 1e-12:
        low, high = low - 0.5, high + 0.5
    raw = (high - low) / (max_ticks - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(index * step, 12) for index in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def interval_plot(
    plot_id: str,
    *,
    title: str,
    description: str,
    rows: Sequence[Interval],
    axis: Axis,
    limits: Sequence[Limit] = (),
    tick_digits: int = 0,
    tick_unit: str = "",
    compact: bool = False,
) -> Markup:
    """Points with intervals over one axis, one row each, with the suite's limits as lines.

    The zone past the `block` limit is tinted. `compact` leaves out the rows' words, the ticks and the limits'
    names, for use beside a text that has them.
    """
    parts: list[str] = []
    bottom = 0
    for index, row in enumerate(rows):
        top = bottom + (_ROW_GAP_PX if index else 0)
        named = limits if index == 0 and not compact else ()
        strip = top + (0 if compact else _ROW_TEXT_PX + _LABEL_PX * len(named))
        bottom = strip + _STRIP_PX
        parts += _backdrop(axis, limits, strip, bottom, grid=not compact)
        for line, limit in enumerate(named):
            parts += _limit_name(limit, axis, top + _ROW_TEXT_PX + line * _LABEL_PX, strip)
        if not compact:
            parts += _row_text(row, top + 15)
        parts += _interval(row, axis, strip + _STRIP_PX / 2)
    if not compact:
        parts += _tick_labels(axis, bottom, tick_digits, tick_unit)
    parts.append(f'<line class="axis" x1="0" x2="100%" y1="{bottom - 0.5}" y2="{bottom - 0.5}"/>')
    height = bottom + (0 if compact else _AXIS_PX)
    return _svg(plot_id, "plot compact" if compact else "plot", height, title, description, parts)


def _backdrop(axis: Axis, limits: Sequence[Limit], top: float, bottom: float, *, grid: bool) -> list[str]:
    parts = []
    for limit in limits:
        if limit.kind == "block" and limit.value < axis.high:
            start = axis.percent(limit.value)
            parts.append(
                f'<rect class="zone" x="{start:.2f}%" y="{top}" width="{100 - start:.2f}%" height="{bottom - top}"/>'
            )
    for tick in axis.ticks if grid else ():
        x = f"{axis.percent(tick):.2f}%"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
    if axis.low < 0.0 < axis.high:
        x = f"{axis.percent(0.0):.2f}%"
        parts.append(f'<line class="zero" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
    for limit in limits:
        if axis.low <= limit.value <= axis.high:
            x = f"{axis.percent(limit.value):.2f}%"
            parts.append(f'<line class="limit {limit.kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
    return parts


def _tick_labels(axis: Axis, bottom: float, digits: int, unit: str) -> list[str]:
    parts = []
    for tick in axis.ticks:
        label = escape(rounded(tick, digits) + unit)
        anchor = "start" if tick == axis.ticks[0] else "end" if tick == axis.ticks[-1] else "middle"
        x = f"{axis.percent(tick):.2f}%"
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 17}" text-anchor="{anchor}">{label}</text>')
    return parts


def _limit_name(limit: Limit, axis: Axis, top: float, strip: float) -> list[str]:
    if not axis.low <= limit.value <= axis.high:
        return []
    at = axis.percent(limit.value)
    # Outwards from the middle the name could leave the picture; towards the middle there is always room.
    anchor, shift = ("start", 5) if at < 50 else ("end", -5)
    return [
        f'<line class="limit {limit.kind}" x1="{at:.2f}%" x2="{at:.2f}%" y1="{top + 1}" y2="{strip}"/>',
        f'<text class="limit-name {limit.kind}" x="{at:.2f}%" dx="{shift}" y="{top + 11}" '
        f'text-anchor="{anchor}">{escape(limit.label)}</text>',
    ]


def _row_text(row: Interval, y: float) -> list[str]:
    return [
        f'<text class="row-name" x="0" y="{y}">{escape(visible(row.label))}</text>',
        f'<text class="row-reading" x="100%" y="{y}" text-anchor="end">{escape(row.reading)}</text>',
    ]


def _interval(row: Interval, axis: Axis, y: float) -> list[str]:
    if row.value is None:
        return [f'<text class="tick" x="50%" y="{y + 4}" text-anchor="middle">undefined</text>']
    parts = []
    x1 = axis.percent(axis.low if row.low is None else row.low)
    x2 = axis.percent(axis.high if row.high is None else row.high)
    parts.append(f'<line class="interval {row.marker}" x1="{x1:.2f}%" x2="{x2:.2f}%" y1="{y}" y2="{y}"/>')
    for bound, x in ((row.low, x1), (row.high, x2)):
        # An end without a cap is an interval without a bound on that side.
        if bound is not None:
            parts.append(f'<line class="cap {row.marker}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{y - 5}" y2="{y + 5}"/>')
    parts.append(_marker(row.marker, axis.percent(row.value), y))
    return parts


def _marker(marker: Marker, x_pct: float, y: float) -> str:
    size = _MARKER_PX
    # A nested picture has its origin at the percentage, so that the shape itself can be drawn in pixels.
    shape = {
        "circle": f'<circle r="{size}"/>',
        "square": f'<rect x="{-size + 0.5}" y="{-size + 0.5}" width="{2 * size - 1}" height="{2 * size - 1}"/>',
        "diamond": f'<path d="M0 {-size - 1}L{size + 1} 0L0 {size + 1}L{-size - 1} 0Z"/>',
    }[marker]
    return f'<svg class="marker {marker}" x="{x_pct:.2f}%" y="{y}" overflow="visible">{shape}</svg>'


def rank_plot(
    plot_id: str, *, title: str, description: str, suspicions: Sequence[float], n_flagged: int, n_detailed: int
) -> Markup:
    """Suspicion of every ranked item, 0 to 1, most suspected first; flagged items are tinted.

    `suspicions` is in rank order. The rule below the plot marks the items that the page shows in detail.
    """
    n, height = len(suspicions), 132
    if n == 0:
        return Markup("")
    axis = nice_axis([0, n])
    top, bottom = 8, height - _AXIS_PX
    depth = bottom - top
    parts = [
        f'<line class="grid" x1="0" x2="100%" y1="{top + depth * share:.1f}" y2="{top + depth * share:.1f}"/>'
        for share in (0.0, 0.5)
    ]
    start, end = axis.percent(0), axis.percent(n)
    area = _step_area(suspicions)
    frame = f'x="{start:.2f}%" y="{top}" width="{end - start:.2f}%" height="{depth}" preserveAspectRatio="none"'
    parts.append(f'<svg {frame} viewBox="0 0 {n} 1"><path class="area" d="{area}"/></svg>')
    if n_flagged:
        width = f"{axis.percent(n_flagged) - start:.2f}%"
        frame = f'x="{start:.2f}%" y="{top}" width="{width}" height="{depth}" preserveAspectRatio="none"'
        flagged = _step_area(suspicions[:n_flagged])
        parts.append(f'<svg {frame} viewBox="0 0 {n_flagged} 1"><path class="area flagged" d="{flagged}"/></svg>')
    parts += _tick_labels(axis, bottom, 0, "")
    parts.append(f'<line class="axis" x1="0" x2="100%" y1="{bottom + 0.5}" y2="{bottom + 0.5}"/>')
    if n_detailed:
        x2 = axis.percent(n_detailed)
        parts.append(f'<line class="detailed" x1="{start:.2f}%" x2="{x2:.2f}%" y1="{bottom + 3}" y2="{bottom + 3}"/>')
    parts.append(f'<text class="tick" x="100%" y="{top + 12}" text-anchor="end">1</text>')
    parts.append(f'<text class="tick" x="100%" y="{top + depth * 0.5 + 12:.1f}" text-anchor="end">0.5</text>')
    return _svg(plot_id, "plot rank", height, title, description, parts)


def _step_area(values: Sequence[float]) -> str:
    n = len(values)
    steps = min(n, _MAX_STEPS)
    path = ["M0 1"]
    last = ""
    for step in range(steps):
        begin, end = step * n // steps, (step + 1) * n // steps
        y = f"{1.0 - max(values[begin:end]):.4g}"
        if y == last:
            path[-1] = f"H{end}"
        else:
            path += [f"V{y}", f"H{end}"]
        last = y
    return "".join([*path, "V1Z"])


def _svg(plot_id: str, css: str, height: int, title: str, description: str, parts: Sequence[str]) -> Markup:
    title_id, description_id = f"{plot_id}-title", f"{plot_id}-desc"
    return Markup(  # noqa: S704  (every text is escaped where it enters `parts`; the rest is numbers and our own names)
        f'<svg class="{css}" id="{plot_id}" width="100%" height="{height}" role="img" '
        f'aria-labelledby="{title_id} {description_id}"><title id="{title_id}">{escape(visible(title))}</title>'
        f'<desc id="{description_id}">{escape(visible(description))}</desc>{"".join(parts)}</svg>'
    )
