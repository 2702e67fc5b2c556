"""The stages of an audit in which models are asked: whom, what, and what came of it.

Every stage goes the same way through the ledger: its trials are cut into shards, handed out, answered or given up. A
round of questions to the model that rewords is a stage like the one in which the audited model answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import AnsweredShard, DeadShard, ItemSet, PromptSet, RewriteSet, VariantSet
from proctor.domain.trial import ANSWER_STAGE, Decoding, Shard
from proctor.router.audit import AuditInputs, AuditView
from proctor.router.endpoints import asks_routers_by_chat, router_model
from proctor.router.ledger import Ledger, PlannedShard
from proctor.router.plan import REWRITE_SHARD_TRIALS, plan_shards, plan_trials
from proctor.router.transmission import messages_of, plan_routers, plan_workers
from proctor.runtime.artifacts import ArtifactStore, get_model
from proctor.runtime.records import AuditState


class Stage(NamedTuple):
    """A stage that is under way, and whom it asks."""

    name: str
    """The ledger's name of it."""
    model: str
    """Which model is asked, in words."""
    endpoint: EndpointSpec
    decoding: Decoding


def stage_under_way(audit: AuditView) -> Stage | None:
    """The stage whose shards are handed out now; None in a state in which no model is asked."""
    inputs, suite = audit.inputs, audit.suite
    if audit.record.state is AuditState.ANSWERING:
        endpoint = inputs.endpoint.model_copy(update={"model_version": inputs.model_digest})
        return Stage(ANSWER_STAGE, f"the model {suite.model.model_id}", endpoint, suite.decoding)
    if audit.record.state is AuditState.TRANSMITTING:
        assert inputs.router is not None
        router = inputs.router
        if suite.protocol.router.model is None and suite.protocol.router.version is None:
            router = router.model_copy(update={"model_version": inputs.model_digest})
        return Stage(
            inputs.transmission_stage,
            f"the routers' model {router_model(suite)}",
            router,
            suite.protocol.router.decoding,
        )
    if audit.record.state is AuditState.PARAPHRASING:
        assert inputs.rewriting is not None
        assert inputs.paraphraser is not None
        model = f"the rewording model {suite.perturbation.paraphrase_model} at {inputs.paraphraser.url}"
        return Stage(inputs.rewriting.stage, model, inputs.paraphraser, inputs.rewriting.decoding)
    return None


def state_to_go_on_in(inputs: AuditInputs) -> AuditState:
    """Where an audit goes on once its endpoint has answered the probe.

    What was reworded, and what is being asked, is on record. It is not worked out anew: the variant library may hold
    more by now, and the answers that are in the ledger belong to the variants that were made then.
    """
    if inputs.variants is not None:
        return AuditState.TRANSMITTING if inputs.awaits_routers else AuditState.ANSWERING
    return AuditState.PARAPHRASING if inputs.rewriting is not None else AuditState.REWORDING


def stage_shards(audit: AuditView, store: ArtifactStore) -> Iterator[Shard]:
    """The shards of the stage that is under way, in the order in which they should run. The same on every call."""
    inputs = audit.inputs
    if audit.record.state is AuditState.PARAPHRASING:
        assert inputs.rewriting is not None
        prompts = get_model(store, inputs.rewriting.prompts, PromptSet)
        return plan_shards(prompts.trials, shard_trials=REWRITE_SHARD_TRIALS)
    items, protocol = get_model(store, inputs.items, ItemSet).items, audit.suite.protocol
    if audit.record.state is AuditState.TRANSMITTING:
        trials = plan_routers(items, protocol, chat=asks_routers_by_chat(audit.suite))
        return plan_shards(trials, shard_trials=REWRITE_SHARD_TRIALS)
    assert inputs.variants is not None
    variants = get_model(store, inputs.variants, VariantSet).variants
    trials = plan_trials(items, variants, audit.suite.prompt)
    if trials and inputs.transmitted is not None:
        messages = messages_of(store, get_model(store, inputs.transmitted, RewriteSet))
        trials += plan_workers(items, protocol, messages)
    return plan_shards(trials)


class StageOutcome(NamedTuple):
    """What came of a stage's shards: each is answered or given up."""

    entries: tuple[PlannedShard, ...]
    """In the order of the plan."""
    completions: dict[str, str]
    """Shard id → digest of its completions."""
    causes: dict[str, str]
    """Shard id → why it was given up."""

    @property
    def answered(self) -> tuple[AnsweredShard, ...]:
        """The answered shards, in the order of the plan."""
        return tuple(
            AnsweredShard(shard=entry.digest, completions=self.completions[entry.shard_id])
            for entry in self.entries
            if entry.shard_id in self.completions
        )

    @property
    def dead(self) -> tuple[DeadShard, ...]:
        """The shards that were given up, in the order of the plan."""
        return tuple(
            DeadShard(shard=entry.digest, cause=self.causes[entry.shard_id])
            for entry in self.entries
            if entry.shard_id in self.causes
        )

    @property
    def n_trials(self) -> int:
        """Trials of the whole stage."""
        return sum(entry.n_trials for entry in self.entries)

    @property
    def n_dead(self) -> int:
        """Trials in shards that were given up."""
        return sum(entry.n_trials for entry in self.entries if entry.shard_id in self.causes)


def stage_outcome(ledger: Ledger, audit_id: str, stage: str) -> StageOutcome:
    """Read what came of a stage."""
    entries = tuple(ledger.entries(audit_id, stage))
    return StageOutcome(entries, ledger.done(audit_id, stage), ledger.dead(audit_id, stage))
