"""Charts of a calibration of the gate: where the two kinds of pairs lie, and what each window's end admits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from proctor.domain.gate_calibration import ARTICLE_WINDOWS, BIN_WIDTH, GateCalibration, Roc
from proctor.studies.charts import BLUE, FAINT, INK, ORANGE, as_svg, chart_axes, chart_style, legend_below, short_name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.container import Container

_SQUARE_PX: Final = 320
_NAME_CELLS: Final = 30
_NEARLY_ALL: Final = 0.995


def figures(calibration: GateCalibration) -> dict[str, str]:
    """File name to SVG document.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    with chart_style():
        return {"distances.svg": distances(calibration), "roc.svg": roc_curves(calibration)}


def distances(calibration: GateCalibration) -> str:
    """Histogram of the held-out pairs' distances by kind, each as shares of its kind, with the two windows."""
    counts = calibration.held_out
    axes = chart_axes(260, top_px=92, below_px=96)
    lows = np.array([one.low for one in calibration.histogram])
    kinds = (
        ("equivalent", BLUE, counts.equivalent, [one.equivalent for one in calibration.histogram]),
        ("different", ORANGE, counts.different, [one.different for one in calibration.histogram]),
    )
    half = BIN_WIDTH / 2
    drawn: list[Artist | Container] = []
    for place, (name, colour, all_pairs, pairs) in enumerate(kinds):
        shares, label = 100 * np.array(pairs) / all_pairs, f"{all_pairs:,} {name} pairs"
        drawn += [axes.bar(lows + place * half, shares, 0.9 * half, align="edge", color=colour, label=label)]
    learned = (calibration.min_semantic_distance, calibration.max_semantic_distance)
    windows = (("learned", learned, INK, "-"), ("article", ARTICLE_WINDOWS["the article's"], FAINT, "--"))
    for row, (name, (low, high), colour, line) in enumerate(windows):
        # Each lies above the bars, and its end comes down through them.
        x, y = [low, high, high], [1.09 - 0.05 * row, 1.09 - 0.05 * row, 0.0]
        label = f"{name} window, {low:g} to {high:g}"
        across = axes.get_xaxis_transform()
        drawn += axes.plot(x, y, line, color=colour, lw=1, transform=across, clip_on=False, label=label)
    axes.update_datalim([(0.0, 0.0), (float(lows[-1]) + BIN_WIDTH, 1.0)])
    axes.autoscale_view()
    axes.grid(visible=False, axis="x")
    axes.set_xlabel("semantic distance")
    axes.set_ylabel("share of the pairs of a kind, %")
    legend_below(axes, drawn)
    title = f"Semantic distances of the pairs of {short_name(calibration.benchmark, _NAME_CELLS)}"
    reading = f"held-out pairs; measured by {short_name(calibration.encoder, 2 * _NAME_CELLS)}"
    return as_svg(axes, title, reading)


def roc_curves(calibration: GateCalibration) -> str:
    """True admits over false admits of the whole gate and of the distance alone, and the learned window's point."""
    rates = calibration.rates
    axes = chart_axes(_SQUARE_PX, left_px=80, right_px=760 - 80 - _SQUARE_PX)
    gate, distance = calibration.roc_gate, calibration.roc_distance
    axes.plot(*_curve(distance), color=ORANGE, label=f"the distance alone: area {distance.auc:.4f}")
    axes.plot(*_curve(gate), "--", color=BLUE, label=f"the whole gate: area {gate.auc:.4f}")
    axes.plot([0, 100], [0, 100], ":", color=FAINT, label="chance: area 0.5")
    here = (100 * (rates.false_admits.value or 0.0), 100 * (rates.true_admits.value or 0.0))
    label = f"the learned window, up to {calibration.max_semantic_distance:g}"
    axes.plot(*here, "o", color=INK, clip_on=False, zorder=3, label=label)
    axes.set_xlim(0, _last_false_admits(calibration))
    axes.set_ylim(0, 100)
    axes.set_xlabel("different pairs admitted, %")
    axes.set_ylabel("equivalent pairs admitted, %")
    axes.legend(loc="upper left", bbox_to_anchor=(1.1, 0.98), labelspacing=1.0, handlelength=2.8)
    title = f"ROC of the gate on {short_name(calibration.benchmark, _NAME_CELLS)}"
    reading = "held-out pairs; cut off where the distance alone admits nearly all of the equivalent ones"
    return as_svg(axes, title, reading)


def _last_false_admits(calibration: GateCalibration) -> float:
    """Where the axis of false admits ends, in percent: where the curves still rise, for good encoders a thin strip."""
    points = calibration.roc_distance.points
    enough = _NEARLY_ALL * points[-1].true_admits
    rising = next(point.false_admits for point in points if point.true_admits >= enough)
    return max(1.0, 105 * max(rising, calibration.rates.false_admits.value or 0.0))


def _curve(curve: Roc) -> tuple[list[float], list[float]]:
    """False and true admits in percent, from the window that admits nothing."""
    return [0.0, *(100 * one.false_admits for one in curve.points)], [
        0.0,
        *(100 * one.true_admits for one in curve.points),
    ]
