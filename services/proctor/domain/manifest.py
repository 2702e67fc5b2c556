"""Documents that travel by digest through the artifact store between services."""

from __future__ import annotations

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.card import ProtocolCard
from proctor.domain.fidelity import Fidelity
from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.suite import Suite
from proctor.domain.suite_types import Backend
from proctor.domain.trial import Completion, Decoding, Trial


class ItemSet(Frozen):
    """The selected items of an audit, in the order in which they were drawn."""

    items: tuple[Item, ...]


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

    @property
    def rewordings_digest(self) -> str:
        """Digest of what was reworded into what, whoever made it, measured it or had it already."""
        return json_digest(sorted(variant.variant_id for variant in self.variants))


class CompletionSet(Frozen):
    """What a shard's trials came back as, one completion a trial, in the shard's order."""

    completions: tuple[Completion, ...]


class DeadShard(Frozen):
    """A shard that failed for good: its trials are error rows."""

    shard: str
    cause: str


class AnsweredShard(Frozen):
    """A shard and its completions, by digest."""

    shard: str
    completions: str


class PromptSet(Frozen):
    """Prompts for the rewording model. The trials' stage is `paraphrase`, their arm the one that they prepare."""

    trials: tuple[Trial, ...] = Field(min_length=1)
    decoding: Decoding


class RewriteSet(Frozen):
    """What a model was asked and said before the answers: the rewording model, over all rounds so far, or the
    routers."""

    answered: tuple[AnsweredShard, ...] = ()
    dead: tuple[DeadShard, ...] = ()


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


class AuditManifest(Frozen):
    """Everything the scorer needs, by reference."""

    audit_id: str
    suite: Suite
    card: ProtocolCard
    model_digest: str
    model_digest_verified: bool
    """Whether the endpoint itself reported the digest of the weights that it serves."""
    server: str
    backend: Backend | None = None
    """How the endpoint was spoken to."""
    items: str
    variants: str
    answered: tuple[AnsweredShard, ...]
    dead: tuple[DeadShard, ...]
    paraphraser: ParaphraserFacts | None = None
    """The model that reworded; None where the suite's strategy asks none."""
    transmitted: str | None = None
    """Digest of the RewriteSet of what the routers were asked and said; None where the suite has no routers."""
    router: ParaphraserFacts | None = None
    """The routers' model; None where the suite has no routers."""
