"""The stage in which the model under audit answers: canonical and reworded items, and those that routers passed on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.looks import LookItems
from proctor.domain.manifest import AuditManifest, VariantChunk, VariantIndex
from proctor.domain.trial import ANSWER_STAGE, CONTROL_ARMS, Decoding, Shard, Trial
from proctor.router import rewrites
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs
from proctor.router.looking import asked_so_far
from proctor.router.plan import plan_fresh, plan_shards, plan_trials, replicated
from proctor.router.stages.documents import item_index, items_of_part, rewrite_set, variant_index
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import Ending, Stage, StageParts
from proctor.router.submit.endpoints import paraphrase_model, router_model
from proctor.router.terms import Role
from proctor.router.transmission import messages_of, plan_workers
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.records.audit_state import AuditState


class AnswerStage(Stage):
    """The last stage of every audit. Its parts are the chunks of the variants, which are those of the items.

    Fresh items and control items come in chunks of their own, one of each with each part, so that they are asked in the
    same hours; what is left of any makes parts by itself. A sequential audit has such a stage before each look, with
    the items until then.
    """

    kind = ANSWER_STAGE
    state = AuditState.ANSWERING
    asks = Role.AUDITED
    asked_for = "answers"
    graded = True

    def name(self, inputs: AuditInputs) -> str:
        """`answer`; before looks `answer-1`, `answer-2`, …"""
        return f"{self.kind}-{inputs.look}" if inputs.looks else self.kind

    def is_due(self, audit: AuditView) -> bool:
        """Whether the variants are there."""
        return audit.inputs.variants is not None

    def model(self, audit: AuditView) -> str:
        """The model under audit."""
        return f"the model {audit.suite.model.model_id}"

    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """Its own, with the weights that the audit is of."""
        return audit.inputs.endpoint.model_copy(update={"model_version": audit.inputs.model_digest})

    def decoding(self, audit: AuditView) -> Decoding:
        """The suite's."""
        return audit.suite.decoding.of_one

    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """One a chunk of variants, with one of the fresh items and one of the control items."""
        now, variants = _asked_now(audit.inputs), _variants(audit, store)
        # Without a single rewording there is no part: nothing could be compared.
        if variants.n_variants == 0:
            return StageParts(0, 0)
        n_direct, n_parts = variants.n_prompts, len(variants.chunks)
        if audit.inputs.control_variants is not None:
            control = variant_index(store, audit.inputs.control_variants)
            n_direct, n_parts = n_direct + control.n_prompts, max(n_parts, len(control.chunks))
        n_direct *= audit.suite.decoding.replicates
        if now.fresh is not None:
            fresh = item_index(store, now.fresh)
            n_direct, n_parts = n_direct + fresh.n_items, max(n_parts, len(fresh.chunks))
        return StageParts(n_parts, n_direct if audit.inputs.transmitted is None else None)

    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """Those of one chunk: items and variants, then what routers passed on of them; and a chunk of the fresh and of
        the control items."""
        of_part = (self._of_benchmark, self._of_fresh, self._of_control)
        trials = chain.from_iterable(of_kind(audit, store, part) for of_kind in of_part)
        asked = replicated(trials, audit.suite.decoding.replicates)
        return plan_shards(asked, shard_trials=shard_trials, replicates_apart=True)

    def _of_benchmark(self, audit: AuditView, store: ArtifactStore, part: int) -> Iterator[Trial]:
        chunks = _variants(audit, store).chunks
        if part >= len(chunks):
            return
        items = items_of_part(store, _asked_now(audit.inputs).items, part).items
        yield from plan_trials(items, get_model(store, chunks[part], VariantChunk).variants, audit.suite.prompt)
        if audit.inputs.transmitted is not None:
            messages = messages_of(store, rewrite_set(store, audit.inputs.transmitted), part)
            yield from plan_workers(items, audit.suite.protocol, messages)

    def _of_fresh(self, audit: AuditView, store: ArtifactStore, part: int) -> Iterator[Trial]:
        fresh = _asked_now(audit.inputs).fresh
        if fresh is not None and part < len(item_index(store, fresh).chunks):
            yield from plan_fresh(items_of_part(store, fresh, part).items, audit.suite.prompt)

    def _of_control(self, audit: AuditView, store: ArtifactStore, part: int) -> Iterator[Trial]:
        control, reworded = _asked_now(audit.inputs).control, audit.inputs.control_variants
        if control is None or reworded is None:
            return
        chunks = variant_index(store, reworded).chunks
        if part < len(chunks):
            items = items_of_part(store, control, part).items
            variants = get_model(store, chunks[part], VariantChunk).variants
            yield from plan_trials(items, variants, audit.suite.prompt, CONTROL_ARMS)

    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """On to the scorer, with everything that it needs."""
        inputs = audit.inputs
        assert inputs.variants is not None
        assert inputs.model_digest is not None
        asked = asked_so_far(store, inputs, outcome)
        reworder, said = paraphrase_model(audit.suite), rewrites.load(store, inputs.rewrites)
        router, transmitted = router_model(audit.suite), rewrites.load(store, inputs.transmitted)
        manifest = AuditManifest(
            audit_id=audit.audit_id,
            suite=audit.resolved_suite,
            card=audit.card,
            model_digest=inputs.model_digest,
            model_digest_verified=inputs.model_digest_verified,
            weights=inputs.weights,
            server=inputs.server,
            backend=inputs.endpoint.backend,
            items=asked.items,
            variants=asked.variants,
            answered=asked.answered,
            dead=asked.dead,
            paraphraser=None if reworder is None else rewrites.facts(store, reworder, said),
            transmitted=inputs.transmitted,
            router=None if router is None else rewrites.facts(store, router, transmitted),
            fresh=asked.fresh,
            panel=inputs.panel,
            control=asked.control,
            looks=asked.looks,
            asked={kind: asking.said for kind, asking in inputs.asked.items() if asking.said is not None},
        )
        return Ending({"manifest": put_model(store, manifest)}, after=AuditState.SCORING)


def _asked_now(inputs: AuditInputs) -> AuditInputs | LookItems:
    """Which names the items that are asked now: the audit itself, or the look that comes next."""
    return inputs.asked_now if inputs.looks else inputs


def _variants(audit: AuditView, store: ArtifactStore) -> VariantIndex:
    assert audit.inputs.variants is not None
    return variant_index(store, audit.inputs.variants)


ANSWER = AnswerStage()
