"""The same options behind other labels: 1. for A., a), i., P. The target follows, because it is held as text.

A model that recites the letter of an answer finds no such letter; what it gives then is no readable answer, unless it
says the option's text too. Such answers are counted as invalid, and where they are many more than for the canonical
questions, the protocol channel says that the arms cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from proctor.domain.item import Item
from proctor.domain.labels import LabelScheme
from proctor.perturbation.candidate import Draft, Rewrite, seeded_rank
from proctor.perturbation.strategies.base import EVERYTHING, Strategy
from proctor.text.option_labels import stand_apart


class OptionRelabel(Strategy):
    """The schemes of labels that no option and no list in the question could be confused with, in a seeded order."""

    name = "option_relabel"
    preserves = EVERYTHING

    def data_digest(self, item: Item) -> str:
        """The method's version; it draws on no data but the item."""
        return "option_relabel/1"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite]:
        """Other labels for the item's options."""
        fitting = [scheme for scheme in LabelScheme if stand_apart(scheme, item.question, item.choices)]
        fitting.sort(key=lambda scheme: seeded_rank(self.name, seed, item.content_hash, scheme.value))
        return [_relabel(scheme) for scheme in fitting[:limit]]

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Only multiple-choice items have options to label, and some hold every kind of label in their own text."""
        if len(item.choices) < 2:
            return "no_options", "the item has no options to label"
        return "no_labels", "every other kind of label could be taken for a part of the options or of the question"


def _relabel(scheme: LabelScheme) -> Rewrite:
    def apply(draft: Draft) -> Draft:
        return replace(draft, labels=scheme)

    return apply
