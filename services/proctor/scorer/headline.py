"""The numbers that decide, each against the suite's limits: score inflation, Contamination Score and p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Estimate, PerturbationEvidence
from proctor.evidence.perturbation.held import Held
from proctor.scorer.page import phrases
from proctor.scorer.page.phrases import Side, p_value, points, rounded
from proctor.scorer.page.plots import Interval, Limit, interval_plot, nice_axis
from proctor.scorer.report.document import Report

_CS_DIGITS = 3


class DecidingNumber(NamedTuple):
    """One of the three numbers in the first screen."""

    name: str
    meaning: str
    value: str
    unit: str
    interval: str
    status: str
    side: Side
    plot: Markup


def deciding_numbers(report: Report) -> tuple[DecidingNumber, ...]:
    """Score inflation, Contamination Score and p-value, each against the suite's limits."""
    found = report.evidence.perturbation
    if found is None or found.not_above_chance is not None:
        return ()
    return _inflation(report, found), _contamination_score(report, found), _p_value(report, found)


def _point_limits(report: Report) -> tuple[float, float]:
    return (
        report.suite.scoring.max_allowed_contaminated_items_pct,
        report.suite.governance.block_deployment_above_contaminated_pct,
    )


def limits_of(allowed: float, blocked: float, words: str) -> list[Limit]:
    """The limits of approval and block, or the one that is both, named by `words` with the number."""
    if allowed == blocked:
        return [Limit(blocked, f"limit {words.format(blocked)}", "block")]
    return [
        Limit(allowed, f"approve up to {words.format(allowed)}", "allowed"),
        Limit(blocked, f"block past {words.format(blocked)}", "block"),
    ]


def _status(side: Side, allowed: str, blocked: str, estimate: Estimate) -> str:
    limits = f"the limit of {blocked}" if allowed == blocked else f"the limits of {allowed} and {blocked}"
    match side:
        case Side.WITHIN:
            return f"Whole interval within the limit of {allowed}"
        case Side.PAST:
            return f"Whole interval past the limit of {blocked}"
        case Side.ACROSS if estimate.low is None or estimate.high is None:
            return f"Interval without a bound: cannot be held against {limits}"
        case Side.ACROSS if allowed != blocked:
            return f"Neither within {allowed} nor wholly past {blocked}"
        case Side.ACROSS:
            return f"Interval crosses the limit of {blocked}"
        case _:
            return "Undefined for these answers"


def _inflation(report: Report, found: PerturbationEvidence) -> DecidingNumber:
    held, (allowed, blocked) = Held.of(found), _point_limits(report)
    estimate = held.inflation
    side = phrases.side(estimate, allowed=allowed, blocked=blocked)
    reading = _interval_words(estimate, digits=1, unit="points", limits=(allowed, blocked))
    return DecidingNumber(
        name="Score inflation",
        meaning="Accuracy on the canonical (published) wording minus accuracy on rewordings"
        + (", beyond that of control items, which cannot have leaked." if held.beyond else "."),
        value="–" if estimate.value is None else rounded(estimate.value, 1, apart_from=(allowed, blocked)),
        unit="points",
        interval=reading,
        status=_status(side, points(allowed), points(blocked), estimate),
        side=side,
        plot=interval_plot(
            "gauge-inflation",
            title="Score inflation against its limit",
            description=reading,
            rows=[Interval("", estimate.value, estimate.low, estimate.high, "")],
            axis=nice_axis([0, 2 * blocked, *_known(estimate)]),
            limits=limits_of(allowed, blocked, "{:g}"),
            compact=True,
        ),
    )


def _contamination_score(report: Report, found: PerturbationEvidence) -> DecidingNumber:
    held, limit = Held.of(found), report.suite.scoring.contamination_threshold
    estimate = held.score
    side = phrases.side(estimate, allowed=limit, blocked=limit)
    reading = _interval_words(estimate, digits=_CS_DIGITS, limits=(limit,))
    return DecidingNumber(
        name="Contamination Score",
        meaning="The share of the canonical score that is lost on rewordings"
        + (", beyond that of control items." if held.beyond else "."),
        value="–" if estimate.value is None else rounded(estimate.value, _CS_DIGITS, apart_from=(limit,)),
        unit="",
        interval=reading,
        status=_status(side, f"{limit:g}", f"{limit:g}", estimate),
        side=side,
        plot=interval_plot(
            "gauge-score",
            title="Contamination Score against its limit",
            description=reading,
            rows=[Interval("", estimate.value, estimate.low, estimate.high, "", "diamond")],
            axis=nice_axis([0, 2 * limit, *_known(estimate)]),
            limits=[Limit(limit, "", "block")],
            compact=True,
        ),
    )


