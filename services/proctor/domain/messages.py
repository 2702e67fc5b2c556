"""The messages between services, each with its task name and queue. Small JSON: ids, digests and settings.

A service sends a message by task name (`proctor.runtime.tasks.send`), so no service imports another. The router
is the only one that knows an audit's state; the others get what they need in the message and answer to it.
"""

from __future__ import annotations

from typing import ClassVar

from proctor.domain.base import Frozen
from proctor.domain.card import ContentDigests
from proctor.domain.decision import DecisionEvent
from proctor.domain.suite import Backend
from proctor.domain.trial import ANSWER_STAGE, Decoding

QUEUES = ("router", "perturbation", "inference", "scorer", "registry")
EVENTS_EXCHANGE = "proctor.events"


class Message(Frozen):
    """A message: its class names the task that handles it and the queue on which it travels."""

    task: ClassVar[str]

    @classmethod
    def queue(cls) -> str:
        """The queue is the service's name, the first part of the task's."""
        return cls.task.partition(".")[0]


class EndpointSpec(Frozen):
    """A model behind an endpoint, resolved: what an inference worker needs to ask it."""

    backend: Backend
    url: str
    served_name: str
    model_version: str | None
    """The pinned content hash, or a prefix of it; None where no version is pinned."""
    chat: bool = False


class StartAudit(Message):
    """Begin, or go on with, an audit whose record exists."""

    task: ClassVar[str] = "router.start"
    audit_id: str


class ProbeEndpoint(Message):
    """Ask an endpoint whether it serves the pinned model."""

    task: ClassVar[str] = "inference.probe"
    audit_id: str
    endpoint: EndpointSpec


class EndpointProbed(Message):
    """The answer to a probe. `model_digest` is full where the endpoint reports its weights."""

    task: ClassVar[str] = "router.endpoint_probed"
    audit_id: str
    ok: bool
    model_digest: str | None = None
    server: str = ""
    detail: str = ""


class BuildVariants(Message):
    """Reword the items of an audit. `items` is the digest of a JSON list of items in the artifact store."""

    task: ClassVar[str] = "perturbation.build"
    audit_id: str
    items: str
    settings: str
    """Digest of the suite's perturbation section in the artifact store."""
    rewordings: str | None = None
    """Digest of a JSONL of ready rewordings."""
    calibration: str | None = None
    """Digest of the calibration from which a calibrated gate takes its window."""
    benchmark: str
    contents: ContentDigests = ContentDigests()
    rewrites: str | None = None
    """Digest of the RewriteSet with everything that the rewording model has said so far."""


class VariantsBuilt(Message):
    """Variants are in the artifact store, or a model must be asked first (`prompts`), or they could not be made."""

    task: ClassVar[str] = "router.variants_built"
    audit_id: str
    variants: str | None = None
    """Digest of a VariantSet."""
    prompts: str | None = None
    """Digest of a PromptSet: what the rewording model must be asked before the variants can be built."""
    error: str | None = None


class RunShard(Message):
    """Ask a model a shard of prompts."""

    task: ClassVar[str] = "inference.run_shard"
    audit_id: str
    stage: str = ANSWER_STAGE
    """The stage of the audit whose ledger holds the shard."""
    shard_id: str
    attempt: int
    shard: str
    """Digest of the Shard in the artifact store."""
    endpoint: EndpointSpec
    decoding: Decoding
    deadline_s: float
    last_attempt: bool = False
    """Whether the shard is not asked again, so that a few trials without an answer are better than none with one."""


class ShardAnswered(Message):
    """A shard's completions are in the artifact store, or the attempt failed (`error`)."""

    task: ClassVar[str] = "router.shard_answered"
    audit_id: str
    stage: str = ANSWER_STAGE
    shard_id: str
    attempt: int
    completions: str | None = None
    error: str | None = None
    retryable: bool = True


class Reconcile(Message):
    """Re-publish what is overdue and finish what is complete, in every running audit."""

    task: ClassVar[str] = "router.reconcile"


class ScoreAudit(Message):
    """Grade the completions, weigh the evidence, decide, report."""

    task: ClassVar[str] = "scorer.score"
    audit_id: str
    manifest: str
    """Digest of the AuditManifest in the artifact store."""


class AuditScored(Message):
    """The decision is recorded and its event published, or scoring failed (`error`)."""

    task: ClassVar[str] = "router.scored"
    audit_id: str
    error: str | None = None


class WriteDecision(Message):
    """Write a decision to the model registry."""

    task: ClassVar[str] = "registry.write"
    event: DecisionEvent


class DecisionWritten(Message):
    """The registry holds the decision, or refused it (`error`)."""

    task: ClassVar[str] = "router.decision_written"
    audit_id: str
    registry_version: str | None = None
    error: str | None = None
