"""The plots of a day and of a comparison with a cluster: SVG, with the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from autoscaling.day import Outcome, Policy, Sample
from autoscaling.observed import Comparison, Seen
from proctor.studies.charts import BLUE, FAINT, GREEN, ORANGE, as_svg, chart_axes, chart_style, legend_below

_COLOURS: Final = {Policy.FIXED: FAINT, Policy.WORK: BLUE, Policy.LIST: ORANGE, Policy.WHOLE_LIST: GREEN}
_LINES: Final = {Policy.FIXED: "-", Policy.WORK: "-", Policy.LIST: "--", Policy.WHOLE_LIST: ":"}
_HOUR_S: Final = 3_600.0
_LEGEND_PX: Final = 18
#: Of the samples of a sum, which rises evenly in between, one in so many is drawn.
_EVERY: Final = 15


class _Curve(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    line: str


def plots(outcomes: Sequence[Outcome], *, gpus_a_pod: int) -> dict[str, str]:
    """File name to SVG document.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    with chart_style():
        return {
            "pods.svg": _day(
                outcomes, "Inference workers over a day", "pods that exist", "pods", lambda sample: sample.workers
            ),
            "queue-age.svg": _day(
                outcomes,
                "Age of the oldest shard that no worker has",
                "from the begin of its stage, sampled each minute",
                "minutes",
                lambda sample: sample.oldest_s / 60,
            ),
            "gpu-hours.svg": _spent(outcomes, gpus_a_pod),
        }


def _day(outcomes: Sequence[Outcome], title: str, reading: str, label: str, value: Callable[[Sample], float]) -> str:
    curves = [
        _Curve(
            str(one.policy),
            [sample.at_s / _HOUR_S for sample in one.samples],
            [value(sample) for sample in one.samples],
            _COLOURS[one.policy],
            _LINES[one.policy],
        )
        for one in outcomes
    ]
    return _chart(title, reading, curves, "hour of the day", label)


def _spent(outcomes: Sequence[Outcome], gpus_a_pod: int) -> str:
    curves = []
    for one in outcomes:
        at_s = np.array([sample.at_s for sample in one.samples])
        gpus = np.array([sample.gpus for sample in one.samples]) * gpus_a_pod
        spent = np.concatenate([[0.0], np.cumsum(gpus[:-1] * np.diff(at_s))]) / _HOUR_S
        hours, sums = (at_s / _HOUR_S)[::_EVERY], spent[::_EVERY]
        curves.append(_Curve(str(one.policy), list(hours), list(sums), _COLOURS[one.policy], _LINES[one.policy]))
    return _chart("GPU hours spent since midnight", "pods that start are counted", curves, "hour of the day", "hours")


def compared(seen: Sequence[Seen], comparison: Comparison) -> str:
    """Replicas that a cluster had, beside the prediction of the phase that fits best, and the work."""
    with chart_style():
        at_s = [sample.at_s for sample in seen]
        curves = [
            _Curve("replicas, the cluster's", at_s, [one.replicas for one in seen], BLUE, "-"),
            _Curve("replicas, predicted", at_s, [one.replicas for one in comparison.best], ORANGE, "--"),
            _Curve("ready pods, the cluster's", at_s, [one.ready for one in seen], GREEN, ":"),
        ]
        return _chart(
            "A real cluster's replicas and the prediction",
            f"of the phases that fit best; they differ by {comparison.mean_error:.2f} replicas on average",
            curves,
            "seconds",
            "pods",
        )


def _chart(title: str, reading: str, curves: Sequence[_Curve], x: str, y: str) -> str:
    rows = (len(curves) + 1) // 2
    axes = chart_axes(260, below_px=58 + rows * _LEGEND_PX)
    drawn = [
        axes.plot(c.x, c.y, color=c.colour, linestyle=c.line, label=c.name, drawstyle="steps-post")[0] for c in curves
    ]
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=0)
    if x.startswith("hour"):
        axes.set_xlim(0, 24)
        axes.set_xticks(range(0, 25, 3))
    legend_below(axes, [*drawn[::2], *drawn[1::2]])
    return as_svg(axes, title, reading)
