"""The messages between services, each with its task name and queue. Small JSON: ids, digests and settings.

A message has a version, which travels beside it (`proctor.runtime.messaging.versions`). A field that is added later has
a default and is written with `proctor.domain.versions.added`: whatever does without it is still a message of version 1.
A document that a message names by its digest is a part of it in this: who adds a field to the document raises the
version of the message that brings it.

A service sends a message by task name (`proctor.runtime.messaging.tasks.send`), so no service imports another. The
router is the only one that knows an audit's state; the others get what they need in the message and answer to it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.card import ContentDigests
from proctor.domain.corpus_search import Searched
from proctor.domain.decision import DecisionEvent
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.looks import LookSeen
from proctor.domain.manifest import AnsweredShard
from proctor.domain.trial import ANSWER_STAGE, Decoding
from proctor.domain.versions import added, needed_version
from proctor.domain.weights import Weights

#: What every deployment runs.
SERVICES = ("router", "perturbation", "inference", "scorer", "registry")
NOTIFIER = "notifier"
#: What a deployment runs that tells somebody of its decisions.
OPTIONAL_SERVICES = (NOTIFIER,)
#: Rooms whose tasks a service's workers handle beside its own, from a queue of the room's name that they look into
#: last. A search of training data reads files and asks nobody, mostly when rewordings are made already.
ALSO_HANDLED = {"perturbation": ("exposure",)}
EVENTS_EXCHANGE = "proctor.events"


class Priority(StrEnum):
    """Which audits' shards go first. Each has a queue of its own: Redis knows no priorities inside one."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    @property
    def suffix(self) -> str:
        """Of the queue's name behind the service's."""
        return "" if self is Priority.NORMAL else f".{self.value}"


#: In the order in which a worker looks into them, the most urgent first.
QUEUES = {
    service: tuple(f"{service}{priority.suffix}" for priority in Priority)
    if service == "inference"
    else (service, *ALSO_HANDLED.get(service, ()))
    for service in (*SERVICES, *OPTIONAL_SERVICES)
}
#: Every room → the service whose workers handle its tasks: the first part of a task's name is a room's.
HANDLED_BY = {service: service for service in QUEUES} | {
    room: service for service, rooms in ALSO_HANDLED.items() for room in rooms
}


class Message(Frozen):
    """A message: its class names the task that handles it, and it knows the queue on which it travels."""

    task: ClassVar[str]

    @classmethod
    def room(cls) -> str:
        """The room whose task handles it: the first part of the task's name."""
        return cls.task.partition(".")[0]

    @property
    def queue(self) -> str:
        """The queue is the room's name."""
        return self.room()

    @property
    def version(self) -> int:
        """The earliest version of this message that says the same, in which it is written."""
        return needed_version(self)


class StartAudit(Message):
    """Begin, or go on with, an audit whose record exists."""

    task: ClassVar[str] = "router.start"
    audit_id: str


class TakeOn(Message):
    """Go on with an audit where it is, e.g. one that was paused."""

    task: ClassVar[str] = "router.take_on"
    audit_id: str


class ProbeEndpoint(Message):
    """Ask an endpoint whether it serves the pinned model."""

    task: ClassVar[str] = "inference.probe"
    audit_id: str
    endpoint: EndpointSpec
    tried: int = 0
    """How often it was found away before."""


class EndpointProbed(Message):
    """The answer to a probe. `model_digest` is full where the endpoint reports its weights."""

    task: ClassVar[str] = "router.endpoint_probed"
    audit_id: str
    ok: bool
    model_digest: str | None = None
    server: str = ""
    detail: str = ""
    unavailable: bool = False
    """Where it is not `ok`: whether the endpoint was not there, and may be in a moment."""
    tried: int = 0
    """As the probe said."""
    weights: Weights | None = added(None, since=2)
    """How the digest is known; None where it is declared, or there is none."""


class VariantsToCheck(Frozen):
    """Variants that were built, with what the solvers of the answering check said of them."""

    variants: str
    """Digest of the VariantIndex."""
    answers: tuple[str, ...]
    """Digests of a RewriteSet each, in the order of the suite's solvers."""
    extractor: str
    """As the suite names it."""
    control: str | None = added(None, since=4)
    """Digest of the VariantIndex of the control items, which the same solvers answered, where the suite has such."""


