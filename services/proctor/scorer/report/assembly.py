"""Laying out a finished audit as its report: details of the most suspected items, counts, limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence, ItemEvidence
from proctor.domain.item import Item, Variant
from proctor.domain.looks import SequentialRecord
from proctor.domain.manifest import AuditManifest, VariantSet
from proctor.domain.trial import Arm, Outcome
from proctor.domain.weights import Weights
from proctor.scorer.grading.rows import Rows, Tally
from proctor.scorer.report.answering import check_limitations
from proctor.scorer.report.document import (
    MAX_ITEMS,
    MAX_ITEMS_LISTED,
    MAX_QUESTION_CHARACTERS,
    MAX_REWORDINGS_PER_ITEM,
    AnswerDetail,
    Counts,
    Excerpt,
    ItemDetail,
    LeftOut,
    Report,
    RewordingDetail,
    Subject,
    excerpt,
)
from proctor.scorer.report.limitations import limitations
from proctor.scorer.report.rewordings import Rewordings, gather_rewordings, variants_summary
from proctor.scorer.report.shown import GradedTrial, ShownAnswers

_NOT_ASKED = Excerpt(text="")


def suspects(evidence: Evidence) -> tuple[ItemEvidence, ...]:
    """The items that the report shows in full, the most suspected first: at most MAX_ITEMS."""
    return evidence.perturbation.suspected[:MAX_ITEMS] if evidence.perturbation is not None else ()


class Asked(NamedTuple):
    """What was asked of an audit's model."""

    items: Sequence[Item]
    """In the order in which they were drawn; gone through once."""
    made: VariantSet
    """What is known of the variants; they themselves are not looked at."""
    variants: Iterable[Variant]
    """In any order; gone through once."""


def assemble(
    manifest: AuditManifest,
    asked: Asked,
    rows: Rows,
    shown: ShownAnswers,
    evidence: Evidence,
    decision: Decision,
    *,
    versions: Mapping[str, str],
    sequential: SequentialRecord | None = None,
) -> Report:
    """Build the report of an audit.

    Args:
        rows: every planned trial of the answer stage.
        shown: the direct answers to the items that are `suspects` of the evidence.
        versions: name to version of what computed the result; nothing that differs between two machines' runs
            of one release unless the result may differ with it.
        sequential: its looks, where its design has such.
    """
    found = {item.item_id: (rank, item) for rank, item in enumerate(suspects(evidence), start=1)}
    listed = {item.item_id for item in asked.items[:MAX_ITEMS_LISTED]}
    rewordings = gather_rewordings(asked.variants, {*found, *listed})
    audited = {item.item_id for item in evidence.perturbation.items} if evidence.perturbation is not None else set()
    reason_of = _reasons(asked.made, rewordings, rows)
    details, left_out = list[ItemDetail](), list[LeftOut]()
    for item in asked.items:
        if item.item_id in found:
            details.append(_detail(*found[item.item_id], item, rewordings.shown.get(item.item_id, ()), shown))
        if item.item_id not in audited:
            left_out.append(LeftOut(item_id=item.item_id, reason=reason_of(item.item_id)))
    counts = _counts(len(asked.items), len(audited), rows.tally())
    suite = manifest.suite
    return Report(
        suite=suite,
        card=manifest.card,
        fingerprint=manifest.card.fingerprint,
        protocol_digest=manifest.card.protocol_digest,
        subject=Subject(
            model_id=suite.model.model_id,
            digest=manifest.model_digest,
            verified=manifest.weights_known is Weights.PROVEN,
            server=manifest.server,
            weights=manifest.weights_known,
        ),
        decision=decision,
        evidence=evidence,
        items=tuple(sorted(details, key=lambda detail: detail.rank)),
        variants=variants_summary(
            suite.perturbation.perturbation_strategy, asked.items, asked.made, rewordings, tuple(left_out)
        ),
        counts=counts,
        limits=(
            # That an approval rests on wordings alone stands first.
            *limitations(
                manifest,
                evidence,
                decision,
                n_selected=counts.items_selected,
                n_left_out=len(left_out),
                n_unanswered=counts.failed + counts.dead_lettered,
            ),
            *check_limitations(asked.made.check),
        ),
        seeds={
            "sampling": suite.dataset.sampling_seed,
            "perturbation": suite.perturbation.seed,
            "decoding": suite.decoding.seed,
        },
        sequential=sequential,
        versions=dict(versions),
    )


