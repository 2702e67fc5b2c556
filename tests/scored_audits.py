"""Trials and their completions, stored, graded and reported as the scorer does it, without any service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.card import ContentDigests, protocol_card
from proctor.domain.decision import Decision
from proctor.domain.errors import StoreError
from proctor.domain.evidence import Evidence
from proctor.domain.item import Item
from proctor.domain.manifest import AnsweredShard, AuditManifest, CompletionSet, DeadShard, ItemSet, VariantSet
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Completion, Trial
from proctor.domain.weights import Weights
from proctor.evidence.perturbation.clean_control import NONE_ON_RECORD, OnRecord
from proctor.grading import resolve_extractor
from proctor.router.plan import shard_of
from proctor.runtime.artifacts.store import put_model
from proctor.scorer import score as scoring
from proctor.scorer.channels.channel import ChannelInputs
from proctor.scorer.grading.loading import load_rows, load_shown
from proctor.scorer.grading.targets import Targets
from proctor.scorer.report.assembly import Asked, suspects
from proctor.scorer.report.assembly import assemble as assembled
from proctor.scorer.report.document import Report

DIGEST = "sha256:" + "3f9a1c" * 10 + "77aa"


class MemoryArtifacts:
    """An artifact store that is gone with the test."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = bytes_digest(data)
        self.objects[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        if digest not in self.objects:
            raise StoreError(f"artifact {digest} is not in the store")
        return self.objects[digest]


class AskedTrial(NamedTuple):
    """A planned trial with its completion; None where its shard was given up."""

    trial: Trial
    completion: Completion | None


def cut_into_shards(asked: Sequence[AskedTrial], size: int = 64) -> Iterator[list[AskedTrial]]:
    """The trials in shards, of one arm each, and answered or given up as a whole; those of an arm keep their order."""

    def kind(row: AskedTrial) -> tuple[str, str, bool]:
        return row.trial.stage, row.trial.arm, row.completion is None

    for _, group in groupby(sorted(asked, key=kind), kind):
        rows = list(group)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


class StoredAudit(NamedTuple):
    """Answered and given up shards in a store, and what their items' targets are."""

    store: MemoryArtifacts
    manifest: AuditManifest
    targets: Targets

    @classmethod
    def of(cls, manifest: AuditManifest, items: Sequence[Item], shards: Iterable[Sequence[AskedTrial]]) -> StoredAudit:
        """Store what was asked."""
        store, answered, dead = MemoryArtifacts(), list[AnsweredShard](), list[DeadShard]()
        for rows in shards:
            shard = put_model(store, shard_of([row.trial for row in rows]))
            said = tuple(row.completion for row in rows if row.completion is not None)
            if said:
                completions = put_model(store, CompletionSet(completions=said))
                answered.append(AnsweredShard(shard=shard, completions=completions))
            else:
                dead.append(DeadShard(shard=shard, cause="nobody knows"))
        extractor = resolve_extractor(manifest.suite.metric.extractor, items)
        targets = Targets(extractor, {item.item_id: item.target for item in items})
        finished = manifest.model_copy(update={"answered": tuple(answered), "dead": tuple(dead)})
        return cls(store, finished, targets)


class SampleScore(NamedTuple):
    """What completions amount to, with them."""

    answers: list[AskedTrial]
    evidence: Evidence
    decision: Decision


def score(
    suite: Suite,
    items: Sequence[Item],
    asked: Sequence[AskedTrial],
    on_record: OnRecord = NONE_ON_RECORD,
    messages: Mapping[tuple[Arm, str, int], str] = MappingProxyType({}),
) -> SampleScore:
    """Grade the completions as the scorer does, weigh the evidence, and decide."""
    stored = StoredAudit.of(manifest_of(suite), items, cut_into_shards(asked))
    rows = load_rows(stored.store, stored.manifest, stored.targets)
    inputs = ChannelInputs(suite, items, rows, on_record, messages.items())
    return SampleScore(list(asked), *scoring.score(inputs))


def assemble(
    manifest: AuditManifest,
    items: ItemSet,
    variants: VariantSet,
    answers: Sequence[AskedTrial],
    evidence: Evidence,
    decision: Decision,
    *,
    versions: Mapping[str, str],
) -> Report:
    """The report of answers that are at hand."""
    stored = StoredAudit.of(manifest, items.items, cut_into_shards(answers))
    rows = load_rows(stored.store, stored.manifest, stored.targets)
    wanted = {item.item_id for item in suspects(evidence)}
    shown = load_shown(stored.store, stored.manifest, stored.targets, rows, wanted)
    asked = Asked(items.items, variants, variants.variants)
    return assembled(manifest, asked, rows, shown, evidence, decision, versions=versions)


def clean_models(manifest: AuditManifest, variants: VariantSet) -> OnRecord:
    """The clean models that an audit's variants bring along, and what they are to be compared with."""
    return OnRecord(variants.controls, manifest.model_digest, variants.rewordings_digest)


def manifest_of(suite: Suite, *, verified: bool = True) -> AuditManifest:
    """A manifest without shards."""
    return AuditManifest(
        audit_id="audit-8d1f0a",
        suite=suite,
        card=protocol_card(suite, ContentDigests(dataset=DIGEST), evaluator_version="proctor 0.1.0"),
        model_digest=DIGEST,
        model_digest_verified=verified,
        weights=Weights.PROVEN if verified else None,
        server="triton 2.51.0",
        items=DIGEST,
        variants=DIGEST,
        answered=(),
        dead=(),
    )
