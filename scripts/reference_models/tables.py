"""A world as arrays of token ids, from which batches are cut without touching text again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from proctor.inference.reference.model import Vocabulary
from reference_models.facts import LETTERS, OPTIONS, World, ask, render
from reference_models.wordings import WORDINGS

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Forms:
    """A batch of ways to ask items: row i asks item `item[i]` in wording `wording[i]` with value ids `options[i]`.

    `target` is the letter's index.
    """

    item: Ints
    wording: Ints
    options: Ints
    target: Ints


class Tables:
    """Everything about a world that prompts are made of: row i of each array belongs to item i."""

    def __init__(self, world: World) -> None:
        wordings = [[ask(item, number) for number in range(len(WORDINGS[item.relation]))] for item in world.items]
        pools = [world.values[item.relation] for item in world.items]
        texts = [render(text, item.options) for item, row in zip(world.items, wordings, strict=True) for text in row]
        self.vocabulary = Vocabulary.of([*texts, *(" ".join(pool) for pool in pools)])
        self.wordings = np.array([len(row) for row in wordings])
        self.canonical_wording = np.array([item.wording for item in world.items])
        self.entity = self._words([item.entity] for item in world.items)[:, 0]
        self.pool = self._words(pools)
        self.value = self._words([item.value] for item in world.items)[:, 0]
        self.options = self._words(item.options for item in world.items)
        self.labels = self._words([[f"{letter}." for letter in LETTERS]])[0]
        self._question = self._questions(wordings)
        self._before_options = np.array(self.vocabulary.encode("Options:"))
        self._after_options = np.array(self.vocabulary.encode("Answer:"))
        self.tokens_after_question = len(self._before_options) + 2 * OPTIONS + len(self._after_options)

    def _words(self, rows: Iterable[Sequence[str]]) -> Ints:
        """Ids of rows of single words."""
        return np.array([[self.vocabulary.encode(word)[0] for word in row] for row in rows])

    def _questions(self, wordings: list[list[str]]) -> Ints:
        """Every question, (item, wording, length), padded on the left."""
        encoded = [[self.vocabulary.encode(f"Question: {text}") for text in row] for row in wordings]
        width = max(len(ids) for row in encoded for ids in row)
        table = np.full((len(encoded), max(map(len, encoded)), width), self.vocabulary.pad_id)
        for item, row in enumerate(encoded):
            for wording, ids in enumerate(row):
                table[item, wording, width - len(ids) :] = ids
        return table

    def canonical(self, item: Ints) -> Forms:
        """The items in their canonical form."""
        return self._forms(item, self.canonical_wording[item], self.options[item])

    def reworded(self, item: Ints, rng: np.random.Generator, *, wording: bool = True, order: bool = True) -> Forms:
        """The items as variants ask them: another wording, another order of the same ten options, or both."""
        worded, options = self.canonical_wording[item], self.options[item]
        if wording:
            worded = (worded + rng.integers(1, self.wordings[item])) % self.wordings[item]
        if order:
            place = rng.random(options.shape).argsort(axis=1)
            same = (place == np.arange(OPTIONS)).all(axis=1)
            place[same] = np.roll(place[same], 1, axis=1)
            options = np.take_along_axis(options, place, axis=1)
        return self._forms(item, worded, options)

    def any_form(self, item: Ints, rng: np.random.Generator) -> Forms:
        """The items in any wording, with nine distractors of their relation drawn anew and in any order."""
        wording = rng.integers(0, self.wordings[item])
        pool = self.pool[item]
        key = rng.random(pool.shape)
        key[pool == self.value[item, None]] = -1.0
        options = np.take_along_axis(pool, key.argsort(axis=1)[:, :OPTIONS], axis=1)
        options = np.take_along_axis(options, rng.random(options.shape).argsort(axis=1), axis=1)
        return self._forms(item, wording, options)

    def _forms(self, item: Ints, wording: Ints, options: Ints) -> Forms:
        return Forms(item, wording, options, (options == self.value[item, None]).argmax(axis=1))

    def prompts(self, forms: Forms) -> Ints:
        """Token ids of the prompts, (batch, length), padded on the left."""
        question = self._question[forms.item, forms.wording]
        question = question[:, (question != self.vocabulary.pad_id).any(axis=0).argmax() :]
        listed = np.stack([np.broadcast_to(self.labels, forms.options.shape), forms.options], axis=2)
        batch = len(question)
        before = np.broadcast_to(self._before_options, (batch, len(self._before_options)))
        after = np.broadcast_to(self._after_options, (batch, len(self._after_options)))
        return np.concatenate([question, before, listed.reshape(batch, -1), after], axis=1)
