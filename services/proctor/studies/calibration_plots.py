"""Figures of a calibration of the gate: where the two kinds of pairs lie, and what each window's end admits."""

from __future__ import annotations

from typing import Final

from proctor.domain.gate_calibration import ARTICLE_WINDOWS, BIN_WIDTH, GateCalibration, Roc
from proctor.scorer.page.plots import Axis, nice_axis
from proctor.studies.svg import BLUE, FAINT, GRID, INK, ORANGE, WIDTH, box, document, line, path, text

_LEFT: Final = 60
_RIGHT: Final = WIDTH - 24
_TOP: Final = 92
_CHART_PX: Final = 260
_BOTTOM: Final = _TOP + _CHART_PX
_SQUARE_PX: Final = 320
_NEARLY_ALL: Final = 0.995


def figures(calibration: GateCalibration) -> dict[str, str]:
    """File name to SVG document."""
    return {"distances.svg": distances(calibration), "roc.svg": roc_curves(calibration)}


def distances(calibration: GateCalibration) -> str:
    """Histogram of the held-out pairs' distances by kind, each as shares of its kind, with the two windows."""
    bins, counts = calibration.histogram, calibration.held_out
    shares = [
        (one.low, 100 * one.equivalent / counts.equivalent, 100 * one.different / counts.different) for one in bins
    ]
    across = nice_axis([0.0, *(low + BIN_WIDTH for low, _, _ in shares), calibration.max_semantic_distance])
    up = nice_axis([0.0, 1.0, *(share for _, *both in shares for share in both)], max_ticks=5)

    def x_of(value: float) -> float:
        return _LEFT + (value - across.low) / (across.high - across.low) * (_RIGHT - _LEFT)

    def y_of(value: float) -> float:
        return _BOTTOM - (value - up.low) / (up.high - up.low) * _CHART_PX

    parts = []
    for tick in up.ticks:
        parts += [line(_LEFT, y_of(tick), _RIGHT, y_of(tick), GRID)]
        parts += [text(_LEFT - 8, y_of(tick) + 4, f"{tick:g} %", "end", FAINT)]
    for tick in across.ticks:
        parts.append(text(x_of(tick), _BOTTOM + 18, f"{tick:g}", "middle", FAINT))
    for low, equivalent, different in shares:
        half = (x_of(low + BIN_WIDTH) - x_of(low)) / 2
        for offset, share, colour in ((0.0, equivalent, BLUE), (half, different, ORANGE)):
            parts.append(box(x_of(low) + offset, y_of(share), half - 1, _BOTTOM - y_of(share), colour))
    article = ARTICLE_WINDOWS["the article's"]
    learned = (calibration.min_semantic_distance, calibration.max_semantic_distance)
    for row, (name, (low, high), colour) in enumerate((("learned", learned, INK), ("article", article, FAINT))):
        y = _TOP - 26 + 14 * row
        parts.append(line(x_of(low), y, x_of(high), y, colour))
        parts.append(line(x_of(high), y, x_of(high), _BOTTOM, colour, dashed=True))
        parts.append(text(x_of(high) + 6, y + 4, f"{name} window, {low:g} to {high:g}", colour=colour, size=11))
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 36, "semantic distance", "middle", FAINT))
    reading = (
        f"share of the held-out pairs of each kind: {counts.equivalent:,} equivalent (blue), "
        f"{counts.different:,} of nearest different questions (orange)"
    )
    return document(_BOTTOM + 48, f"Distances of {calibration.benchmark} by {calibration.encoder}", reading, parts)


def roc_curves(calibration: GateCalibration) -> str:
    """True admits over false admits of the whole gate and of the distance alone, and the learned window's point."""
    size, left, bottom = _SQUARE_PX, _LEFT + 20, _TOP + _SQUARE_PX - 30
    rates, across = calibration.rates, _across(calibration)

    def place(false_admits: float, true_admits: float) -> tuple[float, float]:
        return left + size * 100 * false_admits / across.high, bottom - size * true_admits

    parts = []
    for tick in across.ticks:
        x, _ = place(tick / 100, 0)
        parts += [line(x, bottom, x, bottom - size, GRID), text(x, bottom + 18, f"{tick:g} %", "middle", FAINT)]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        _, y = place(0, tick)
        parts += [line(left, y, left + size, y, GRID), text(left - 8, y + 4, f"{100 * tick:g} %", "end", FAINT)]
    curves = (("the whole gate", calibration.roc_gate, BLUE), ("the distance alone", calibration.roc_distance, ORANGE))
    for row, (name, curve, colour) in enumerate(curves):
        inside = [place(x, y) for x, y in _corners(curve) if 100 * x <= across.high]
        parts.append(path([place(0, 0), *inside], colour))
        y = bottom - size + 20 + 22 * row
        parts += [line(left + size + 30, y - 4, left + size + 54, y - 4, colour)]
        parts.append(text(left + size + 60, y, f"{name}: area {curve.auc:.4f}"))
    x, y = place(rates.false_admits.value or 0.0, rates.true_admits.value or 0.0)
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{INK}"/>')
    note = f"● the learned window, up to {calibration.max_semantic_distance:g}"
    parts.append(text(left + size + 30, bottom - size + 64, note))
    parts.append(text(left + size / 2, bottom + 38, "different pairs admitted", "middle", FAINT))
    reading = (
        "share of equivalent (up) and of different pairs (across) that are admitted, held-out pairs; cut off where the "
        "distance alone admits nearly all of the equivalent ones"
    )
    return document(bottom + 52, f"ROC of the gate on {calibration.benchmark}", reading, parts)


def _across(calibration: GateCalibration) -> Axis:
    """The axis of false admits, in percent: where the curves still rise, which for good encoders is a thin strip."""
    points = calibration.roc_distance.points
    enough = _NEARLY_ALL * points[-1].true_admits
    rising = next(point.false_admits for point in points if point.true_admits >= enough)
    return nice_axis([0.0, 1.0, 100 * max(rising, calibration.rates.false_admits.value or 0.0)])


def _corners(curve: Roc) -> list[tuple[float, float]]:
    return [(point.false_admits, point.true_admits) for point in curve.points]
