"""Weighing a search of training data: how many items stand there, and the figures with these left out, and alone.

`contaminated` where more items are copies of what stands in training data than the suite allows. `invalid` where too
much of the data could not be read. Never `clean`: a policy finds what its rule says, and nothing that was reworded.
"""

from __future__ import annotations

from collections.abc import Collection

from proctor.domain.channel_results import Verdict
from proctor.domain.corpus_search import CorpusSearch
from proctor.domain.exposure import OF_COPIES, TUNING_STAGES, ExposureVerdict
from proctor.domain.exposure_evidence import ExposureEvidence, ItemFigures
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.exposure import statements
from proctor.evidence.exposure.recall import recall_of
from proctor.evidence.perturbation.measured import estimates_of
from proctor.evidence.replicated_answers import ReplicatedAnswers

#: An audit's answers, canonical and reworded, by item.
AnswersByItem = PairedAnswers | ReplicatedAnswers


def weigh_search(search: CorpusSearch, answers: AnswersByItem, *, allowed_pct: float, level: float) -> ExposureEvidence:
    """Weigh what a search found.

    Args:
        search: it.
        answers: the audit's; those of each wording where prompts were asked several times.
        allowed_pct: items that the suite allows to be contaminated, in percent.
        level: of the intervals.
    """
    exposed = [item for item in search.items if item.is_exposed]
    exposed_pct = 100 * len(exposed) / search.n_items if search.n_items else 0.0
    labelled = sum(item.verdict is ExposureVerdict.INVALID_EVIDENCE for item in exposed)
    recall = recall_of(search.policy, search.ngram)
    found = statements.Found(
        policy=search.policy,
        ngram=search.ngram,
        stages=tuple(search.stages),
        found_in=tuple(stage for stage in search.stages if any(item.stages[stage].is_exposed for item in exposed)),
        n_items=search.n_items,
        n_exposed=len(exposed),
        n_labelled=labelled,
        allowed_pct=allowed_pct,
        recall=recall,
    )
    reasons: tuple[str, ...]
    if search.invalid is not None:
        verdict, reasons = Verdict.INVALID, (statements.unread(search.invalid),)
    elif len(search.unscorable) == search.n_items:
        verdict, reasons = Verdict.INVALID, (statements.NOTHING_TO_LOOK_FOR,)
    elif exposed_pct > allowed_pct and search.policy in OF_COPIES:
        verdict, reasons = Verdict.CONTAMINATED, (statements.past_limit(found),)
    elif exposed:
        of_copies = search.policy in OF_COPIES
        verdict = Verdict.INCONCLUSIVE
        reasons = (statements.within_limit(found) if exposed_pct <= allowed_pct else statements.no_copies(found),)
        reasons += () if of_copies else (statements.phrases_in_common(found),)
    else:
        verdict, reasons = Verdict.INCONCLUSIVE, (statements.nothing_found(found),)
    if search.unscorable:
        reasons += (statements.too_short(len(search.unscorable), search.n_items),)
    if not TUNING_STAGES.intersection(search.stages):
        reasons += (statements.NO_TUNING_DATA,)
    affected = {item.item_id for item in search.items}
    return ExposureEvidence(
        verdict=verdict,
        reasons=reasons,
        policy=search.policy,
        rule=search.rule,
        ngram=search.ngram,
        normalisation=search.normalisation,
        recall_pct=recall,
        stages=search.stages,
        n_items=search.n_items,
        n_exposed=len(exposed),
        n_unscorable=len(search.unscorable),
        n_affected=len(affected),
        verdicts=search.verdicts,
        exposed_pct=exposed_pct,
        allowed_pct=allowed_pct,
        items=search.items,
        unscorable=search.unscorable,
        skipped_places=search.skipped_places,
        all_items=figures(answers, level),
        without_exposed=figures(part_of(answers, affected, among=False), level),
        exposed_only=figures(part_of(answers, affected, among=True), level),
    )


def part_of(answers: AnswersByItem, item_ids: Collection[str], *, among: bool) -> AnswersByItem:
    """The answers to the items that are among these, or to those that are not."""
    kept = [place for place, item_id in enumerate(answers.item_ids) if (item_id in item_ids) is among]
    ids = tuple(answers.item_ids[place] for place in kept)
    clusters = None if answers.clusters is None else tuple(answers.clusters[place] for place in kept)
    if isinstance(answers, ReplicatedAnswers):
        return ReplicatedAnswers(ids, answers.right[kept], answers.asked[kept], clusters=clusters)
    return PairedAnswers.of(ids, answers.canonical[kept], answers.right[kept], answers.total[kept], clusters=clusters)


def figures(answers: AnswersByItem, level: float) -> ItemFigures | None:
    """The figures of the wording comparison over these answers; None without any."""
    if answers.n == 0:
        return None
    estimates = estimates_of(answers, level)
    return ItemFigures(
        n_items=answers.n,
        accuracy_canonical=estimates.canonical,
        accuracy_perturbed=estimates.reworded,
        score_inflation=estimates.inflation,
        contamination_score=estimates.score,
    )
