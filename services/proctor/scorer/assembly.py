"""Laying out a finished audit as its report: details of the most suspected items, counts, limits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence, ItemEvidence
from proctor.domain.item import Item, Variant
from proctor.domain.manifest import AuditManifest, ItemSet, VariantSet
from proctor.domain.trial import Arm, Completion, Grade, Outcome, Trial
from proctor.scorer.limitations import limitations
from proctor.scorer.report import (
    MAX_ITEMS,
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
from proctor.scorer.rewordings import VariantsByItem, variants_by_item, variants_summary

_NOT_ASKED = Excerpt(text="")


class GradedTrial(NamedTuple):
    """A planned trial with what came of it. No completion: its shard was given up. No grade: an error row."""

    trial: Trial
    completion: Completion | None
    grade: Grade | None


def assemble(
    manifest: AuditManifest,
    items: ItemSet,
    variants: VariantSet,
    answers: Iterable[GradedTrial],
    evidence: Evidence,
    decision: Decision,
    *,
    versions: Mapping[str, str],
) -> Report:
    """Build the report of an audit.

    Args:
        answers: every planned trial of the answer stage, in any order, gone through once; a trial that is given
            twice counts once, the first time.
        versions: name to version of what computed the result; nothing that differs between two machines' runs
            of one release unless the result may differ with it.
    """
    ranked = evidence.perturbation.items if evidence.perturbation is not None else ()
    suspects = [item for item in ranked if item.suspicion > 0.0][:MAX_ITEMS]
    tally = _tally(answers, {item.item_id for item in suspects})
    by_item = variants_by_item(variants.variants)
    known = {item.item_id: item for item in items.items}
    details = tuple(
        _detail(rank, found, known[found.item_id], by_item.get(found.item_id, ()), tally.kept)
        for rank, found in enumerate(suspects, start=1)
        if found.item_id in known
    )
    left_out = _left_out(items.items, {item.item_id for item in ranked}, by_item, variants, tally)
    suite = manifest.suite
    return Report(
        suite=suite,
        card=manifest.card,
        fingerprint=manifest.card.fingerprint,
        protocol_digest=manifest.card.protocol_digest,
        subject=Subject(
            model_id=suite.model.model_id,
            digest=manifest.model_digest,
            verified=manifest.model_digest_verified,
            server=manifest.server,
        ),
        decision=decision,
        evidence=evidence,
        items=details,
        variants=variants_summary(suite.perturbation.perturbation_strategy, items.items, variants, by_item, left_out),
        counts=_counts(len(items.items), len(ranked), tally),
        limits=limitations(
            manifest,
            evidence,
            n_selected=len(items.items),
            n_left_out=len(left_out),
            n_unanswered=tally.by_state["failed"] + tally.by_state["dead_lettered"],
        ),
        seeds={
            "sampling": suite.dataset.sampling_seed,
            "perturbation": suite.perturbation.seed,
            "decoding": suite.decoding.seed,
        },
        versions=dict(versions),
    )


class _Tally(NamedTuple):
    by_state: Counter[str]
    truncated: int
    canonical_graded: set[str]
    perturbed_graded: set[str]
    kept: dict[tuple[str, str | None], GradedTrial]
    """Direct answers of the items that get details, by item and variant (None: canonical), first replicate only."""


def _tally(answers: Iterable[GradedTrial], keep: set[str]) -> _Tally:
    tally = _Tally(Counter(), 0, set(), set(), {})
    truncated, seen = 0, set[str]()
    for row in answers:
        trial_id = row.trial.trial_id
        if trial_id in seen:
            continue
        seen.add(trial_id)
        tally.by_state[_state(row)] += 1
        truncated += row.completion is not None and row.completion.finish_reason == "length"
        if not row.trial.arm.is_direct:
            continue
        if row.grade is not None:
            arm = tally.canonical_graded if row.trial.arm is Arm.CANONICAL else tally.perturbed_graded
            arm.add(row.trial.item_id)
        if row.trial.item_id in keep:
            key = (row.trial.item_id, row.trial.variant_id)
            held = tally.kept.get(key)
            if held is None or row.trial.replicate < held.trial.replicate:
                tally.kept[key] = row
    return tally._replace(truncated=truncated)


def _state(row: GradedTrial) -> str:
    if row.grade is not None:
        return row.grade.outcome.value
    return "dead_lettered" if row.completion is None else "failed"


def _counts(n_selected: int, n_audited: int, tally: _Tally) -> Counts:
    states = tally.by_state
    graded = sum(states[outcome.value] for outcome in Outcome)
    return Counts(
        items_selected=n_selected,
        items_audited=n_audited,
        trials=states.total(),
        graded=graded,
        correct=states[Outcome.CORRECT.value],
        incorrect=states[Outcome.INCORRECT.value],
        invalid=states[Outcome.INVALID.value],
        truncated=tally.truncated,
        failed=states["failed"],
        dead_lettered=states["dead_lettered"],
    )


def _detail(
    rank: int,
    found: ItemEvidence,
    item: Item,
    variants: Sequence[Variant],
    kept: Mapping[tuple[str, str | None], GradedTrial],
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
        canonical=_answer(kept.get((item.item_id, None))),
        rewordings=tuple(
            RewordingDetail(
                **dict(_answer(kept.get((item.item_id, variant.variant_id)))),
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


def _left_out(
    items: Sequence[Item],
    audited: set[str],
    by_item: VariantsByItem,
    variants: VariantSet,
    tally: _Tally,
) -> tuple[LeftOut, ...]:
    reasons: dict[str, set[str]] = defaultdict(set)
    for rejection in variants.rejections:
        reasons[rejection.item_id].add(rejection.reason)

    def reason(item_id: str) -> str:
        if not by_item.get(item_id):
            why = ", ".join(sorted(reasons[item_id]))
            return f"no rewording was admitted ({why})" if why else "no rewording was made"
        if item_id not in tally.canonical_graded:
            return "the canonical question got no answer"
        if item_id not in tally.perturbed_graded:
            return "no reworded question got an answer"
        return "left out of the comparison"

    return tuple(
        LeftOut(item_id=item.item_id, reason=reason(item.item_id)) for item in items if item.item_id not in audited
    )
