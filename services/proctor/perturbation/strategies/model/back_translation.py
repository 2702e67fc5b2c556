"""Into another language and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from proctor.domain.item import Item
from proctor.perturbation.strategies.model.calls import Calls
from proctor.perturbation.strategies.model.strategy import ModelStrategy, Said


class BackTranslation(ModelStrategy):
    """Two calls: the question into another language, each candidate into another one, and from there into English.

    For benchmarks in English.
    """

    name = "back_translation"
    calls: ClassVar[int] = 2

    @property
    def _ways(self) -> int:
        return len(self._model.instructions.content.back_translation.languages)

    def _asked(self, question: str, way: int, item: Item, calls: Calls) -> tuple[Said, Mapping[str, Any]]:
        given = self._model.instructions.content.back_translation
        language = given.languages[way]
        there = self._read(self._ask(calls, given.there, given.cue, question, language=language), question)
        back = self._ask(calls, given.back, given.cue, there.wording, language=language)
        return self._read(back, there.wording, question=question, item=item), {"language": language}
