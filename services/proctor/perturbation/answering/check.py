"""Leaving out of an audit the rewordings that its answering check holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from proctor.domain.answering import AnsweringCheckSection
from proctor.domain.answering_check import (
    MAX_ANSWERS_LISTED,
    MAX_HELD_LISTED,
    MAX_HELD_QUESTION_CHARACTERS,
    AnswerCount,
    AnsweringCheck,
    HeldVariant,
    SolverAnswers,
)
from proctor.domain.errors import BadInputError
from proctor.domain.item import Rejection, Variant
from proctor.domain.manifest import RewriteSet, VariantChunk
from proctor.domain.messages import VariantsToCheck
from proctor.domain.suite import PerturbationSection
from proctor.evidence.answering.holding import Finding, Held, SolverPair, enough, findings
from proctor.evidence.answering.sameness import Counts, TwoWordings
from proctor.perturbation.answering.solvers import Solver, Targets, read_solver, targets_of
from proctor.perturbation.library.store import VariantLibrary
from proctor.runtime.artifacts.calls import Call, calls_of
from proctor.runtime.artifacts.chunks import StoredItems, StoredVariants, put_variant_chunks
from proctor.runtime.artifacts.store import ArtifactStore, get_model


def check_variants(
    artifacts: ArtifactStore,
    items: str,
    asked: VariantsToCheck,
    section: PerturbationSection,
    library: VariantLibrary,
    *,
    min_yield: float | None = None,
) -> str:
    """Leave out of the variants those that the check holds, and note them in the library.

    Args:
        artifacts: where items, variants and answers are.
        items: digest of the ItemIndex.
        asked: the variants, and what the solvers said, of other items too.
        section: the suite's, with its answering check.
        library: where what is held is noted, for whoever reads it.
        min_yield: instead of the section's; with 0 no item need keep a variant.

    Returns:
        Digest of the VariantIndex of the others. The same answers give the same bytes.

    Raises:
        BadInputError: when fewer than `min_yield` of the items keep a variant.
        StoreError: when something is missing or damaged.
    """
    check = section.answering_check
    assert check is not None
    drawn = StoredItems(artifacts, items)
    targets = targets_of(drawn, asked.extractor)
    solvers = [
        read_solver(
            (call for call in calls_of(artifacts, get_model(artifacts, said, RewriteSet)) if _is_of(call, targets)),
            solver,
            check,
            targets,
        )
        for solver, said in zip(check.solvers, asked.answers, strict=True)
    ]
    proposed = StoredVariants(artifacts, asked.variants)
    found = weigh(proposed, solvers, check)
    listed = [
        _held(variant, word, solvers, check)
        for variant, word in zip(proposed, found, strict=True)
        if word.finding in (Finding.DISAGREE, Finding.NOT_CHECKED)
    ]
    library.hold(listed, check.rule_digest)
    left_out = {(one.item_id, one.variant_id): one for one in listed if not one.kept}
    made = proposed.summary()
    summary = made.model_copy(
        update={
            "rejections": (*made.rejections, *(_rejection(one) for one in left_out.values())),
            "check": AnsweringCheck(
                solvers=tuple(solver.facts for solver in solvers),
                samples=check.samples,
                alpha=check.alpha,
                findings=dict(sorted(Counter(word.finding.value for word in found).items())),
                held=len(left_out),
                listed=tuple(listed[:MAX_HELD_LISTED]),
                not_listed=max(0, len(listed) - MAX_HELD_LISTED),
            ),
        }
    )
    keeping = {one.item_id for one in proposed if (one.item_id, one.variant_id) not in left_out}
    _check_yield(keeping, len(drawn), section.min_yield if min_yield is None else min_yield)
    chunks = (
        [
            one
            for one in get_model(artifacts, chunk, VariantChunk).variants
            if (one.item_id, one.variant_id) not in left_out
        ]
        for chunk in proposed.index.chunks
    )
    return put_variant_chunks(artifacts, chunks, summary)


def weigh(variants: Iterable[Variant], solvers: Sequence[Solver], check: AnsweringCheckSection) -> list[Held]:
    """What the check finds of each rewording, in their order: all of an audit's, which are one family."""
    heard = [solver for solver in solvers if solver.facts.heard]
    pairs, unheard = list[list[SolverPair]](), list[bool]()
    for variant in variants:
        pairs.append(_pairs(variant, heard, check.samples))
        # Where nobody is heard who could have told, nothing is missing.
        unheard.append(not heard and bool(_pairs(variant, solvers, check.samples)))
    found = findings(pairs, check.alpha)
    return [
        Held(Finding.NO_SOLVER_KNOWS, None) if nobody else word for word, nobody in zip(found, unheard, strict=True)
    ]


def _pairs(variant: Variant, solvers: Iterable[Solver], samples: int) -> list[SolverPair]:
    pairs = []
    for solver in solvers:
        item, rewording = (solver.answers(variant.item_id, one) for one in (None, variant.variant_id))
        if enough(item, samples) and enough(rewording, samples):
            pairs.append(SolverPair(TwoWordings(item, rewording), variant.item_id in solver.known))
    return pairs


def _held(variant: Variant, word: Held, solvers: Sequence[Solver], check: AnsweringCheckSection) -> HeldVariant:
    return HeldVariant(
        item_id=variant.item_id,
        variant_id=variant.variant_id,
        finding=word.finding.value,
        question=variant.question[:MAX_HELD_QUESTION_CHARACTERS],
        p=word.p,
        answers=tuple(
            SolverAnswers(
                solver=solver.facts.model,
                item=_most_frequent(solver.answers(variant.item_id, None)),
                rewording=_most_frequent(solver.answers(variant.item_id, variant.variant_id)),
            )
            for solver in solvers
        ),
        kept=check.disagreeing == "listed" or variant.variant_id in check.allowed,
    )


def _most_frequent(answers: Counts) -> tuple[AnswerCount, ...]:
    ordered = sorted(answers.items(), key=lambda pair: (-pair[1], pair[0] or ""))[:MAX_ANSWERS_LISTED]
    return tuple(AnswerCount(answer=answer, n=n) for answer, n in ordered)


def _rejection(held: HeldVariant) -> Rejection:
    said = "; ".join(
        f"{one.solver}: item {_words(one.item)}, rewording {_words(one.rewording)}" for one in held.answers
    )
    p = "" if held.p is None else f" (p {held.p:.2g})"
    return Rejection(item_id=held.item_id, reason=held.finding, detail=f"{held.variant_id}{p}: {said}")


def _words(answers: Sequence[AnswerCount]) -> str:
    return ", ".join(f"{one.n}× {'unreadable' if one.answer is None else one.answer}" for one in answers) or "no answer"


def _is_of(call: Call, targets: Targets) -> bool:
    return call.trial.item_id in targets.right


def _check_yield(kept: set[str], n_items: int, min_yield: float) -> None:
    if min_yield == 0 or (kept and len(kept) >= min_yield * n_items):
        return
    raise BadInputError(
        f"only {len(kept)} of {n_items} items keep a variant after the answering check, and min_yield is "
        f"{min_yield:g}; read those that are held (`proctor variants show` lists them), allow the right ones "
        "in perturbation_config.answering_check.allowed, or have others made"
    )
