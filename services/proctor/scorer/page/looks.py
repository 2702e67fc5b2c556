"""The looks of a sequential audit on the report's page: each interval against the limits, and why the audit stopped."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from proctor.domain.estimate import Estimate
from proctor.domain.looks import LookSeen, SequentialRecord, Stop
from proctor.scorer import headline
from proctor.scorer.page import phrases
from proctor.scorer.page.phrases import count
from proctor.scorer.page.plots import Interval, Limit, interval_plot, nice_axis
from proctor.scorer.report.document import Report

_STOPS = {
    Stop.APPROVED: "The audit stopped there, because it could approve.",
    Stop.BLOCKED: "The audit stopped there, because it could block.",
    Stop.FUTILE: "The audit stopped there, because no further item was likely to decide.",
    Stop.UNUSABLE: "The audit stopped there, because a required channel said nothing, whatever is asked.",
    Stop.LAST: "That was the whole sample.",
}


class LookRow(NamedTuple):
    """One look, in words."""

    name: str
    items: str
    level: str
    inflation: str
    score: str
    p_value: str
    alpha: str
    chance: str


class ShownLooks(NamedTuple):
    """What the page says of the looks."""

    introduction: str
    ended: str
    plots: tuple[Markup, ...]
    rows: tuple[LookRow, ...]
    p_value: float
    """Of all looks together."""


def shown_looks(report: Report) -> ShownLooks | None:
    """The looks of a sequential audit; None of a fixed one."""
    record = report.sequential
    if record is None:
        return None
    return ShownLooks(
        introduction=f"This audit was to ask at most {count(record.n_planned)} items and to look at "
        f"{phrases.counted(len(record.sizes), 'point', 'points')} on the way whether they decide. Each look is read at "
        f"a stricter level, so that the intervals of all looks together hold {100 * record.level:g} %: stopping early "
        "takes nothing from them.",
        ended=_ended(record),
        plots=_plots(report, record),
        rows=tuple(_row(seen) for seen in record.looks),
        p_value=record.p_value,
    )


def _ended(record: SequentialRecord) -> str:
    last = record.looks[-1]
    asked = f"Look {last.number} of {len(record.sizes)} had {count(last.n_items)} of {count(record.n_planned)} items. "
    return asked + _STOPS[record.stop]


def _plots(report: Report, record: SequentialRecord) -> tuple[Markup, ...]:
    scoring, governance = report.suite.scoring, report.suite.governance
    allowed, blocked = scoring.max_allowed_contaminated_items_pct, governance.block_deployment_above_contaminated_pct
    threshold = scoring.contamination_threshold
    in_points = headline.limits_of(allowed, blocked, "{:g} points")
    score_axis = nice_axis([0, 2 * threshold, *_all(record, "score")])
    return (
        interval_plot(
            "looks-inflation",
            title="Score inflation at each look, with the suite's limits",
            description="; ".join(f"{count(one.n_items)} items: {_points(one.inflation)}" for one in record.looks),
            rows=[_interval(one, one.inflation, _points(one.inflation)) for one in record.looks],
            axis=nice_axis([0, 2 * blocked, *_all(record, "inflation")]),
            limits=in_points,
        ),
        interval_plot(
            "looks-score",
            title="Contamination Score at each look, with the suite's limit",
            description="; ".join(f"{count(one.n_items)} items: {_score(one.score)}" for one in record.looks),
            rows=[_interval(one, one.score, _score(one.score)) for one in record.looks],
            axis=score_axis,
            limits=[Limit(threshold, f"limit {threshold:g}", "block")],
            tick_digits=headline.tick_digits(score_axis.ticks),
        ),
    )


def _all(record: SequentialRecord, name: str) -> list[float]:
    estimates = [getattr(one, name) for one in record.looks]
    return [side for one in estimates for side in (one.value, one.low, one.high) if side is not None]


def _interval(seen: LookSeen, estimate: Estimate, reading: str) -> Interval:
    return Interval(f"{count(seen.n_items)} items", estimate.value, estimate.low, estimate.high, reading)


def _points(estimate: Estimate) -> str:
    return f"{phrases.points(estimate.value)}  ({phrases.interval(estimate, digits=1)})"


def _score(estimate: Estimate) -> str:
    value = "undefined" if estimate.value is None else phrases.rounded(estimate.value, 3)
    return f"{value}  ({phrases.interval(estimate, digits=3)})"


def _row(seen: LookSeen) -> LookRow:
    chance = seen.decision_chance
    return LookRow(
        name=str(seen.number),
        items=count(seen.n_items),
        level=f"{100 * seen.level:.2f}{phrases.NBSP}%",
        inflation=_points(seen.inflation),
        score=_score(seen.score),
        p_value=phrases.p_value(seen.p_value),
        alpha=f"{seen.alpha:.4f}",
        chance="–" if chance is None else f"{100 * chance:.0f}{phrases.NBSP}%",
    )
