"""Strategies that ask once: paraphrases, and the paper's clean and noisy routers (arXiv 2603.21636, section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from proctor.domain.item import Item
from proctor.perturbation.strategies.model.calls import Calls
from proctor.perturbation.strategies.model.instructions import Instructed
from proctor.perturbation.strategies.model.strategy import ModelStrategy, Said


class _AskingOnce(ModelStrategy):
    """One call: an instruction, and the question."""

    @property
    def _ways(self) -> int:
        return len(self._instructed.instructions)

    @property
    def _instructed(self) -> Instructed:
        instructed: Instructed = getattr(self._model.instructions.content, self.name)
        return instructed

    def _asked(self, question: str, way: int, item: Item, calls: Calls) -> tuple[Said, Mapping[str, Any]]:
        given = self._instructed
        completion = self._ask(calls, given.prompt, given.cue, question, instruction=given.instructions[way])
        return self._read(completion, question, item=item), {"instruction": way}


class ParaphraseLlm(_AskingOnce):
    """The article's strategy: the model rewords the question, each candidate by another instruction."""

    name = "paraphrase_llm"


class ForwardFull(_AskingOnce):
    """The paper's clean router: the model transmits the whole question and does not answer it."""

    name = "forward_full"


class NoisyRewrite(_AskingOnce):
    """The paper's noisy router: the model deletes a part, rewrites the rest and adds noise.

    Most of what it makes is no variant, because what it deletes decides the answer; the gate turns that away.
    """

    name = "noisy_rewrite"
    preserves: ClassVar[frozenset[str]] = frozenset()