class BuildVariants(Message):
    """Reword the items of an audit, or say which of its variants are held. `items` is the digest of an ItemIndex."""

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
    check: VariantsToCheck | None = added(None, since=2)
    """The variants are there, and the solvers were asked: which are held."""
    questions: str | None = added(None, since=2)
    """Digest of the QuestionSet of the whole benchmark, where the gate keeps a margin to its other items."""
    control: str | None = added(None, since=4)
    """Digest of the ItemIndex of the control items, which are reworded alike, where the suite has such."""
    look: int | None = added(None, since=5)
    """Number of the look that the items come before, where the design is sequential."""


class VariantsBuilt(Message):
    """Variants are in the artifact store, or a model must be asked first (`prompts`), or they could not be made."""

    task: ClassVar[str] = "router.variants_built"
    audit_id: str
    variants: str | None = None
    """Digest of a VariantIndex."""
    prompts: str | None = None
    """Digest of a PromptSet: what the rewording model must be asked before the variants can be built."""
    error: str | None = None
    checked: bool = added(False, since=2)
    """Whether the answering check has been made of `variants`."""
    control: str | None = added(None, since=3)
    """Digest of the VariantIndex of the control items, where the suite has such."""
    look: int | None = added(None, since=4)
    """As the request said: what comes of the items before an earlier look is late."""


class ShardToRun(Frozen):
    """One shard of those that a worker is asked together."""

    shard_id: str
    attempt: int
    shard: str
    """Digest of the Shard in the artifact store."""
    last_attempt: bool = False
    """Whether the shard is not asked again, so that a few trials without an answer are better than none with one."""


class SearchCorpus(Message):
    """Search training data for the items of an audit. `items` is the digest of an ItemIndex."""

    task: ClassVar[str] = "exposure.search"
    audit_id: str
    items: str
    plan: str
    """Digest of the CorpusPlan in the artifact store."""
    parts: str | None = None
    """Digest of the SearchedParts, where its shards were searched; None for who searches all of it by himself."""


class SearchShardOfCorpus(Message):
    """Search a shard of training data for the items of an audit."""

    task: ClassVar[str] = "exposure.search_shard"
    audit_id: str
    items: str
    plan: str
    shard: str
    """Digest of the SearchShard."""
    shard_id: str
    attempt: int


class ShardOfCorpusSearched(Message):
    """What came of a shard of training data is in the artifact store, or the attempt failed (`error`)."""

    task: ClassVar[str] = "router.shard_of_corpus_searched"
    audit_id: str
    plan: str
    shard_id: str
    attempt: int
    found: str | None = None
    """Digest of the SearchedShard."""
    error: str | None = None
    retryable: bool = True


class CorpusSearched(Message):
    """What a search of training data found is in the artifact store, or why there is nothing."""

    task: ClassVar[str] = "router.corpus_searched"
    audit_id: str
    plan: str
    """As the request said: what answers to another plan is late."""
    searched: Searched


class RunShards(Message):
    """Ask a model shards of prompts. Several travel together where the model is quick: a message costs the same."""

    task: ClassVar[str] = "inference.run_shards"
    audit_id: str
    stage: str = ANSWER_STAGE
    """The stage of the audit whose ledger holds the shards."""
    shards: tuple[ShardToRun, ...] = Field(min_length=1)
    endpoint: EndpointSpec
    decoding: Decoding
    deadline_s: float
    priority: Priority = Priority.NORMAL
    fresh: bool = added(False, since=2)
    """Whether fresh items are among what is asked: a worker of before there were any cannot read their shards."""
    control: bool = added(False, since=3)
    """The same of control items."""
    replicates: int = added(1, since=3)
    """How often each prompt is asked, each time by a seed of its own (`proctor.domain.replicates`)."""

    @property
    def queue(self) -> str:
        """The service's queue of this priority."""
        return super().queue + self.priority.suffix


