"""Figures of a table of router settings, after figures 2 to 5 of arXiv 2603.21636: SVG files that stand alone.

The paper's definitions are here, and its layout is not: each figure shows the quantities, in a form of our own.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.noise import NoiseModel, NoiseSetting, NoiseSummary
from proctor.scorer.page.plots import Axis, nice_axis
from proctor.studies import svg
from proctor.studies.svg import FAINT, GRID, INK, WIDTH

_NAME_PX = 190
_RIGHT_PX = 24
_TOP_PX = 64
_ROW_PX = 26
_BAR_PX = 16
_CHART_PX = 240
_NAME_CHARACTERS = 26

#: Okabe and Ito's colours, which every common form of colour vision tells apart.
_UP, _DOWN, _NET = "#d55e00", "#0072b2", "#009e73"


def figures(summary: NoiseSummary) -> dict[str, str]:
    """File name to SVG document."""
    return {
        "figure-2-gains.svg": gains(summary),
        "figure-3-models.svg": by_model(summary),
        "figure-4-router-counts.svg": by_router_count(summary),
        "figure-5-transitions.svg": transitions(summary),
    }


def gains(summary: NoiseSummary) -> str:
    """Gain of every setting, models down and router counts across; a star where it survives Holm."""
    counts = [count.router_count for count in summary.router_counts]
    cell = (WIDTH - _NAME_PX - _RIGHT_PX) / len(counts)
    starred = {(setting.model, setting.router_count) for setting in summary.significant}
    largest = max((abs(setting.gain) for setting in summary.settings if not setting.invalid), default=0.0) or 1.0
    parts = [svg.text(_NAME_PX + cell * (i + 0.5), _TOP_PX - 6, str(r), "middle", FAINT) for i, r in enumerate(counts)]
    for row, model in enumerate(summary.models):
        y = _TOP_PX + row * _ROW_PX
        parts.append(_name(model, y + 17))
        for setting in summary.settings:
            if setting.model == model.model:
                x = _NAME_PX + counts.index(setting.router_count) * cell
                star = (setting.model, setting.router_count) in starred
                parts += _cell(setting, x, y, cell, largest, star=star)
    height = _TOP_PX + len(summary.models) * _ROW_PX + 20
    reading = f"noisy − clean accuracy, in points; columns are router counts; ★ survives Holm at {summary.alpha:g}"
    return svg.document(height, "Gain by model and router count", reading, parts)


def _cell(setting: NoiseSetting, x: float, y: float, width: float, largest: float, *, star: bool) -> list[str]:
    share = 0.0 if setting.invalid else 0.75 * abs(setting.gain) / largest
    colour = _UP if setting.gain > 0 else _DOWN
    points = f"{100 * setting.gain:+.3g}" if setting.gain else "0"
    label = "invalid" if setting.invalid else f"{points} ★" if star else points
    return [
        f'<rect x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{_ROW_PX - 2}" fill="{colour}" '
        f'fill-opacity="{share:.3f}" stroke="{GRID}"/>',
        svg.text(x + width / 2, y + 17, label, "middle", FAINT if setting.invalid else INK, size=11),
    ]


def by_model(summary: NoiseSummary) -> str:
    """Largest and mean positive excess of each model as bars, and its violation breadth in words."""
    models = summary.models
    right = 130
    axis = nice_axis([0.0, 1.0, *(100 * (model.max_positive_excess or 0.0) for model in models)])
    bottom = _TOP_PX + len(models) * _ROW_PX
    width = WIDTH - _NAME_PX - right
    parts = []
    for tick in axis.ticks:
        x = _NAME_PX + _share(axis, tick) * width
        parts += [svg.line(x, _TOP_PX, x, bottom, GRID), svg.text(x, bottom + 16, f"{tick:g}", "middle", FAINT)]
    for row, model in enumerate(models):
        y = _TOP_PX + row * _ROW_PX + 5
        parts.append(_name(model, y + 12))
        for value, opacity in ((model.max_positive_excess, 0.4), (model.mean_positive_excess, 1.0)):
            length = _share(axis, 100 * (value or 0.0)) * width
            parts.append(
                f'<rect x="{_NAME_PX}" y="{y}" width="{length:.1f}" height="{_BAR_PX}" fill="{_UP}" '
                f'fill-opacity="{opacity}"/>'
            )
        words = f"{model.violations} of {model.settings - model.invalid_settings} above"
        parts.append(svg.text(WIDTH - _RIGHT_PX, y + 12, words, "end", INK, size=11))
    reading = "positive excess in points: largest (pale) and mean (full); at the right, violation breadth"
    return svg.document(bottom + 34, "Positive excess and violation breadth by model", reading, parts)


def by_router_count(summary: NoiseSummary) -> str:
    """Mean positive excess over models by router count as bars, with the number of violating models on each."""
    counts = summary.router_counts
    axis = nice_axis([0.0, 1.0, *(100 * (count.mean_positive_excess or 0.0) for count in counts)])
    parts = _frame(axis, [str(count.router_count) for count in counts])
    for i, count in enumerate(counts):
        x, top = _place(i, len(counts)), _height(axis, 100 * (count.mean_positive_excess or 0.0))
        base = _height(axis, 0.0)
        parts.append(f'<rect x="{x - 14:.1f}" y="{top:.1f}" width="28" height="{base - top:.1f}" fill="{_UP}"/>')
        words = f"{count.violating_models} of {count.models - count.invalid_settings}"
        parts.append(svg.text(x, top - 5, words, "middle", INK, size=11))
    reading = "mean over models of positive excess, in points; on each bar, how many models are above their baseline"
    return svg.document(_TOP_PX + _CHART_PX + 44, "Positive excess by router count", reading, parts)


def transitions(summary: NoiseSummary) -> str:
    """Improve and degrade transitions and their difference by router count, summed over models."""
    counts = summary.router_counts
    series: tuple[tuple[str, str, list[float]], ...] = (
        ("improve", _UP, [float(count.improve) for count in counts]),
        ("degrade", _DOWN, [float(count.degrade) for count in counts]),
        ("net", _NET, [float(count.net_improve) for count in counts]),
    )
    axis = nice_axis([0.0, 1.0, *(value for _, _, values in series for value in values)])
    parts = _frame(axis, [str(count.router_count) for count in counts])
    for order, (name, colour, values) in enumerate(series):
        points = [(_place(i, len(values)), _height(axis, value)) for i, value in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if name == "net" else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        x = WIDTH - _RIGHT_PX - 210 + 80 * order
        parts += [
            svg.line(x, _TOP_PX - 14, x + 16, _TOP_PX - 14, colour),
            svg.text(x + 20, _TOP_PX - 10, name, "start", colour),
        ]
    reading = "questions that turn right (improve) and wrong (degrade), summed over models"
    return svg.document(_TOP_PX + _CHART_PX + 44, "Transitions by router count", reading, parts)


def _frame(axis: Axis, names: Sequence[str]) -> list[str]:
    parts = []
    for tick in axis.ticks:
        y = _height(axis, tick)
        colour = FAINT if tick == 0 else GRID
        parts += [svg.line(60, y, WIDTH - _RIGHT_PX, y, colour), svg.text(52, y + 4, f"{tick:g}", "end", FAINT)]
    bottom = _TOP_PX + _CHART_PX
    parts += [svg.text(_place(i, len(names)), bottom + 18, name, "middle", FAINT) for i, name in enumerate(names)]
    parts.append(svg.text((60 + WIDTH - _RIGHT_PX) / 2, bottom + 36, "router count", "middle", FAINT))
    return parts


def _place(index: int, count: int) -> float:
    return 60 + (WIDTH - _RIGHT_PX - 60) * (index + 0.5) / count


def _share(axis: Axis, value: float) -> float:
    return (value - axis.low) / (axis.high - axis.low)


def _height(axis: Axis, value: float) -> float:
    return _TOP_PX + 10 + (1 - _share(axis, value)) * (_CHART_PX - 10)


def _name(model: NoiseModel, y: float) -> str:
    name = model.model
    short = name if len(name) <= _NAME_CHARACTERS else name[: _NAME_CHARACTERS - 1] + "…"
    return svg.text(_NAME_PX - 8, y, short, "end", INK)
