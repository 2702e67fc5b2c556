"""The stage in which routers pass the items on, before the model under audit answers from what they wrote."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import RewriteSet
from proctor.domain.trial import TRANSMIT_STAGE, Decoding, Shard
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs
from proctor.router.plan import plan_shards
from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from proctor.router.stages.documents import item_index, items_of_part
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import Ending, Stage, StageParts, none_answered
from proctor.router.submit.endpoints import asks_routers_by_chat, router_model
from proctor.router.terms import Role
from proctor.router.transmission import plan_routers, router_places
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.audit_state import AuditState


class TransmitStage(Stage):
    """The routers of the suite's protocol. Its parts are the chunks of the items."""

    kind = TRANSMIT_STAGE
    state = AuditState.TRANSMITTING
    asks = Role.ROUTING
    asked_for = "messages of routers"
    counted_as = "messages"

    def is_due(self, audit: AuditView) -> bool:
        """Whether there are routers, and what they write is not there."""
        inputs = audit.inputs
        return inputs.variants is not None and inputs.router is not None and inputs.transmitted is None

    def name(self, inputs: AuditInputs) -> str:
        """With the number of times that they were begun to be asked."""
        return f"{self.kind}-{inputs.transmissions}"

    def model(self, audit: AuditView) -> str:
        """The routers' model."""
        return f"the routers' model {router_model(audit.suite)}"

    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """Its own; where the routers are the model under audit, the weights that the audit is of."""
        router, section = audit.inputs.router, audit.suite.protocol.router
        assert router is not None
        if section.model is None and section.version is None:
            return router.model_copy(update={"model_version": audit.inputs.model_digest})
        return router

    def decoding(self, audit: AuditView) -> Decoding:
        """The routers'."""
        return audit.suite.protocol.router.decoding

    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """One a chunk of items."""
        items = item_index(store, audit.inputs.items)
        return StageParts(len(items.chunks), items.n_items * len(router_places(audit.suite.protocol)))

    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """Those of one chunk; small ones, because models write."""
        items = items_of_part(store, audit.inputs.items, part).items
        trials = plan_routers(items, audit.suite.protocol, chat=asks_routers_by_chat(audit.suite))
        return plan_shards(trials, shard_trials=min(shard_trials, REWRITE_SHARD_TRIALS))

    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """On with what they wrote; where none of them did, the audit fails."""
        said = RewriteSet(answered=outcome.answered, dead=outcome.dead, in_parts=outcome.in_parts)
        if (cause := rewrites.first_failure(store, said)) is not None:
            # The ledger keeps this stage as it is, so that an audit that is started again asks in another.
            again = {"transmissions": audit.inputs.transmissions + 1}
            return Ending(again, failure=none_answered(self.model(audit), outcome, cause))
        return Ending({"transmitted": put_model(store, said)})


TRANSMIT = TransmitStage()
