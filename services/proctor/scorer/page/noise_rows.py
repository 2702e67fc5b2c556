"""The noise channel as rows of the report's page: one for each number of routers."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.evidence import NoiseEvidence, RouterComparison
from proctor.domain.routing import Condition, RouterKind
from proctor.scorer.page import phrases

NOT_ASKED = "–"


class NoiseRow(NamedTuple):
    """One number of routers, in words."""

    routers: int
    clean: str
    """Accuracy behind as many clean routers."""
    noisy: str
    gain: str
    """Over one clean router, in points, with its interval."""
    improve: int
    degrade: int
    p_value: str
    matched_p: str
    """Against as many clean routers."""
    given_away: str
    """Items of which a noisy message states the right answer."""
    read_off: str
    """Accuracy of reading the answer off the noisy messages alone."""


def noise_rows(noise: NoiseEvidence | None) -> tuple[NoiseRow, ...]:
    """The rows, by rising number; none where the channel measured nothing."""
    if noise is None:
        return ()
    accuracies = {arm.arm: arm.accuracy.value for arm in noise.arms}
    matched = {one.router_count: one for one in noise.matched}
    leaks = {arm.arm: arm for arm in noise.leaks}
    rows = []
    for one in noise.own_baseline:
        clean, noisy = (Condition(kind, one.router_count).arm for kind in (RouterKind.CLEAN, RouterKind.NOISY))
        gain = phrases.rounded(100 * (one.gain.value or 0.0), 1)
        rows.append(
            NoiseRow(
                routers=one.router_count,
                clean=phrases.percent(accuracies[clean]) if clean in accuracies else NOT_ASKED,
                noisy=phrases.percent(one.noisy_accuracy),
                gain=f"{gain} ({phrases.interval(one.gain, digits=1, scale=100)})",
                improve=one.improve,
                degrade=one.degrade,
                p_value=phrases.p_value(one.holm_p),
                matched_p=_matched_p(matched.get(one.router_count)),
                given_away=phrases.count(leaks[noisy].items_given_away) if noisy in leaks else NOT_ASKED,
                read_off=phrases.percent(leaks[noisy].read_off.value) if noisy in leaks else NOT_ASKED,
            )
        )
    return tuple(rows)


def _matched_p(one: RouterComparison | None) -> str:
    return NOT_ASKED if one is None else phrases.p_value(one.holm_p)
