"""The stages of an audit in which models are asked: whom, what, and what came of it.

Every stage goes the same way through the ledger: its trials are cut into shards, handed out, answered or given up. A
round of questions to the model that rewords is a stage like the one in which the audited model answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Generic, NamedTuple

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import (
    CHUNK_ITEMS,
    AnsweredShard,
    DeadShard,
    ItemIndex,
    ItemSet,
    PromptSet,
    RewriteSet,
    VariantChunk,
    VariantIndex,
)
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE, Decoding, Shard
from proctor.router.audit import AuditInputs, AuditView
from proctor.router.ledger.store import Ledger, PlannedShard
from proctor.router.plan import StoredShard, plan_shards, plan_trials
from proctor.router.pools.packs import REWRITE_SHARD_TRIALS
from proctor.router.submit.endpoints import asks_routers_by_chat, router_model
from proctor.router.transmission import messages_of, plan_routers, plan_workers, router_places
from proctor.runtime.artifacts.store import ArtifactStore, Model, get_model
from proctor.runtime.records.store import AuditState


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


def pool_of(inputs: AuditInputs, stage: str) -> str | None:
    """The pool of servers that a stage asks, by the ledger's name of it; None where the audit has no such stage."""
    by_kind = {
        ANSWER_STAGE: inputs.endpoint,
        TRANSMIT_STAGE: inputs.router,
        PARAPHRASE_STAGE: inputs.paraphraser,
    }
    endpoint = by_kind.get(stage.partition("-")[0])
    return None if endpoint is None else endpoint.pool


def pools_of(inputs: AuditInputs) -> tuple[str, ...]:
    """The pools of all servers that an audit asks, each once."""
    found = (inputs.endpoint, inputs.paraphraser, inputs.router)
    return tuple(dict.fromkeys(endpoint.pool for endpoint in found if endpoint is not None))


class StageParts(NamedTuple):
    """How a stage is cut into parts, each of which is planned by itself."""

    n: int
    n_trials: int | None
    """Of the whole stage; None where only planning all of it would tell."""


