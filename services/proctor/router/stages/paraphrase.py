"""The stage in which the model that rewords is asked, as often as the perturbation service wants more of it."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import CHUNK_ITEMS, PromptSet, RewriteSet
from proctor.domain.trial import PARAPHRASE_STAGE, Decoding, Shard
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs, RewritingRound
from proctor.router.plan import plan_shards
from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from proctor.router.stages.documents import prompt_set
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import Ending, Stage, StageParts, none_answered
from proctor.router.terms import Role
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.audit_state import AuditState


class ParaphraseStage(Stage):
    """One round of questions to the model that rewords. Its parts are slices of the round's prompts."""

    kind = PARAPHRASE_STAGE
    state = AuditState.PARAPHRASING
    asks = Role.REWORDING
    asked_for = "rewordings"

    def is_due(self, audit: AuditView) -> bool:
        """Whether a round was begun, and has not ended."""
        return audit.inputs.variants is None and audit.inputs.rewriting is not None

    def name(self, inputs: AuditInputs) -> str:
        """The round's, e.g. `paraphrase-2`."""
        return _round(inputs).stage

    def model(self, audit: AuditView) -> str:
        """The model that rewords, and where it is."""
        return f"the rewording model {audit.suite.perturbation.paraphrase_model} at {self.endpoint(audit).url}"

    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """Its own."""
        assert audit.inputs.paraphraser is not None
        return audit.inputs.paraphraser

    def decoding(self, audit: AuditView) -> Decoding:
        """The round's."""
        return _round(audit.inputs).decoding

    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """One a slice of the round's prompts."""
        n_prompts = len(_prompts(store, audit.inputs).trials)
        return StageParts(-(-n_prompts // CHUNK_ITEMS), n_prompts)

    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """Those of one slice; small ones, because models write."""
        begin = part * CHUNK_ITEMS
        prompts = _prompts(store, audit.inputs).trials[begin : begin + CHUNK_ITEMS]
        return plan_shards(prompts, shard_trials=min(shard_trials, REWRITE_SHARD_TRIALS))

    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """Back to the perturbation service with what was said; a round in which nobody answered fails."""
        earlier = rewrites.load(store, audit.inputs.rewrites)
        said = rewrites.together(earlier, RewriteSet(answered=outcome.answered, dead=outcome.dead))
        if (cause := rewrites.first_failure(store, said)) is not None:
            # Nothing is kept of the round, so that an audit that is started again asks all of it again.
            return Ending({"rewriting": None}, failure=none_answered(self.model(audit), outcome, cause))
        return Ending({"rewriting": None, "rewrites": put_model(store, said)}, after=AuditState.REWORDING)


def _round(inputs: AuditInputs) -> RewritingRound:
    assert inputs.rewriting is not None
    return inputs.rewriting


def _prompts(store: ArtifactStore, inputs: AuditInputs) -> PromptSet:
    return prompt_set(store, _round(inputs).prompts)


PARAPHRASE = ParaphraseStage()
