"""A stage that asks one of an audit's models something more about its items: what a plug-in's stage is made from."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, final

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import PluginError, ProctorError
from proctor.domain.item import Item
from proctor.domain.manifest import RewriteSet
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Decoding, Shard, Trial
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.inputs import Asking, AuditInputs
from proctor.router.plan import plan_shards
from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from proctor.router.stages.documents import item_index, items_of_part
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.registry import STAGES
from proctor.router.stages.stage import Ending, Stage, StageParts, none_answered
from proctor.router.submit.prompt_sizes import check_asked
from proctor.router.terms import Role
from proctor.runtime.artifacts.store import ArtifactStore, put_model
from proctor.runtime.records.audit_state import AuditState

logger = logging.getLogger(__name__)


class AskingStage(Stage):
    """A stage of a plug-in: after the rewordings are there and before the model under audit answers.

    Its kind is the name of its entry point (group `proctor.stages`), under which a suite asks for it in
    `protocol_config.stages`. The model under audit is asked. What it says is kept, and stands in the audit's manifest
    under that name, where a plug-in's channel finds it. A subclass says what is asked for (`asked_for`), and its
    prompts. One that asks another model, or in other parts, is a `Stage` of its own whose state is ASKING.
    """

    state = AuditState.ASKING
    asks = Role.AUDITED
    prompts_an_item: ClassVar[int] = 1
    """How many prompts `prompts` gives for an item, always."""

    @abstractmethod
    def prompts(self, item: Item, suite: Suite) -> Sequence[str]:
        """What the model is asked about an item: `prompts_an_item` prompts, the same on every call."""

    def decoding(self, audit: AuditView) -> Decoding:
        """The suite's, unless a subclass says otherwise."""
        return audit.suite.decoding.of_one

    @final
    def is_due(self, audit: AuditView) -> bool:
        """Whether the suite asks for it, the variants are there, and its answers are not."""
        wanted = audit.inputs.variants is not None and self.kind in audit.suite.protocol.stages
        return wanted and self._asking(audit.inputs).said is None

    @final
    def name(self, inputs: AuditInputs) -> str:
        """With the number of times that it was begun."""
        return f"{self.kind}-{self._asking(inputs).times}"

    def model(self, audit: AuditView) -> str:
        """The model under audit, and the stage."""
        return f"the model {audit.suite.model.model_id} (stage {self.kind})"

    @final
    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """That of the model under audit, with the weights that the audit is of."""
        return audit.inputs.endpoint.model_copy(update={"model_version": audit.inputs.model_digest})

    @final
    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """One a chunk of items."""
        items = item_index(store, audit.inputs.items)
        return StageParts(len(items.chunks), self.calls(items.n_items))

    @final
    def calls(self, items: int) -> int:
        """The prompts of every item."""
        return items * self.prompts_an_item

    @final
    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """Those of one chunk; small ones, because models write."""
        items = items_of_part(store, audit.inputs.items, part).items
        trials = self._trials(items, audit.suite)
        return plan_shards(trials, shard_trials=min(shard_trials, REWRITE_SHARD_TRIALS))

    def _trials(self, items: Iterable[Item], suite: Suite) -> Iterator[Trial]:
        for item in items:
            for number, prompt in enumerate(self._prompts(item, suite)):
                check_asked(item.item_id, prompt, self.kind)
                yield Trial(stage=self.kind, arm=Arm.CANONICAL, item_id=item.item_id, replicate=number, prompt=prompt)

    def _prompts(self, item: Item, suite: Suite) -> tuple[str, ...]:
        """What a plug-in asks about an item.

        Raises:
            PluginError: it raised, or gave something else than it says.
        """
        whose = f"the stage {self.kind!r} of {STAGES.origin(self.kind)}"
        try:
            prompts = tuple(self.prompts(item, suite))
        except ProctorError:
            raise
        except Exception as error:
            # Somebody else's code, which would raise again however often it is tried.
            logger.exception("%s raised", whose)
            fault = f"{whose} failed at item {item.item_id!r}: {type(error).__name__}: {error}"
            raise PluginError(fault, "mend that distribution") from error
        if len(prompts) != self.prompts_an_item:
            fault = f"gave {len(prompts)} prompts for item {item.item_id!r}, and says that it gives"
            mend = f"have prompts_an_item say {len(prompts)}"
            raise PluginError(f"{whose} {fault} {self.prompts_an_item}", mend)
        if odd := [prompt for prompt in prompts if not isinstance(prompt, str)]:
            fault = f"gave item {item.item_id!r} a prompt that is a {type(odd[0]).__name__}, and not a text"
            raise PluginError(f"{whose} {fault}", "mend that distribution")
        return prompts

    @final
    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """On with what was said; where nothing was, the audit fails."""
        asking = self._asking(audit.inputs)
        said = RewriteSet(answered=outcome.answered, dead=outcome.dead, in_parts=outcome.in_parts)
        if (cause := rewrites.first_failure(store, said)) is not None:
            # The ledger keeps this stage as it is, so that an audit that is started again asks in another.
            again = asking.model_copy(update={"times": asking.times + 1})
            return Ending(self._noted(audit, again), failure=none_answered(self.model(audit), outcome, cause))
        return Ending(self._noted(audit, asking.model_copy(update={"said": put_model(store, said)})))

    def _asking(self, inputs: AuditInputs) -> Asking:
        return inputs.asked.get(self.kind, Asking())

    def _noted(self, audit: AuditView, asking: Asking) -> dict[str, dict[str, Asking]]:
        return {"asked": {**audit.inputs.asked, self.kind: asking}}