def _counts(n_selected: int, n_audited: int, tally: Tally) -> Counts:
    graded = sum(tally.outcomes.values())
    return Counts(
        items_selected=n_selected,
        items_audited=n_audited,
        trials=graded + tally.failed + tally.given_up,
        graded=graded,
        correct=tally.outcomes[Outcome.CORRECT],
        incorrect=tally.outcomes[Outcome.INCORRECT],
        invalid=tally.outcomes[Outcome.INVALID],
        truncated=tally.truncated,
        failed=tally.failed,
        dead_lettered=tally.given_up,
    )


def _detail(
    rank: int,
    found: ItemEvidence,
    item: Item,
    variants: Sequence[Variant],
    shown: ShownAnswers,
) -> ItemDetail:
    return ItemDetail(
        rank=rank,
        item_id=item.item_id,
        question=excerpt(item.question, max_characters=MAX_QUESTION_CHARACTERS),
        dimension=item.dimension,
        suspicion=found.suspicion,
        flagged=found.flagged,
        canonical_correct=found.canonical_correct,
        perturbed_correct=found.perturbed_correct,
        perturbed_total=found.perturbed_total,
        target=excerpt(item.target),
        canonical=_answer(shown.get((item.item_id, None))),
        rewordings=tuple(
            RewordingDetail(
                **dict(_answer(shown.get((item.item_id, variant.variant_id)))),
                variant_id=variant.variant_id,
                strategy=variant.strategy,
                level=variant.level,
                measurements=variant.measurements,
                labels=variant.labels,
            )
            for variant in variants[:MAX_REWORDINGS_PER_ITEM]
        ),
        rewordings_not_shown=max(0, len(variants) - MAX_REWORDINGS_PER_ITEM),
    )


def _answer(row: GradedTrial | None) -> AnswerDetail:
    if row is None:
        return AnswerDetail(
            prompt=_NOT_ASKED, answer=None, finish_reason="unknown", outcome=None, extracted=None, extractor=""
        )
    completion, grade = row.completion, row.grade
    answered = completion is not None and completion.error is None
    return AnswerDetail(
        prompt=excerpt(row.trial.prompt),
        answer=excerpt(completion.text) if completion is not None and answered else None,
        finish_reason=completion.finish_reason if completion is not None and answered else "unknown",
        outcome=grade.outcome if grade is not None else None,
        extracted=excerpt(grade.extracted) if grade is not None and grade.extracted is not None else None,
        extractor=grade.extractor if grade is not None else "",
    )


def _reasons(made: VariantSet, rewordings: Rewordings, rows: Rows) -> Callable[[str], str]:
    """Item id → why it took no part in the comparison."""
    rejected: dict[str, set[str]] = defaultdict(set)
    for rejection in made.rejections:
        rejected[rejection.item_id].add(rejection.reason)
    canonical, perturbed = rows.graded_items(Arm.CANONICAL), rows.graded_items(Arm.PERTURBED)

    def reason(item_id: str) -> str:
        if item_id not in rewordings.item_ids:
            why = ", ".join(sorted(rejected.get(item_id, ())))
            return f"no rewording was admitted ({why})" if why else "no rewording was made"
        if item_id not in canonical:
            return "the canonical question got no answer"
        if item_id not in perturbed:
            return "no reworded question got an answer"
        return "left out of the comparison"

    return reason
