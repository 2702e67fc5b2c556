"""The noise channel's section of the report's page: a row for each number of routers. Pure."""

from __future__ import annotations

from typing import Final

from proctor.domain.channel_results import Section
from proctor.domain.evidence import NoiseEvidence, RouterComparison
from proctor.domain.routing import Condition, RouterKind
from proctor.scorer.page import phrases

NOT_ASKED: Final = "–"
_COLUMNS: Final = (
    "Routers", "Clean", "Noisy", "Gain, points", "To right", "To wrong", "p", "p, matched", "Given away", "Read off",
)  # fmt: skip
_CAPTION: Final = (
    "Gain, answers that turned to right or wrong, and p: noisy routers against one clean router. p, matched: against "
    "as many clean routers. Both corrected over the numbers of routers (Holm). Given away: items of which a noisy "
    "message states the right answer. Read off: accuracy of the answer that most noisy messages state, without any "
    "model."
)


def noise_section(noise: NoiseEvidence) -> Section | None:
    """The section; None where the channel measured nothing."""
    rows = _rows(noise)
    if not rows:
        return None
    left_out = phrases.counted(noise.n_left_out, "item is", "items are")
    missing = f" {left_out} left out, because a message or an answer is missing." if noise.n_left_out else ""
    return Section(
        title="Clean and noisy routers",
        introduction=f"A worker answers {phrases.counted(noise.n_items, 'item', 'items')} from nothing but what "
        "routers wrote of them. A clean router passes an item on as fully as it can; a noisy one deletes, rewrites and "
        "adds noise. Noise should not help a model that has not seen the items.",
        label="Answers by number of routers",
        columns=_COLUMNS,
        rows=rows,
        caption=_CAPTION + missing,
    )


def _rows(noise: NoiseEvidence) -> tuple[tuple[str, ...], ...]:
    """The rows, by rising number; none where the channel measured nothing."""
    accuracies = {arm.arm: arm.accuracy.value for arm in noise.arms}
    matched = {one.router_count: one for one in noise.matched}
    leaks = {arm.arm: arm for arm in noise.leaks}
    rows = []
    for one in noise.own_baseline:
        clean, noisy = (Condition(kind, one.router_count).arm for kind in (RouterKind.CLEAN, RouterKind.NOISY))
        gain = phrases.rounded(100 * (one.gain.value or 0.0), 1)
        rows.append(
            (
                str(one.router_count),
                phrases.percent(accuracies[clean]) if clean in accuracies else NOT_ASKED,
                phrases.percent(one.noisy_accuracy),
                f"{gain} ({phrases.interval(one.gain, digits=1, scale=100)})",
                phrases.count(one.improve),
                phrases.count(one.degrade),
                phrases.p_value(one.holm_p),
                _matched_p(matched.get(one.router_count)),
                phrases.count(leaks[noisy].items_given_away) if noisy in leaks else NOT_ASKED,
                phrases.percent(leaks[noisy].read_off.value) if noisy in leaks else NOT_ASKED,
            )
        )
    return tuple(rows)


def _matched_p(one: RouterComparison | None) -> str:
    return NOT_ASKED if one is None else phrases.p_value(one.holm_p)
