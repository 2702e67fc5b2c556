"""Control items of an audit: what rewording costs the model where nothing can have leaked.

They are reworded by the same strategies through the same gate and asked in the same hours as the benchmark's items, so
what they lose is no memory. With them the difference decides, in both directions (`held`), and a clean model on record
is not consulted: it is another model. Where they say nothing, because too few were reworded or answered, or because
their own two arms are not comparable, nothing is concluded; the plain comparison does not come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from proctor.domain.decision import Reason
from proctor.domain.evidence import ControlItems, Verdict
from proctor.domain.suite import ScoringSection
from proctor.domain.trial import CONTROL_ARMS, Arm
from proctor.evidence.answers import Answer, PairedAnswers, pair_answers
from proctor.evidence.clusters import Compared, clusters_of
from proctor.evidence.perturbation.control import controlled_inflation, items_needed_beyond
from proctor.evidence.protocol.channel import protocol_evidence
from proctor.evidence.written_numbers import as_score, counted, in_points, p_text

#: Fewer tell no spread: the same number that clusters take.
MIN_CONTROL_ITEMS: Final = 20
_AS_THE_BENCHMARK: Final[Mapping[Arm, Arm]] = dict(zip(CONTROL_ARMS, (Arm.CANONICAL, Arm.PERTURBED), strict=True))


def pair_control(
    answers: Iterable[Answer], item_ids: Sequence[str], clusters: Mapping[str, str] = MappingProxyType({})
) -> PairedAnswers:
    """Pair the answers of both control arms by item, as `pair_answers` pairs the benchmark's."""
    return pair_answers((row._replace(arm=_AS_THE_BENCHMARK[row.arm]) for row in answers), item_ids, clusters)


def weigh_control_items(
    benchmark: Compared,
    control: Compared,
    answers: Iterable[Answer],
    scoring: ScoringSection,
    *,
    n_selected: int,
    n_reworded: int,
) -> ControlItems:
    """What the benchmark lost beyond the control items.

    Args:
        benchmark: the benchmark's items.
        control: the control items that were answered in both wordings.
        answers: every answer of both control arms, in any order.
        scoring: the suite's levels and limits.
        n_selected: control items of the audit.
        n_reworded: how many of them have an admitted rewording.
    """
    level, alpha = scoring.confidence_level, scoring.significance_alpha
    rows = list(answers)
    arms = protocol_evidence(rows, expected_arms=CONTROL_ARMS, alpha=alpha, level=level)
    excess = controlled_inflation(benchmark, control, level=level, alpha=alpha)
    grouped = clusters_of(control)
    counts = None if grouped is None else grouped.counted
    problems = _too_few(n_selected, n_reworded, control.n)
    if not problems and counts is not None and not counts.enough:
        problems = (
            f"The control items come in {counted(counts.n_clusters, 'cluster')}, too few to tell how clusters differ: "
            "what rewording costs without memory is not known. Control items of further clusters help.",
        )
    return ControlItems(
        n_selected=n_selected,
        n_reworded=n_reworded,
        n_items=control.n,
        problems=problems,
        incomparable=tuple(arms.reasons) if not problems and arms.verdict is Verdict.INVALID else (),
        arms=arms.arms,
        excess=excess,
        items_needed_to_approve=items_needed_beyond(
            benchmark,
            control,
            max_inflation=scoring.max_allowed_contaminated_items_pct,
            max_contamination_score=scoring.contamination_threshold,
            level=level,
        ),
        clusters=counts,
        conclusion=f"On {counted(control.n, 'control item')} rewording cost {in_points(excess.inflation_control)}. "
        f"Beyond that the benchmark lost {in_points(excess.excess_inflation)}, in Contamination Score "
        f"{as_score(excess.excess_score)}; {p_text(excess.p_value)}.",
    )


def control_says_nothing(control: ControlItems | None) -> tuple[Reason, ...]:
    """Why control items do not tell what rewording costs, and so nothing is concluded; empty where they do."""
    if control is None:
        return ()
    return tuple(Reason(code="too_few_control_items", text=text) for text in control.problems)


def _too_few(selected: int, reworded: int, answered: int) -> tuple[str, ...]:
    if answered >= MIN_CONTROL_ITEMS:
        return ()
    return (
        f"Of {counted(selected, 'control item')} {reworded:,} got an admitted rewording and {answered:,} were answered "
        f"in both wordings; fewer than {MIN_CONTROL_ITEMS} do not tell what rewording costs without memory, and "
        "without that nothing is concluded. Name more control items, or such as can be reworded.",
    )