def stage_parts(audit: AuditView, store: ArtifactStore) -> StageParts:
    """The parts of the stage that is under way: one a chunk of items, or one a slice of the rewording model's prompts.

    Without a single rewording there is no part: nothing could be compared.
    """
    inputs, protocol = audit.inputs, audit.suite.protocol
    if audit.record.state is AuditState.PARAPHRASING:
        n_prompts = len(_prompts(store, inputs).trials)
        return StageParts(-(-n_prompts // CHUNK_ITEMS), n_prompts)
    if audit.record.state is AuditState.TRANSMITTING:
        items = _item_index(store, inputs.items)
        return StageParts(len(items.chunks), items.n_items * len(router_places(protocol)))
    assert inputs.variants is not None
    variants = _variant_index(store, inputs.variants)
    if variants.n_variants == 0:
        return StageParts(0, 0)
    n_direct = variants.n_items_with_variants + variants.n_variants
    return StageParts(len(variants.chunks), n_direct if inputs.transmitted is None else None)


def part_shards(audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
    """The shards of one part of the stage that is under way, in the order in which they should run.

    The same on every call with the same size. No other part has any of its trials. Each is made when it is asked for:
    the prompts of a part may be hundreds of times as large as its items.

    Args:
        part: which, from 0.
        shard_trials: trials of a shard, at most; fewer where models write.

    Raises:
        BadInputError: when a prompt would be too large.
    """
    inputs, protocol = audit.inputs, audit.suite.protocol
    written = min(shard_trials, REWRITE_SHARD_TRIALS)
    if audit.record.state is AuditState.PARAPHRASING:
        begin = part * CHUNK_ITEMS
        prompts = _prompts(store, inputs).trials[begin : begin + CHUNK_ITEMS]
        return plan_shards(prompts, shard_trials=written)
    items = get_model(store, _item_index(store, inputs.items).chunks[part], ItemSet).items
    if audit.record.state is AuditState.TRANSMITTING:
        trials = plan_routers(items, protocol, chat=asks_routers_by_chat(audit.suite))
        return plan_shards(trials, shard_trials=written)
    assert inputs.variants is not None
    variants = get_model(store, _variant_index(store, inputs.variants).chunks[part], VariantChunk).variants
    trials = plan_trials(items, variants, audit.suite.prompt)
    if inputs.transmitted is not None:
        messages = messages_of(store, _transmitted(store, inputs.transmitted), part)
        trials = chain(trials, plan_workers(items, protocol, messages))
    return plan_shards(trials, shard_trials=shard_trials)


def _prompts(store: ArtifactStore, inputs: AuditInputs) -> PromptSet:
    assert inputs.rewriting is not None
    return _prompt_set(store, inputs.rewriting.prompts)


class _Kept(Generic[Model]):
    """The last few documents of a kind that every part of a stage looks into. A digest is its document, wherever."""

    def __init__(self, kind: type[Model], most: int) -> None:
        self._kind, self._most = kind, most
        self._documents: dict[str, Model] = {}

    def __call__(self, store: ArtifactStore, digest: str) -> Model:
        found = self._documents.pop(digest, None) or get_model(store, digest, self._kind)
        self._documents[digest] = found
        if len(self._documents) > self._most:
            del self._documents[next(iter(self._documents))]
        return found


_item_index = _Kept(ItemIndex, 16)
_variant_index = _Kept(VariantIndex, 16)
_prompt_set = _Kept(PromptSet, 1)
_transmitted = _Kept(RewriteSet, 1)


#: Positions of a part's shards: more than it has trials (a chunk of items, at most 100 rewordings and 18 conditions
#: each).
PART_POSITIONS = 2**20


def planned(shards: Iterable[StoredShard], part: int) -> list[PlannedShard]:
    """A part's stored shards as the ledger takes them.

    A shard's position is the number of trials before it, so that the shards that it may be split into lie between it
    and the next.

    Args:
        shards: the shards in the order in which they should run.
        part: which part of its stage.
    """
    position, entries = part * PART_POSITIONS, []
    for shard in shards:
        entries.append(PlannedShard(shard.shard_id, shard.n_trials, shard.digest, position))
        position += shard.n_trials
    return entries


class StageOutcome(NamedTuple):
    """What came of a stage's shards: each is answered or given up."""

    entries: tuple[PlannedShard, ...]
    """In the order of the plan."""
    completions: Mapping[str, str]
    """Shard id → digest of its completions."""
    causes: Mapping[str, str]
    """Shard id → why it was given up."""
    grades: Mapping[str, tuple[str, str]]
    """Digest of a shard → digests of the completions that were graded, and of their grades."""

    @property
    def answered(self) -> tuple[AnsweredShard, ...]:
        """The answered shards, in the order of the plan."""
        return tuple(
            AnsweredShard(shard=entry.digest, completions=said, grades=self._grades(entry.digest, said))
            for entry in self.entries
            if (said := self.completions.get(entry.shard_id)) is not None
        )

    def _grades(self, shard: str, completions: str) -> str | None:
        graded, grades = self.grades.get(shard, (None, None))
        return grades if graded == completions else None

    @property
    def in_parts(self) -> tuple[int, ...]:
        """How many of the answered shards each part of the stage brought, up to the last that brought any."""
        parts = Counter(
            entry.position // PART_POSITIONS for entry in self.entries if entry.shard_id in self.completions
        )
        return tuple(parts[part] for part in range(max(parts, default=-1) + 1))

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
    """Read what came of a stage that has ended.

    Raises:
        StoreError: when not all of it is in the ledger any more.
    """
    settled = ledger.settled(audit_id, stage)
    return StageOutcome(settled.entries, settled.done, settled.dead, settled.graded)
