"""What a stage of an audit is: one interface, behind which nobody asks which stage it is.

Every stage goes the same way through the ledger: its trials are cut into shards, handed out, answered or given up
(`proctor.router.dispatch`). What differs from stage to stage is here: whom it asks, its parts and their shards, what
becomes of its answers, and what comes next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Decoding, Shard
from proctor.router.audit import AuditView
from proctor.router.inputs import AuditInputs
from proctor.router.stages.outcome import StageOutcome
from proctor.router.terms import Role
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.records.audit_state import AuditState

NOTHING_TO_ASK = "no item has a rewording, so there is nothing to ask"


class StageParts(NamedTuple):
    """How a stage is cut into parts, each of which is planned by itself."""

    n: int
    n_trials: int | None
    """Of the whole stage; None where only planning all of it would tell."""


@dataclass(frozen=True)
class Ending:
    """What the end of a stage makes of its audit."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of its inputs."""
    after: AuditState | None = None
    """What comes next; None: the next stage that is due, once the inputs are changed."""
    failure: str | None = None
    """Why the audit fails; None where it goes on."""


class Stage(ABC):
    """One part of an audit that asks a model.

    A stage holds nothing of an audit: it is told by its row, and is the same for all of them. Its answers come in any
    order, each may come twice, and every method may be called again: the same row gives the same.
    """

    kind: ClassVar[str]
    """The ledger's name of it, before a number: lower-case letters and '_'."""
    state: ClassVar[AuditState]
    """The state of an audit while this stage is under way."""
    asks: ClassVar[Role]
    """Whose endpoint is asked, at whose price."""
    asks_several: ClassVar[bool] = False
    """Whether there are several models of that role; the first number in its name then says which, from 1."""
    asked_for: ClassVar[str]
    """What its model is asked for, as a person would say it, in the plural."""
    counted_as: ClassVar[str] = "trials"
    """What its trials are called where they are counted."""
    graded: ClassVar[bool] = False
    """Whether its answers are graded as they come in."""

    @abstractmethod
    def is_due(self, audit: AuditView) -> bool:
        """Whether it is what an audit goes on with, where no stage before it is due."""

    def name(self, inputs: AuditInputs) -> str:
        """The ledger's name of it now: its kind, with '-' and a number where it can be begun more than once."""
        del inputs
        return self.kind

    @abstractmethod
    def model(self, audit: AuditView) -> str:
        """Which model is asked, in words."""

    @abstractmethod
    def endpoint(self, audit: AuditView) -> EndpointSpec:
        """Where it is asked."""

    @abstractmethod
    def decoding(self, audit: AuditView) -> Decoding:
        """How its answers are drawn."""

    @abstractmethod
    def parts(self, audit: AuditView, store: ArtifactStore) -> StageParts:
        """How it is cut into parts. Without a part there is nothing to ask, which fails the audit."""

    @abstractmethod
    def shards(self, audit: AuditView, store: ArtifactStore, part: int, shard_trials: int) -> Iterator[Shard]:
        """The shards of one part, in the order in which they should run.

        The same on every call with the same size. No other part has any of its trials. Each is made when it is asked
        for: the prompts of a part may be hundreds of times as large as its items.

        Args:
            part: which, from 0.
            shard_trials: trials of a shard, at most; fewer where models write.

        Raises:
            BadInputError: when a prompt would be too large.
        """

    def calls(self, items: int) -> int | None:
        """How many prompts it asks about so many items, for the plan of an audit; None where only the audit tells."""
        return None

    @abstractmethod
    def ending(self, audit: AuditView, outcome: StageOutcome, store: ArtifactStore) -> Ending:
        """What follows now that every shard is answered or given up, and not too many were given up.

        The same outcome ends a stage the same way, however often: nothing is changed but the artifact store.
        """


class StageUnderWay(NamedTuple):
    """A stage whose shards are handed out now, and whom it asks."""

    stage: Stage
    name: str
    """The ledger's name of it."""
    model: str
    endpoint: EndpointSpec
    decoding: Decoding


def none_answered(model: str, outcome: StageOutcome, cause: str) -> str:
    """Why a stage in which models write failed: not one of them did."""
    return f"{model} answered none of {outcome.n_trials} prompts; the first failure: {cause}"