def _p_value(report: Report, found: PerturbationEvidence) -> DecidingNumber:
    alpha = report.suite.scoring.significance_alpha
    p = Held.of(found).p_value
    below = p < alpha
    # A small p with a harmless effect is no alarm, so red is for a model that is blocked.
    alarm = Side.PAST if report.decision.outcome is DecisionOutcome.BLOCK else Side.ACROSS
    value = p_value(p, apart_from=(alpha,))
    rarity, limit = (-math.log10(max(one, phrases.SMALLEST_P)) for one in (p, alpha))
    return DecidingNumber(
        name="p-value",
        meaning="How often chance alone would give a difference this large if wording made none.",
        value=value,
        unit="",
        interval=f"Blocking needs it below {alpha:g} as well",
        status=f"Below {alpha:g}: chance hardly explains it" if below else f"Not below {alpha:g}: can be chance",
        side=alarm if below else Side.WITHIN,
        plot=interval_plot(
            "gauge-p",
            title="p-value against its limit, rarer to the right",
            description=f"{value}; the limit is {alpha:g}",
            rows=[Interval("", rarity, rarity, rarity, "", "square")],
            axis=nice_axis([0, -math.log10(phrases.SMALLEST_P)]),
            limits=[Limit(limit, "", "block")],
            compact=True,
        ),
    )


def _known(estimate: Estimate) -> list[float]:
    return [value for value in (estimate.value, estimate.low, estimate.high) if value is not None]


def _interval_words(estimate: Estimate, *, digits: int, unit: str = "", limits: Sequence[float] = ()) -> str:
    words = phrases.interval(estimate, digits=digits, unit=unit, apart_from=limits)
    return f"{phrases.level(estimate)} interval {words}"


def forest_plots(report: Report) -> tuple[Markup, ...]:
    """Score inflation and Contamination Score, each on an axis of its own with the suite's limits drawn."""
    found = report.evidence.perturbation
    if found is None:
        return ()
    (allowed, blocked), scoring = _point_limits(report), report.suite.scoring
    threshold, review = scoring.contamination_threshold, report.suite.governance.review_required_above_cs
    held = Held.of(found)
    inflation, score = held.inflation, held.score
    inflation_reading = (
        f"{points(inflation.value, apart_from=(allowed, blocked))}  "
        f"({phrases.interval(inflation, digits=1, apart_from=(allowed, blocked))})"
    )
    score_value = "undefined" if score.value is None else rounded(score.value, _CS_DIGITS, apart_from=(threshold,))
    score_reading = f"{score_value}  ({phrases.interval(score, digits=_CS_DIGITS, apart_from=(threshold,))})"
    score_limits = [Limit(threshold, f"limit {threshold:g}", "block")]
    if review != threshold:
        score_limits.append(Limit(review, f"review past {review:g}", "review"))
    score_axis = nice_axis([0, 1.25 * max(review, threshold), *_known(score)])
    return (
        interval_plot(
            "forest-inflation",
            title="Score inflation with its interval and the suite's limits",
            description=inflation_reading,
            rows=[Interval("Score inflation, points", *_triple(inflation), inflation_reading)],
            axis=nice_axis([0, 2 * blocked, *_known(inflation)]),
            limits=limits_of(allowed, blocked, "{:g} points"),
        ),
        interval_plot(
            "forest-score",
            title="Contamination Score with its interval and the suite's limits",
            description=score_reading,
            rows=[Interval("Contamination Score", *_triple(score), score_reading, "diamond")],
            axis=score_axis,
            limits=score_limits,
            tick_digits=tick_digits(score_axis.ticks),
        ),
    )


def _triple(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def tick_digits(ticks: Sequence[float]) -> int:
    """Decimals that tell an axis' ticks apart."""
    return max((len(f"{tick:g}".partition(".")[2]) for tick in ticks if "e" not in f"{tick:g}"), default=0)


def leaked_share(report: Report) -> str:
    """The estimated share of leaked items, a number out of 100 with its interval; empty where it was not estimated."""
    found = report.evidence.perturbation
    share = found.leaked_share if found is not None else None
    if share is None or share.value is None:
        return ""
    return f"{rounded(share.value, 1)} ({_interval_words(share, digits=1)})"
