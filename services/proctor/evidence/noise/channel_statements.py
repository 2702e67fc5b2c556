"""What the noise channel of an audit says, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from proctor.domain.evidence import ClusterCount, RouterComparison, RouterLeaks, Verdict
from proctor.domain.routing import RouterKind
from proctor.domain.suite import ScoringSection
from proctor.evidence.noise.comparing import Comparisons, significant_counts
from proctor.evidence.written_numbers import counted, p_text, percent, points


def reasons_for(
    verdict: Verdict, comparisons: Comparisons, leaks: Sequence[RouterLeaks], scoring: ScoringSection
) -> tuple[str, ...]:
    """Why the verdict of a channel that can conclude is what it is; then what the routers gave away."""
    alpha = scoring.significance_alpha
    gains, unexplained = significant_counts(comparisons.own, alpha), comparisons.unexplained_gains(alpha)
    best = max(comparisons.own, key=lambda one: one.gain.value or 0.0)
    sentences = [
        f"The largest gain over one clean router is {_gain(best)} with {counted(best.router_count, 'noisy router')} "
        f"({best.improve:,} answers turned right, {best.degrade:,} wrong, of {counted(best.n, 'item')}; "
        f"{p_text(best.holm_p)} after Holm's correction over {counted(len(comparisons.own), 'router count')})."
    ]
    if verdict is Verdict.CONTAMINATED:
        sentences.append(
            f"With {_counts(unexplained)} the gain is significant in every comparison that was made: neither the "
            "number of calls nor an answer that a router gave away explains it."
        )
    elif gains:
        sentences += _explanations(gains, comparisons, alpha)
    else:
        limit = points(scoring.max_allowed_contaminated_items_pct)
        within = "are all within" if verdict is Verdict.CLEAN else "are not all known to be within"
        sentences.append(f"No gain is significant, and the upper bounds of the gains {within} {limit}.")
    return (*sentences, *_leaks(leaks))


def over_clusters(clusters: ClusterCount | None) -> tuple[str, ...]:
    """What the comparisons are over where items come in clusters; else nothing."""
    if clusters is None:
        return ()
    return (
        f"The items come in {counted(clusters.n_clusters, 'cluster')}, and the gains' p-values and intervals are over "
        "these; those of the table of router settings take items as independent.",
    )


def _explanations(gains: set[int], comparisons: Comparisons, alpha: float) -> list[str]:
    sentences = []
    if comparisons.matched is not None and not gains & significant_counts(comparisons.matched, alpha):
        sentences.append(
            f"The gain with {_counts(gains)} is not significant against as many clean routers: more calls may be what "
            "helped, and not the noise."
        )
    if not gains & significant_counts(comparisons.without_leaks, alpha):
        sentences.append(
            f"The gain with {_counts(gains)} is not significant on the items of which no noisy message gives the "
            "answer away: the routers may have answered, and not the worker."
        )
    return sentences or [
        f"The gains with {_counts(gains)} do not hold in every comparison at one and the same number of routers."
    ]


def _leaks(leaks: Sequence[RouterLeaks]) -> Iterable[str]:
    for kind in RouterKind:
        arms = [arm for arm in leaks if arm.arm.startswith(kind)]
        if not arms:
            continue
        most = max(arms, key=lambda arm: arm.read_off.value or 0.0)
        last = arms[-1]
        yield (
            f"Answers given away: {last.n_stating:,} of {counted(last.n_messages, 'message')} in arm {last.arm} state "
            f"an option as the answer, {last.n_right:,} of them the right one. Read off {kind} messages alone, without "
            f"any model, at most {percent(most.read_off.value or 0.0)} of the answers are right (arm {most.arm})."
        )


def _gain(one: RouterComparison) -> str:
    gain = one.gain
    assert gain.value is not None
    assert gain.low is not None
    assert gain.high is not None
    level = f"{100 * gain.level:g} % interval"
    return f"{100 * gain.value:+.1f} points ({level} {100 * gain.low:.1f} to {100 * gain.high:.1f})"


def _counts(counts: set[int]) -> str:
    return f"r = {', '.join(map(str, sorted(counts)))}"
