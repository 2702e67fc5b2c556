"""Drawing: line charts and strips of dots as SVG files that stand alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from proctor.studies.svg import FAINT, GRID, INK, WIDTH, document, text

_LEFT, _RIGHT, _TOP = 62, 24, 64
_CHART_PX = 300
_NAME_PX = 150
_ROW_PX = 30
_LEGEND_PX = 18
LIMIT = "#b42318"
#: Okabe and Ito's colours, which every common form of colour vision tells apart; the eighth is its black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d00", "#1f2328")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")


class Series(NamedTuple):
    """A line: its name and its points, in the chart's units."""

    name: str
    points: tuple[tuple[float, float], ...]


class Scale(NamedTuple):
    """An axis with its ticks; logarithmic where asked for."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Place of a value from 0 to 1, held inside."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Strip(NamedTuple):
    """A row of dots: its name, the values, and which of the chart's kinds they are."""

    name: str
    values: tuple[float, ...]
    kind: int


def line_chart(
    title: str, reading: str, series: Sequence[Series], x: Scale, y: Scale, *, limits: Sequence[float] = ()
) -> str:
    """Lines with a dot at each point and a legend below; a limit is a dashed red line across."""
    width = WIDTH - _LEFT - _RIGHT
    bottom = _TOP + _CHART_PX
    parts = []
    for tick in y.ticks:
        at = bottom - y.share(tick) * _CHART_PX
        parts += [_line(_LEFT, at, WIDTH - _RIGHT, at, GRID), text(_LEFT - 8, at + 4, f"{tick:g}", "end", FAINT)]
    for tick in x.ticks:
        at = _LEFT + x.share(tick) * width
        parts += [_line(at, bottom, at, bottom + 5, FAINT), text(at, bottom + 19, f"{tick:,g}", "middle", FAINT)]
    parts.append(text(_LEFT + width / 2, bottom + 38, x.label, "middle", FAINT))
    for limit in limits:
        at = bottom - y.share(limit) * _CHART_PX
        parts.append(_line(_LEFT, at, WIDTH - _RIGHT, at, LIMIT, dash="6 4"))
    for place, (name, points) in enumerate(series):
        colour, dash = COLOURS[place % len(COLOURS)], _DASHES[place % len(_DASHES)]
        at_px = [(_LEFT + x.share(a) * width, bottom - y.share(b) * _CHART_PX) for a, b in points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in at_px)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{_dashed(dash)}/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in at_px]
        column, row = place % 2, place // 2
        key_x, key_y = _LEFT + column * width / 2, bottom + 62 + row * _LEGEND_PX
        parts.append(_line(key_x, key_y - 4, key_x + 22, key_y - 4, colour, dash=dash, stroke=2))
        parts.append(text(key_x + 28, key_y, name, "start", INK, size=11))
    height = bottom + 62 + math.ceil(len(series) / 2) * _LEGEND_PX
    parts.append(text(WIDTH - _RIGHT, _TOP - 6, y.label, "end", FAINT, size=11))
    return document(height, title, reading, parts)


def strip_chart(
    title: str, reading: str, strips: Sequence[Strip], kinds: Sequence[str], x: Scale, *, limits: Sequence[float] = ()
) -> str:
    """Rows of dots over one axis, a colour for each kind."""
    left = _LEFT + _NAME_PX
    width = WIDTH - left - _RIGHT
    names = list(dict.fromkeys(strip.name for strip in strips))
    bottom = _TOP + len(names) * _ROW_PX
    parts = []
    for tick in x.ticks:
        at = left + x.share(tick) * width
        parts += [_line(at, _TOP, at, bottom, GRID), text(at, bottom + 17, f"{tick:g}", "middle", FAINT)]
    parts.append(text(left + width / 2, bottom + 36, x.label, "middle", FAINT))
    for limit in limits:
        at = left + x.share(limit) * width
        parts.append(_line(at, _TOP, at, bottom, LIMIT, dash="6 4"))
    parts += [
        text(left - 10, _TOP + (row + 0.5) * _ROW_PX + 4, name, "end", INK, size=11) for row, name in enumerate(names)
    ]
    for name, values, kind in strips:
        at_y = _TOP + names.index(name) * _ROW_PX + _ROW_PX * (kind + 1) / (len(kinds) + 1)
        parts += [
            f'<circle cx="{left + x.share(value) * width:.1f}" cy="{at_y:.1f}" r="3" fill="{COLOURS[kind]}" '
            'fill-opacity="0.55"/>'
            for value in values
        ]
    for kind, words in enumerate(kinds):
        at_x = left + kind * width / len(kinds)
        parts.append(f'<circle cx="{at_x:.1f}" cy="{bottom + 55}" r="4" fill="{COLOURS[kind]}"/>')
        parts.append(text(at_x + 9, bottom + 59, words, "start", INK, size=11))
    return document(bottom + 74, title, reading, parts)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dash: str = "", stroke: float = 1) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{stroke:g}"{_dashed(dash)}/>'
    )


def _dashed(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""
