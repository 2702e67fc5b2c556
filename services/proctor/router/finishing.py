"""What follows when a stage has ended: its answers are taken together, and the audit goes on or fails with a cause."""

from __future__ import annotations

from typing import Any, NamedTuple

from proctor.domain.manifest import AuditManifest, RewriteSet
from proctor.domain.trial import Shard
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.plan import too_many_dead
from proctor.router.stages import Stage, StageOutcome
from proctor.router.submit.endpoints import paraphrase_model, router_model
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.records.store import AuditState

NOTHING_TO_ASK = "no item has a rewording, so there is nothing to ask"


class Ending(NamedTuple):
    """Where an audit goes from the end of a stage."""

    state: AuditState
    changes: dict[str, Any]
    """Of its inputs."""
    cause: str = ""
    """Why it failed, where it did."""


def ending(audit: AuditView, stage: Stage, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    """Where an audit goes now that every shard of its stage is answered or given up.

    The same outcome ends a stage the same way, however often: nothing is changed but the artifact store.
    """
    if not outcome.entries:
        return Ending(AuditState.FAILED, {}, NOTHING_TO_ASK)
    shards = (get_model(store, entry.digest, Shard) for entry in outcome.entries)
    if outcome.dead and too_many_dead(shards, outcome.causes):
        lost = f"{outcome.n_dead} of {outcome.n_trials} trials got no answer"
        cause = f"{stage.model}: {lost}; the last failure: {outcome.dead[-1].cause}"
        return Ending(AuditState.FAILED, {}, cause)
    if audit.record.state is AuditState.PARAPHRASING:
        return _round_ending(audit, stage, outcome, store)
    if audit.record.state is AuditState.TRANSMITTING:
        return _transmission_ending(audit, stage, outcome, store)
    return _answers_ending(audit, outcome, store)


def _round_ending(audit: AuditView, stage: Stage, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    earlier = rewrites.load(store, audit.inputs.rewrites)
    said = rewrites.together(earlier, RewriteSet(answered=outcome.answered, dead=outcome.dead))
    if (cause := rewrites.first_failure(store, said)) is not None:
        # Nothing is kept of the round, so that an audit that is started again asks all of it again.
        return Ending(AuditState.FAILED, {"rewriting": None}, _none_answered(stage, outcome, cause))
    return Ending(AuditState.REWORDING, {"rewriting": None, "rewrites": put_model(store, said)})


def _transmission_ending(audit: AuditView, stage: Stage, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    said = RewriteSet(answered=outcome.answered, dead=outcome.dead, in_parts=outcome.in_parts)
    if (cause := rewrites.first_failure(store, said)) is not None:
        # The ledger keeps this stage as it is, so that an audit that is started again asks in another.
        again = {"transmissions": audit.inputs.transmissions + 1}
        return Ending(AuditState.FAILED, again, _none_answered(stage, outcome, cause))
    return Ending(AuditState.ANSWERING, {"transmitted": put_model(store, said)})


def _none_answered(stage: Stage, outcome: StageOutcome, cause: str) -> str:
    return f"{stage.model} answered none of {outcome.n_trials} prompts; the first failure: {cause}"


def _answers_ending(audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    inputs = audit.inputs
    assert inputs.variants is not None
    assert inputs.model_digest is not None
    reworder, said = paraphrase_model(audit.suite), rewrites.load(store, inputs.rewrites)
    router, transmitted = router_model(audit.suite), rewrites.load(store, inputs.transmitted)
    manifest = AuditManifest(
        audit_id=audit.audit_id,
        suite=audit.resolved_suite,
        card=audit.card,
        model_digest=inputs.model_digest,
        model_digest_verified=inputs.model_digest_verified,
        server=inputs.server,
        backend=inputs.endpoint.backend,
        items=inputs.items,
        variants=inputs.variants,
        answered=outcome.answered,
        dead=outcome.dead,
        paraphraser=None if reworder is None else rewrites.facts(store, reworder, said),
        transmitted=inputs.transmitted,
        router=None if router is None else rewrites.facts(store, router, transmitted),
    )
    return Ending(AuditState.SCORING, {"manifest": put_model(store, manifest)})