class ShardAnswer(Frozen):
    """A shard's completions are in the artifact store, or the attempt failed (`error`)."""

    shard_id: str
    attempt: int
    completions: str | None = None
    """Digest of the CompletionSet."""
    error: str | None = None
    retryable: bool = True
    handed_back: bool = False
    """With `error`: the worker is leaving and did not get to it, which is nobody's failure."""
    unreachable: bool = False
    """With `error`: no trial of it got an answer, so the endpoint may be away."""
    n_trials: int = 0
    seconds: float = 0.0
    """How long the worker took over the shard, beside others that it asked at the same time."""
    input_tokens: int = 0
    """Of all trials, as far as the endpoint reports them."""
    output_tokens: int = 0
    n_refused: int = added(0, since=2)
    """Trials that ended with an error for good, which its completions say."""


class ShardsAnswered(Message):
    """What became of shards that a worker was asked. They may be fewer than it was asked together."""

    task: ClassVar[str] = "router.shards_answered"
    audit_id: str
    stage: str = ANSWER_STAGE
    answers: tuple[ShardAnswer, ...] = Field(min_length=1)
    seconds: float = 0.0
    """How long the worker took over all of them."""


class GradeShards(Message):
    """Grade shards as they are answered, so that little is left to do when the last one is."""

    task: ClassVar[str] = "scorer.grade"
    audit_id: str
    items: str
    """Digest of the audit's ItemIndex."""
    extractor: str
    """As the suite names it."""
    shards: tuple[AnsweredShard, ...] = Field(min_length=1)
    fresh: str | None = added(None, since=2)
    """Digest of the ItemIndex of the fresh items, where the suite asks such."""
    control: str | None = added(None, since=3)
    """Digest of the ItemIndex of the control items, where the suite asks such."""


class ShardsGraded(Message):
    """Grades are in the artifact store: digests of GradeSets, in the order of the shards that were to be graded."""

    task: ClassVar[str] = "router.shards_graded"
    audit_id: str
    graded: tuple[AnsweredShard, ...] = Field(min_length=1)
    """The shards, each with the digest of its grades."""


class Reconcile(Message):
    """Re-publish what is overdue and finish what is complete, in every running audit."""

    task: ClassVar[str] = "router.reconcile"


class ScoreAudit(Message):
    """Grade the completions, weigh the evidence, decide, report."""

    task: ClassVar[str] = "scorer.score"
    audit_id: str
    manifest: str
    """Digest of the AuditManifest in the artifact store."""
    fresh: bool = added(False, since=2)
    """Whether the manifest names fresh items, of which an earlier scorer knows nothing."""
    searched: Searched | None = added(None, since=3)
    """How the search of training data ended, where the suite has one."""
    control: bool = added(False, since=3)
    """The same of control items."""
    replicates: int = added(1, since=3)
    """How often each prompt was asked; an earlier scorer takes more answers for a mistake."""
    proven: bool = added(False, since=4)
    """Whether the manifest says that the weights are proven, of which an earlier scorer knows nothing."""
    look: int | None = added(None, since=5)
    """Number of the look that the manifest is of, after which the audit may go on; an earlier scorer would decide."""


class AuditScored(Message):
    """The decision is recorded and its event published, or the audit goes on (`seen`), or scoring failed (`error`)."""

    task: ClassVar[str] = "router.scored"
    audit_id: str
    error: str | None = None
    look: int | None = added(None, since=2)
    """As the request said: what is said of an earlier look is late."""
    seen: LookSeen | None = added(None, since=2)
    """What the look found after which the audit asks further items; None where it has ended."""


class WriteDecision(Message):
    """Write a decision to the model registry."""

    task: ClassVar[str] = "registry.write"
    event: DecisionEvent
    """Of the audit because of which is written; what is written stands on record."""
    attempt: int = added(0, since=2)
    """How often the registry did not answer."""


class DecisionWritten(Message):
    """The registry holds the decision, or refused it (`error`)."""

    task: ClassVar[str] = "router.decision_written"
    audit_id: str
    registry_version: str | None = None
    error: str | None = None


class TellOf(Message):
    """Tell those of an audit's decision who are to be told, once each."""

    task: ClassVar[str] = "notifier.tell_of"
    audit_id: str


class DeliverNotifications(Message):
    """Look for decisions that nobody was told of yet, and send what is due."""

    task: ClassVar[str] = "notifier.deliver"


class NotUnderstood(Message):
    """A message of an audit was given back again and again, and no worker was there that knows its version."""

    task: ClassVar[str] = "router.not_understood"
    audit_id: str
    detail: str
