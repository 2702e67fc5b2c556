"""Sentences built otherwise from the same words: clauses moved, joined and parted, questions put in another form."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from proctor.domain.item import Item
from proctor.perturbation.strategies.clauses import SENTENCE_RULES, join
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed, Sentence, sentences
from proctor.perturbation.strategies.questions import QUESTION_RULES
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited

_DEFAULT_SHARE: Final = 0.7
#: Longer sentences are lists or tables that no rule is meant for.
_MAX_SENTENCE: Final = 400


class _Move(NamedTuple):
    rule: str
    edit: Edit


class Syntactic(RuleStrategy):
    """Named rules, each sure of the sentences that it matches; several where they meet different sentences.

    Args:
        share: the chance of each sentence that a rule matches to be changed, 0 to 1; at least one is.
    """

    name = "syntactic"
    nothing = ("no_clause", "no rule is sure how to build one of the question's sentences otherwise")

    def __init__(self, share: float = _DEFAULT_SHARE) -> None:
        self._share = share

    def data_digest(self, item: Item) -> str:
        """The rules' version and the share."""
        return f"{super().data_digest(item)} {self._share!r}"

    def maker(self, question: str, item: Item) -> Maker | None:
        """Some of the moves, no two in one sentence."""
        moves = list(_moves(question))

        def make(draws: Draws) -> Reworded:
            ordered = draws.some_of(moves, len(moves))
            chosen: list[_Move] = []
            for move in ordered:
                if _free(move, chosen) and (not chosen or draws.chance(self._share)):
                    insort(chosen, move, key=_start)
            rules = [move.rule for move in chosen]
            return Reworded(edited(question, [move.edit for move in chosen]), {"rules": rules})

        return make if moves else None


def _start(move: _Move) -> int:
    return move.edit.start


def _free(move: _Move, chosen: list[_Move]) -> bool:
    """Whether a move overlaps none of those chosen, which stand in the order of the text and overlap none either."""
    place = bisect_left(chosen, move.edit.start, key=_start)
    before, after = chosen[place - 1 : place], chosen[place : place + 1]
    return all(one.edit.end <= move.edit.start for one in before) and all(
        move.edit.end <= one.edit.start for one in after
    )


def _moves(question: str) -> Iterator[_Move]:
    fixed = Fixed.of(question)
    spans = [span for span in sentences(question) if span.end - span.start <= _MAX_SENTENCE]
    free = [span for span in spans if not fixed.touches(*span)]
    for span in free:
        sentence = question[span.start : span.end]
        rules = SENTENCE_RULES | QUESTION_RULES if sentence.endswith("?") else SENTENCE_RULES
        for name, rule in rules.items():
            made = rule(sentence)
            if made is not None:
                yield _Move(name, Edit(span.start, span.end, made))
    yield from _joins(question, free)


def _joins(question: str, free: list[Sentence]) -> Iterator[_Move]:
    for first, second in pairwise(free):
        text = question[first.start : second.end]
        made = join(text) if "\n" not in text else None
        if made is not None:
            yield _Move("join", Edit(first.start, second.end, made))
