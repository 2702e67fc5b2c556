"""What the router knows of an audit beside its state: what it is made of, and how far its own steps have brought it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from proctor.domain.asked import AskedModels
from proctor.domain.base import Frozen
from proctor.domain.card import ContentDigests
from proctor.domain.corpus_search import Searched
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.log_origin import LogOrigin
from proctor.domain.looks import LookItems, LookSeen
from proctor.domain.messages import Priority
from proctor.domain.submitter import LOCAL_NAME
from proctor.domain.trial import PARAPHRASE_STAGE, Decoding
from proctor.domain.versions import added
from proctor.domain.weights import Weights
from proctor.router.terms import Role, Terms

#: What comes from outside while an audit runs, from whoever submits or steers it, and not from its own steps.
_STEERED = frozenset(
    {
        "endpoint",
        "paraphraser",
        "router",
        "solvers",
        "in_force",
        "priority",
        "paused",
        "terms",
        "submitter",
        "corpora",
    }
)
#: What two routers may note at the same time, and neither stands in the other's way.
_NOTED = frozenset({"planned_stage", "searched"})


class RewritingRound(Frozen):
    """A round of questions to the model that rewords, while it is under way."""

    number: int
    prompts: str
    """Digest of the PromptSet that is asked."""
    decoding: Decoding

    @property
    def stage(self) -> str:
        """The ledger's name of it."""
        return f"{PARAPHRASE_STAGE}-{self.number}"


class Asking(Frozen):
    """Where a stage is that is begun again where nothing was answered: a plug-in's, or the answering check's."""

    times: int = 1
    """Times that it was begun; one in which nothing was answered is asked again as another."""
    said: str | None = None
    """Digest of the RewriteSet of what came of it."""


class Looked(Frozen):
    """A look after which an audit went on."""

    manifest: str
    """Digest of the AuditManifest of all that was asked by then."""
    seen: LookSeen


class AuditInputs(Frozen):
    """Everything by reference that an audit is made of, and what is known of it once it runs.

    The second part says where the audit goes on when it is started again: each stage knows by it whether it is due
    (`proctor.router.stages.registry`).
    """

    items: str
    """Digest of the ItemIndex."""
    perturbation: str
    rewordings: str | None
    contents: ContentDigests
    endpoint: EndpointSpec
    paraphraser: EndpointSpec | None = None
    """The endpoint of the model that rewords; None where no strategy asks one."""
    router: EndpointSpec | None = None
    """The endpoint of the routers; None where the suite asks none."""
    solvers: tuple[EndpointSpec, ...] = Field(default=(), exclude_if=lambda solvers: not solvers)
    """The endpoints of the solvers of the answering check. Not written where there are none."""
    in_force: AskedModels | None = added(None, since=5)
    """What of the suite's settings these endpoints are sent, which the card says; None where it was not looked at, by
    an earlier version, whose cards say that all of it was."""
    calibration: str | None = None
    questions: str | None = added(None, since=2)
    """Digest of the QuestionSet, where the gate keeps a margin to the benchmark's other items."""
    log: LogOrigin | None = added(None, since=2)
    """Where the answers come from, where they were taken from logs."""
    fresh: str | None = added(None, since=3)
    """Digest of the ItemIndex of the fresh items, where the suite asks such."""
    panel: str | None = added(None, since=3)
    """Digest of the Panel of reference models, where the suite names one."""
    corpora: str | None = added(None, since=4)
    """Digest of the CorpusPlan of the training data that are searched, where the suite names any."""
    control: str | None = added(None, since=4)
    """Digest of the ItemIndex of the control items, where the suite asks such."""
    looks: tuple[LookItems, ...] = added((), since=6)
    """What is asked before each look, in order, where the design is sequential: parts of the items above."""

    model_digest: str | None = None
    model_digest_verified: bool = False
    """Whether the endpoint reported a digest, however it knows it."""
    weights: Weights | None = added(None, since=5)
    """How the digest is known, where it is proven."""
    server: str = ""
    rounds: int = 0
    """Rounds that were begun with the model that rewords."""
    rewriting: RewritingRound | None = None
    """The round that is under way."""
    rewrites: str | None = None
    """Digest of the RewriteSet of the rounds that have ended."""
    proposed: str | None = Field(default=None, exclude_if=lambda proposed: proposed is None)
    """Digest of the VariantIndex of which the answering check is made. Not written where there is none."""
    proposed_control: str | None = added(None, since=4)
    """The same of the control items."""
    checking: tuple[Asking, ...] = Field(default=(), exclude_if=lambda checking: not checking)
    """Where the answering check is with each solver that was begun to be asked. Not written where there is none."""
    variants: str | None = None
    """Digest of the VariantIndex. It stays what it is from then on, whatever becomes of the variant library."""
    control_variants: str | None = added(None, since=4)
    """Digest of the VariantIndex of the control items, once `variants` are there."""
    transmissions: int = 1
    """Times that the routers were begun to be asked; one in which none of them answered is asked again as another."""
    transmitted: str | None = None
    """Digest of the RewriteSet of what the routers wrote."""
    asked: Mapping[str, Asking] = Field(default_factory=dict, exclude_if=lambda asked: not asked)
    """Where the stages of plug-ins are, by their kind. Not written where there are none."""
    planned_stage: str | None = None
    """The stage that the ledger has a plan of, or had: noted before any of it is handed out. A ledger without that plan
    lost it."""
    searched: Searched | None = added(None, since=4)
    """How the search of training data ended; None while it is under way, and where there is none."""
    manifest: str | None = None
    """Digest of the AuditManifest that is to be scored."""
    looked: tuple[Looked, ...] = added((), since=6)
    """The looks after which it went on. What was reworded above is then for the next one."""
    priority: Priority = Priority.NORMAL
    """Which audits' shards go first where several ask the same endpoint."""
    paused: bool = False
    """Whether nothing more is handed out; what was handed out before is recorded when it is answered."""
    terms: Terms = Terms()
    """What it may use, as whoever started it last said, and what its tokens cost."""
    submitter: str = Field(default=LOCAL_NAME, exclude_if=lambda name: name == LOCAL_NAME)
    """Who started it last. Not written for the machine's own terminal, as in rows of before there were names."""

    @property
    def own(self) -> dict[str, Any]:
        """What the audit's own steps have brought it to: all but what comes from outside while it runs, and notes."""
        return self.model_dump(exclude=set(_STEERED | _NOTED))

    @property
    def look(self) -> int | None:
        """Number of the look that comes next, from 1; None where the design has none."""
        return len(self.looked) + 1 if self.looks else None

    @property
    def asked_now(self) -> LookItems:
        """The items that are reworded and asked now: all of them, or those until the next look."""
        if self.looks:
            return self.looks[len(self.looked)]
        return LookItems(n_items=0, items=self.items, fresh=self.fresh, control=self.control)

    @property
    def searching(self) -> bool:
        """Whether training data are still to be searched."""
        return self.corpora is not None and self.searched is None

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of all servers that the audit asks, each once."""
        found = (*(self.endpoint_of(role) for role in Role if role is not Role.CHECKING), *self.solvers)
        return tuple(dict.fromkeys(endpoint.pool for endpoint in found if endpoint is not None))

    def endpoint_of(self, role: Role, which: int = 0) -> EndpointSpec | None:
        """Where the model of a role is asked, and which of it, from 0; None where the audit has none."""
        if role is Role.CHECKING:
            return self.solvers[which] if which < len(self.solvers) else None
        return {Role.AUDITED: self.endpoint, Role.REWORDING: self.paraphraser, Role.ROUTING: self.router}[role]
