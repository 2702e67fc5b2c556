"""What a channel is: the one interface of those that Proctor brings and those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from proctor.domain.channel_results import ChannelEvidence, Figure, OtherEvidence, Section, Verdict
from proctor.domain.corpus_search import CorpusSearch
from proctor.domain.item import Item
from proctor.domain.limitation import Limitation
from proctor.domain.panel import Panel
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm
from proctor.evidence.perturbation.clean_control import NONE_ON_RECORD, OnRecord
from proctor.runtime.artifacts.calls import Call
from proctor.scorer.grading.rows import Rows
from proctor.scorer.page.phrases import VERDICT_WORDS

Messages = Iterable[tuple[tuple[Arm, str, int], str]]
"""(arm, item, router index) of a router's trial, and what it wrote. Not all need be in memory; each time that they are
gone through, they are read anew."""
StoredCalls = Iterable[Call]
"""The calls of a stage with what came back, read as `Messages` are."""
#: What a channel says of itself.
_TEXTS: Final = ("compares", "null_hypothesis", "needs", "gap")


class NotAudited(NamedTuple):
    """A channel that did not run, and why: a clause that can follow a colon."""

    reason: str


class FreshAsked(NamedTuple):
    """The fresh items that an audit asked."""

    items: Sequence[Item]
    panel: Panel | None
    """What reference models answered to these and to the benchmark; None where the suite names none."""


class ControlAsked(NamedTuple):
    """The control items of an audit."""

    items: Sequence[Item]
    n_reworded: int
    """Those of them with an admitted rewording."""


@dataclass(frozen=True)
class ChannelInputs:
    """What there is to compute a channel from."""

    suite: Suite
    items: Sequence[Item]
    """The items of the audit."""
    rows: Rows
    """Its graded trials."""
    clean_models: OnRecord = NONE_ON_RECORD
    """The clean models of which one may control a comparison."""
    messages: Messages = ()
    """What the routers wrote; nothing where the suite asks none."""
    stages: Mapping[str, StoredCalls] = field(default_factory=dict)
    """What was asked and said in the stages of plug-ins, by the stage's kind."""
    fresh: FreshAsked | None = None
    """None where the suite asks no fresh items."""
    searched: CorpusSearch | NotAudited | None = None
    """What was found in training data, or why nothing was searched; None where the suite names none."""
    control: ControlAsked | None = None
    """None where the suite asks no control items."""


class ChannelPlan(NamedTuple):
    """What a channel can say of an audit before it runs."""

    lines: tuple[str, ...] = ()
    """Sentences without a full stop, as the notes of a plan are."""
    calls: int = 0
    """Calls of any model that it adds to those of the canonical questions and the rewordings."""


class Printed(NamedTuple):
    """What a command prints of a channel beside the decision."""

    keys: Mapping[str, Any]
    """Members of the JSON form."""
    line: str


class Channel(ABC):
    """One line of evidence, with its own statistic, sign and null hypothesis.

    A subclass says in class attributes what it is, and computes a verdict. All else has a default that does for most.
    A plug-in's channel is asked for its verdict, its limitations and its plan; what the page shows of it stands in its
    result, because a page is made from the report's document alone.
    """

    compares: str
    """What is set against what, and when that is suspicious: a sentence or two."""
    null_hypothesis: str
    """What would hold if the model were clean: a sentence."""
    needs: str
    """What it is computed from: the object of `it needs …`."""
    gap: str
    """What is not known where it was not audited: a sentence."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _TEXTS:
            if not isinstance(getattr(cls, name, None), str):
                raise TypeError(
                    f"the channel {cls.__name__} says nothing of {name}, which is to be a text of its class"
                )

    @abstractmethod
    def weigh(self, inputs: ChannelInputs) -> ChannelEvidence | NotAudited:
        """Compute the verdict. The same inputs give the same result: draws have a seed of the suite.

        A plug-in's channel answers with what `found` makes. What cannot be known is `NotAudited` or `invalid`, and
        never `clean`.

        Raises:
            StoreError: an input cannot be read. It is read again; whatever else a plug-in raises makes it `invalid`.
        """

    def found(
        self,
        verdict: Verdict,
        *reasons: str,
        figures: Mapping[str, Figure] | None = None,
        section: Section | None = None,
    ) -> OtherEvidence:
        """The result of a plug-in's channel, worded as the channel words itself.

        Args:
            verdict: what it says of the audit.
            reasons: one sentence or more, the deciding one first; at most 20.
            figures: the numbers behind it, by name.
            section: a table for the report's page.
        """
        return OtherEvidence(
            verdict=verdict,
            reasons=reasons,
            null_hypothesis=self.null_hypothesis,
            compares=self.compares,
            wording=self.word(verdict),
            figures=dict(figures or {}),
            section=section,
        )

    def word(self, verdict: Verdict) -> str:
        """How the report words a verdict."""
        return VERDICT_WORDS[verdict]

    def limitations(self, suite: Suite, result: ChannelEvidence | None) -> tuple[Limitation, ...]:
        """What an audit cannot say because of how this channel turned out.

        Args:
            suite: the audit's.
            result: what it found; None where it did not run, which the report says by itself, with `gap`.
        """
        return ()

    def section(self, result: ChannelEvidence) -> Section | None:
        """Its own section of the report's page; None where it has nothing more to show."""
        return result.section if isinstance(result, OtherEvidence) else None

    def sections(self, result: ChannelEvidence) -> tuple[Section, ...]:
        """All of them, where it has more than one; of built-in channels alone."""
        section = self.section(result)
        return () if section is None else (section,)

    def plan(self, suite: Suite, items: int) -> ChannelPlan:
        """What it can say of the audit of so many items, before anything runs."""
        return ChannelPlan()

    def files(self, result: ChannelEvidence) -> Mapping[str, bytes]:
        """Files to lie beside the report, by name; of built-in channels alone."""
        return {}

    def printed(self, result: Mapping[str, Any], folder: Path) -> Printed | None:
        """What a command prints of it; of built-in channels alone.

        Args:
            result: what it found, as it stands in the report's document.
            folder: where the report lies, with the channel's `files`.
        """
        return None
