"""What strategies that ask a model share: the model they ask, what they declare, and alternatives that ask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

from proctor.domain.canonical import json_digest
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import ParaphraserSection, PerturbationSection
from proctor.domain.trial import Completion
from proctor.perturbation.admission.gate import UNCHANGED
from proctor.perturbation.candidate import Draft, seeded_rank
from proctor.perturbation.strategies.base import Strategy
from proctor.perturbation.strategies.model.calls import Calls, ModelRewrite, NoRewordingError
from proctor.perturbation.strategies.model.instructions import (
    LoadedInstructions,
    load_instructions,
    prompt_of,
    tag_of,
)
from proctor.perturbation.strategies.model.replies import NoWording, read_reply
from proctor.perturbation.strategies.unreadable import unreadable, unreadable_text
from proctor.text.normalise import canonical_text


class RewordingModel(NamedTuple):
    """The model that is asked, how, and with which instructions."""

    name: str
    settings: ParaphraserSection
    instructions: LoadedInstructions

    @classmethod
    def of(cls, section: PerturbationSection, strategy: str) -> RewordingModel:
        """The model of a suite.

        Raises:
            BadInputError: when the suite names none, or instructions that do not exist.
        """
        if section.paraphrase_model is None:
            raise BadInputError(
                f"perturbation_strategy {strategy!r} needs paraphrase_model, the model that rewords the items: name "
                "it in perturbation_config, and its endpoint in paraphraser.endpoint where it is not the audited one's"
            )
        return cls(section.paraphrase_model, section.paraphraser, load_instructions(section.paraphraser.templates))

    @property
    def digest(self) -> str:
        """Digest of all that decides what the model is asked; where it is asked decides nothing."""
        return json_digest(
            {
                "model": self.name,
                "version": self.settings.version,
                "chat_template": self.settings.chat_template,
                "decoding": self.settings.decoding.plain(),
                "instructions": self.instructions.digest,
            }
        )


class Said(NamedTuple):
    """A wording that the model gave, and the digest of its weights where the endpoint reports one."""

    wording: str
    model_digest: str | None


class ModelStrategy(Strategy):
    """A strategy whose alternatives are what a model says to differently worded instructions; options are left alone.

    The model never sees the options or the answer, so it cannot word a question towards one of them. The draft is
    reworded as the strategies before it left it.
    """

    calls: ClassVar[int] = 1
    #: Raise with any change to how replies are read, so that the library does not answer with an older reading's.
    version: ClassVar[int] = 1
    #: A model promises nothing of the question.
    preserves: ClassVar[frozenset[str]] = frozenset({"options"})

    def __init__(self, model: RewordingModel) -> None:
        self._model = model
        self._digest = model.digest

    @classmethod
    def of(cls, settings: PerturbationSection) -> Self:
        """The strategy with the model of a suite; see `RewordingModel.of`."""
        return cls(RewordingModel.of(settings, cls.name))

    def data_digest(self, item: Item) -> str:
        """The strategy's version, and the digest of the model, its decoding and its instructions."""
        return f"{self.name}/{self.version} {self._digest}"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[ModelRewrite]:
        """`limit` alternatives: the instructions in turn, in an order that the seed and the item's content decide."""
        if unreadable(item) is not None:
            return []
        key = item.content_hash
        order = sorted(range(self._ways), key=lambda way: seeded_rank(self.name, seed, key, way))
        return [ModelRewrite(partial(self._reword, item, order[number % self._ways])) for number in range(limit)]

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Only a text that cannot be sent is not reworded."""
        return unreadable(item) or ("no_candidate", "no wording was asked for")

    @property
    @abstractmethod
    def _ways(self) -> int:
        """How many different ways there are to ask."""

    @abstractmethod
    def _asked(self, question: str, way: int, item: Item, calls: Calls) -> tuple[Said, Mapping[str, Any]]:
        """The wording that one way of asking gives, and what is worth knowing of the way."""

    def _reword(self, item: Item, way: int, draft: Draft, calls: Calls) -> Draft:
        fault = unreadable_text(draft.question)
        if fault is not None:
            raise NoRewordingError(*fault)
        said, facts = self._asked(draft.question, way, item, calls)
        # An option's new place or another strategy's change would hide from the gate that the model changed nothing.
        if canonical_text(said.wording) == canonical_text(draft.question):
            raise NoRewordingError(UNCHANGED, "the model replied with the original")
        digest = {} if said.model_digest is None else {"model_digest": said.model_digest}
        templates = self._model.instructions.content.version
        noted = draft.noting(self.name, model=self._model.name, templates=templates, **facts, **digest)
        return replace(noted, question=said.wording)

    def _ask(self, calls: Calls, paragraphs: Sequence[str], cue: str, shown: str, **values: str) -> Completion:
        """One call about the text that is shown.

        Raises:
            UnansweredError: when the model has not been asked yet.
        """
        if self._model.settings.chat_template == "none":
            paragraphs = (*paragraphs, cue)
        return calls.ask(prompt_of(paragraphs, shown, values))

    def _read(
        self, completion: Completion, shown: str, *, question: str | None = None, item: Item | None = None
    ) -> Said:
        """The wording in a reply.

        Args:
            completion: what came back.
            shown: the text that the model worked on.
            question: the draft's, where the model worked on another text.
            item: whose answer the wording must not tell; None where nobody is asked in this wording.

        Raises:
            NoRewordingError: when the reply is of no use.
        """
        target, choices = ("", ()) if item is None else (item.target, item.choices)
        wording = read_reply(completion, shown, tag_of(shown), question=question, target=target, choices=choices)
        if isinstance(wording, NoWording):
            raise NoRewordingError(*wording)
        return Said(wording, completion.model_digest)
