"""Charts of a table of router settings, after figures 2 to 5 of arXiv 2603.21636: SVG files that stand alone.

The paper's definitions are here, and its layout is not: each chart shows the quantities, in a form of our own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proctor.domain.noise import NoiseModel, NoiseSetting, NoiseSummary
from proctor.studies import charts
from proctor.studies.charts import BLUE, FAINT, GREEN, GRID, INK, ORANGE, SMALL_PT, WIDTH_PX

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME_PX = 190
_NAME_CELLS = 26
_ROW_PX = 26
_CHART_PX = 240
#: As wide as the words on a bar, or in a cell.
_COUNT_PX = 56


def figures(summary: NoiseSummary) -> dict[str, str]:
    """File name to SVG document.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    with charts.chart_style():
        return {
            "figure-2-gains.svg": gains(summary),
            "figure-3-models.svg": by_model(summary),
            "figure-4-router-counts.svg": by_router_count(summary),
            "figure-5-transitions.svg": transitions(summary),
        }


def gains(summary: NoiseSummary) -> str:
    """Gain of every setting, models down and router counts across; a star where it survives Holm."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    rows = {model.model: row for row, model in enumerate(summary.models)}
    columns = {count.router_count: column for column, count in enumerate(summary.router_counts)}
    starred = {(setting.model, setting.router_count) for setting in summary.significant}
    axes = charts.chart_axes(
        len(rows) * _ROW_PX, width_px=_width_px(summary, _NAME_PX), left_px=_NAME_PX, top_px=100, below_px=20
    )
    points = np.full((len(rows), len(columns)), np.nan)
    for setting in summary.settings:
        row, column = rows[setting.model], columns[setting.router_count]
        points[row, column] = np.nan if setting.invalid else 100 * setting.gain
        words = _cell(setting, starred=(setting.model, setting.router_count) in starred)
        colour = FAINT if setting.invalid else INK
        axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=SMALL_PT, color=colour)
    largest = np.nanmax(np.abs(points), initial=0.0) or 1.0
    # Light enough at both ends to read the words on them.
    colours = LinearSegmentedColormap.from_list("gain", [to_rgba(BLUE, 0.75), to_rgba("white"), to_rgba(ORANGE, 0.75)])
    axes.pcolormesh(points, cmap=colours, vmin=-largest, vmax=largest, edgecolors=GRID, linewidth=0.75)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.xaxis.set_label_position("top")
    axes.xaxis.tick_top()
    axes.set_xlim(0, len(columns))
    axes.set_xticks(np.arange(len(columns)) + 0.5, labels=[str(count) for count in columns])
    axes.set_xlabel("router count")
    _name_rows(axes, summary.models, 0.5)
    reading = f"noisy − clean accuracy, in points; ★ survives Holm at {summary.alpha:g}"
    return charts.as_svg(axes, "Gain by model and router count", reading)


def _cell(setting: NoiseSetting, *, starred: bool) -> str:
    if setting.invalid:
        return "invalid"
    points = f"{100 * setting.gain:+.3g}".replace("-", "−") if setting.gain else "0"
    return f"{points} ★" if starred else points


def by_model(summary: NoiseSummary) -> str:
    """Largest and mean positive excess of each model as bars, and its violation breadth in words.

    The mean is the paper's, over the settings above the clean baseline; a model without one has no bar.
    """
    models = summary.models
    axes = charts.chart_axes(len(models) * _ROW_PX, left_px=_NAME_PX, right_px=130, top_px=80)
    rows = range(len(models))
    largest = [100 * (model.max_positive_excess or 0.0) for model in models]
    mean = [100 * (model.mean_positive_excess or 0.0) for model in models]
    axes.barh(rows, largest, height=0.6, color=ORANGE, alpha=0.4, label="largest")
    axes.barh(rows, mean, height=0.6, color=ORANGE, label="mean of those above")
    for row, model in enumerate(models):
        words = f"{model.violations} of {model.settings - model.invalid_settings} above"
        axes.text(1.02, row, words, transform=axes.get_yaxis_transform(), va="center", fontsize=SMALL_PT)
    axes.update_datalim([(1.0, 0.0)])
    axes.autoscale_view()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("positive excess, points")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1.01), ncols=2, reverse=True)
    _name_rows(axes, models, 0.0)
    reading = "how far noise raised accuracy; at the right, in how many settings it did (violation breadth)"
    return charts.as_svg(axes, "Positive excess and violation breadth by model", reading)


def by_router_count(summary: NoiseSummary) -> str:
    """Mean positive excess over the violating models by router count as bars, with their number on each."""
    counts = summary.router_counts
    axes = _over_router_counts(summary)
    excess = [100 * (count.mean_positive_excess or 0.0) for count in counts]
    bars = axes.bar(range(len(counts)), excess, width=0.45, color=ORANGE)
    words = [f"{count.violating_models} of {count.models - count.invalid_settings}" for count in counts]
    axes.bar_label(bars, words, padding=3, fontsize=SMALL_PT)
    axes.update_datalim([(0.0, 1.0)])
    axes.autoscale_view(scalex=False)
    axes.set_ylabel("positive excess, points")
    reading = "mean over the models above their clean baseline; on each bar, how many these are"
    return charts.as_svg(axes, "Positive excess by router count", reading)


def transitions(summary: NoiseSummary) -> str:
    """Improve and degrade transitions and their difference by router count, summed over models."""
    counts = summary.router_counts
    axes = _over_router_counts(summary)
    across = range(len(counts))
    axes.axhline(0, color=FAINT, linewidth=0.75)
    for name, form, colour, questions in (
        ("improve", "o-", ORANGE, [count.improve for count in counts]),
        ("degrade", "s-", BLUE, [count.degrade for count in counts]),
        ("net", "^--", GREEN, [count.net_improve for count in counts]),
    ):
        axes.plot(across, questions, form, color=colour, clip_on=False, label=name)
    axes.update_datalim([(0.0, 1.0)])
    axes.autoscale_view(scalex=False)
    axes.locator_params(axis="y", integer=True)
    axes.set_ylabel("questions, sum over models")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1.02), ncols=3)
    reading = "questions that turn right (improve) and wrong (degrade), and the difference (net)"
    return charts.as_svg(axes, "Transitions by router count", reading)


def _over_router_counts(summary: NoiseSummary) -> Axes:
    counts = [str(count.router_count) for count in summary.router_counts]
    axes = charts.chart_axes(_CHART_PX, width_px=_width_px(summary, 72), left_px=72, top_px=84)
    axes.set_xlim(-0.5, len(counts) - 0.5)
    axes.set_xticks(range(len(counts)), labels=counts)
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("router count")
    return axes


def _width_px(summary: NoiseSummary, left_px: float) -> float:
    return max(WIDTH_PX, left_px + len(summary.router_counts) * _COUNT_PX + 24)


def _name_rows(axes: Axes, models: tuple[NoiseModel, ...], offset: float) -> None:
    """Name the rows, the first at the top; `offset` is where a row's middle is above its number."""
    names = [charts.short_name(model.model, _NAME_CELLS) for model in models]
    axes.set_yticks(np.arange(len(models)) + offset, labels=names)
    axes.set_ylim(len(models) - 0.5 + offset, offset - 0.5)
    axes.tick_params(axis="y", labelcolor=INK, labelsize=SMALL_PT)
