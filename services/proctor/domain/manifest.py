"""Documents that travel by digest through the artifact store between services."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from proctor.domain.answering_check import AnsweringCheck
from proctor.domain.backends import Backend
from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.card import ProtocolCard
from proctor.domain.fidelity import Fidelity
from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.looks import LooksSoFar
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm, Completion, Decoding, Outcome, Trial
from proctor.domain.versions import added
from proctor.domain.weights import Weights, weights_known

#: Items that are stored, planned and graded together: few enough that a service never holds a large audit whole.
CHUNK_ITEMS = 1024


class ItemSet(Frozen):
    """Selected items of an audit, in the order in which they were drawn: all of them, or a chunk."""

    items: tuple[Item, ...]


class QuestionSet(Frozen):
    """What all items of a benchmark ask, whichever of them an audit takes: a margin is kept to these."""

    questions: tuple[str, ...]
    """Each once, in code point order."""


class ItemIndex(Frozen):
    """Where an audit's items are: chunks of at most CHUNK_ITEMS, in order."""

    n_items: int
    chunks: tuple[str, ...]
    """Digests of ItemSets."""


class VariantChunk(Frozen):
    """The variants of one chunk of items, in the items' order."""

    variants: tuple[Variant, ...]


class VariantIndex(Frozen):
    """Where an audit's variants are, and what is known of all of them."""

    n_variants: int
    n_items_with_variants: int
    chunks: tuple[str, ...]
    """Digests of VariantChunks: as many as the ItemIndex has, and in its order."""
    summary: str
    """Digest of the VariantSet without its variants: rejections, encoder, controls."""
    rewordings_digest: str
    """`VariantSet.rewordings_digest` of all of them."""

    @property
    def n_prompts(self) -> int:
        """Prompts of the items that have a rewording, and of the rewordings."""
        return self.n_items_with_variants + self.n_variants


class VariantSet(Frozen):
    """What the perturbation service made of an item set."""

    variants: tuple[Variant, ...]
    rejections: tuple[Rejection, ...]
    encoder: str
    """Name and weights' digest of the encoder that measured the distances."""
    from_library: int = 0
    """Variants that were taken from the library without new work."""
    controls: tuple[Fidelity, ...] = Field(default=(), exclude_if=lambda controls: not controls)
    """What rewording by this strategy has cost clean models on this benchmark; not written where nothing is on
    record."""
    check: AnsweringCheck | None = Field(default=None, exclude_if=lambda check: check is None)
    """What the answering check found; not written where none was made."""

    @property
    def rewordings_digest(self) -> str:
        """`rewordings_digest` of the variants."""
        return rewordings_digest(variant.variant_id for variant in self.variants)


def rewordings_digest(variant_ids: Iterable[str]) -> str:
    """Digest of what was reworded into what, whoever made it, measured it or had it already."""
    return json_digest(sorted(variant_ids))


class CompletionSet(Frozen):
    """What a shard's trials came back as, one completion a trial, in the shard's order."""

    completions: tuple[Completion, ...]


class GradeSet(Frozen):
    """What a shard's answers are worth: a row a trial, in the shard's order, as columns of equal length."""

    shard: str
    """Digest of the Shard."""
    completions: str
    """Digest of the CompletionSet that was graded."""
    extractor: str
    """Name of the extractor that read the answers."""
    arm: Arm
    trial_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    variant_ids: tuple[str | None, ...]
    replicates: tuple[int, ...]
    outcomes: tuple[Outcome | None, ...]
    """None for an error row: nothing came back."""
    truncated: tuple[bool, ...]
    """Whether the answer ended at the ceiling of tokens."""
    cut_short: tuple[bool, ...] = added((), since=2)
    """Whether it ended there before its answer stood in it, and is not right; empty where no answer is truncated, and
    where an earlier Proctor graded."""


class DeadShard(Frozen):
    """A shard that failed for good: its trials are error rows."""

    shard: str
    cause: str


class AnsweredShard(Frozen):
    """A shard and its completions, by digest."""

    shard: str
    completions: str
    grades: str | None = None
    """Digest of the GradeSet, where they were graded as they came in."""


class PromptSet(Frozen):
    """Prompts for the rewording model. The trials' stage is `paraphrase`, their arm the one that they prepare."""

    trials: tuple[Trial, ...] = Field(min_length=1)
    decoding: Decoding


class RewriteSet(Frozen):
    """What a model was asked and said before the answers: the rewording model, over all rounds so far, or the
    routers."""

    answered: tuple[AnsweredShard, ...] = ()
    dead: tuple[DeadShard, ...] = ()
    in_parts: tuple[int, ...] = ()
    """How many of `answered` each part of the stage brought, in order; empty where that is not kept."""


class ParaphraserFacts(Frozen):
    """The model that reworded, or the routers', as far as it can be told; nothing that depends on time or
    redelivery."""

    model: str
    digests: tuple[str, ...]
    """Digests of the weights that answered, in order; more than one where the endpoint changed its model meanwhile."""
    calls: int
    """Prompts that it was asked in this audit; 0 where every rewording was in the library."""
    failed: int
    """Those of them to which no answer came."""


class ControlAsked(Frozen):
    """Control items, and what they were reworded into."""

    items: str
    """Digest of the ItemIndex."""
    variants: str
    """Digest of the VariantIndex."""


class AuditManifest(Frozen):
    """Everything the scorer needs, by reference."""

    audit_id: str
    suite: Suite
    card: ProtocolCard
    model_digest: str
    model_digest_verified: bool
    """Whether the endpoint itself reported a digest of the weights that it serves, however it knows it."""
    server: str
    backend: Backend | None = None
    """How the endpoint was spoken to."""
    items: str
    """Digest of the ItemIndex."""
    variants: str
    """Digest of the VariantIndex."""
    answered: tuple[AnsweredShard, ...]
    dead: tuple[DeadShard, ...]
    paraphraser: ParaphraserFacts | None = None
    """The model that reworded; None where the suite's strategy asks none."""
    transmitted: str | None = None
    """Digest of the RewriteSet of what the routers were asked and said; None where the suite has no routers."""
    router: ParaphraserFacts | None = None
    """The routers' model; None where the suite has no routers."""
    asked: dict[str, str] = Field(default_factory=dict, exclude_if=lambda asked: not asked)
    """Stage of a plug-in → digest of the RewriteSet of what its model was asked and said; not written without any."""
    fresh: str | None = added(None, since=2)
    """Digest of the ItemIndex of the fresh items; None where the suite asks none."""
    panel: str | None = added(None, since=2)
    """Digest of the Panel of reference models that answered both; None where the suite names none."""
    control: ControlAsked | None = added(None, since=3)
    """The control items and their rewordings; None where the suite asks none."""
    weights: Weights | None = added(None, since=4)
    """How the digest of the weights is known, where they are proven."""
    looks: LooksSoFar | None = added(None, since=5)
    """Which look of a sequential audit this is, which holds all that was asked by then; None where there are none."""

    @property
    def weights_known(self) -> Weights:
        """How the digest of the weights is known."""
        return weights_known(self.weights, reported=self.model_digest_verified)
