"""What follows when a stage has ended: the audit goes on, or fails with a cause."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.domain.levels import MAX_FAILED_SHARE
from proctor.domain.log_origin import LOG_BACKEND
from proctor.domain.manifest import AuditManifest
from proctor.domain.trial import Shard
from proctor.router.audit import AuditView
from proctor.router.shortfall import Shortfall, commonest_words, shortfalls, unanswered
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import NOTHING_TO_ASK, Ending, Stage, StageUnderWay
from proctor.runtime.artifacts.store import ArtifactStore, get_model


def ending(audit: AuditView, stage: StageUnderWay, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    """What becomes of an audit now that every shard of its stage is answered or given up.

    The same outcome ends a stage the same way, however often: nothing is changed but the artifact store.
    """
    if not outcome.entries:
        return Ending(failure=NOTHING_TO_ASK)
    refused = _refused(audit, stage.stage, outcome)
    if short := _shortfalls(audit, stage.stage, outcome, refused, store):
        return Ending(failure=f"{stage.model}: {_why(outcome, refused, short, store)}")
    return stage.stage.ending(audit, outcome, store)


def failed_by_refusals(audit: AuditView, stage: Stage, outcome: StageOutcome, store: ArtifactStore) -> bool:
    """Whether a stage that has ended fails its audit for what was refused, so that going on is to ask that again."""
    refused = _refused(audit, stage, outcome)
    return bool(refused and _shortfalls(audit, stage, outcome, refused, store))


def _refused(audit: AuditView, stage: Stage, outcome: StageOutcome) -> Mapping[str, int]:
    """Shard id → trials that were refused, where that may fail the audit.

    Whoever made a rewording stage counts its own; and what a log does not hold is nobody's refusal, to be mended by
    nobody: the protocol channel says how much is missing.
    """
    if not stage.graded or stage.endpoint(audit).backend == LOG_BACKEND:
        return {}
    return outcome.refused


def _shortfalls(
    audit: AuditView, stage: Stage, outcome: StageOutcome, refused: Mapping[str, int], store: ArtifactStore
) -> tuple[Shortfall, ...]:
    dead = {entry.shard_id: entry.n_trials for entry in outcome.entries if entry.shard_id in outcome.causes}
    if not dead and not refused:
        return ()
    asked = [get_model(store, entry.digest, Shard) for entry in outcome.entries]
    missing = {**dead, **refused}
    if stage.graded and audit.inputs.looked:
        # A share of all that was asked so far: of the few items before one look it would be a prompt or two.
        earlier = get_model(store, audit.inputs.looked[-1].manifest, AuditManifest)
        before, missing_before = unanswered(store, earlier)
        asked, missing = asked + before, {**missing, **missing_before}
    return shortfalls(asked, missing)


def _why(outcome: StageOutcome, refused: Mapping[str, int], short: tuple[Shortfall, ...], store: ArtifactStore) -> str:
    missing = outcome.n_dead + sum(refused.values())
    lost = f"{missing} of {outcome.n_trials} trials got no answer"
    if not refused:
        return f"{lost}; the last failure: {outcome.dead[-1].cause}"
    arms = ", ".join(map(str, short))
    return (
        f"{lost} ({arms}), and past {MAX_FAILED_SHARE:.0%} of an arm there is no decision; most often: "
        f"{commonest_words(outcome, refused, store)}. Mend that and start the audit again: it goes on with what was "
        "answered"
    )
