"""An irrelevant sentence put between the question's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import FUNCTION_WORDS, Fixed, sentences
from proctor.perturbation.strategies.entity_rename import first_names
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited
from proctor.text.normalise import words

#: No number, unit, comparison, denial or pronoun; nothing that is bought, counted or shared in a word problem.
_SENTENCES: Final = (
    "{name} has a fondness for old maps.",
    "{name} likes the sound of rain on the roof.",
    "{name} wears a green scarf in winter.",
    "{name} hums a tune on the way to the station.",
    "{name} often looks out of the window at the clouds.",
    "{name} was born beside a wide river.",
    "{name} speaks with a soft accent.",
    "{name} keeps a diary with a leather cover.",
    "{name} is fond of stories about the sea.",
    "{name} has a sister who studies astronomy.",
    "{name} admires the paintings in the town hall.",
    "{name} has a habit of whistling at dawn.",
    "The old clock tower nearby was built of red brick.",
    "The sky that morning was clear and bright.",
    "A gentle wind was blowing from the west.",
    "The street outside was lined with maple trees.",
    "The radio was playing a quiet song in the background.",
    "The curtains in the hall were dark green.",
)
_PRONOUN: Final = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|himself|herself|themselves|itself|this|these|that|those"
    r"|there|here|who|one|ones|each|both|another|others?|everyone|everybody|someone)\b",
    re.IGNORECASE,
)
#: A sentence that begins like this leans on the one before it.
_LEANS: Final = re.compile(
    r"(?:and|but|so|then|also|however|therefore|instead|afterwards?|later|meanwhile|finally|next|in addition"
    r"|as a result|after that|the (?:rest|others?|same|remaining|next|second|third|last|following|former|latter)"
    r"|(?:\S+ ){1,3}(?:later|after|afterwards)"
    r"|how|what|which|who|when|where|why|if|for example|otherwise|still|only|half|all|some|most|twice|because)\b",
    re.IGNORECASE,
)
#: Fewer of English's small words than this, and a sentence of English would stand among foreign ones.
_MIN_FUNCTION_WORDS: Final = 3
_FIRST_WORD: Final = re.compile(r"[A-Z][a-z]+")


class Distractor(RuleStrategy):
    """A neutral sentence, of somebody whom the question does not name, before one of its sentences.

    Never after the last sentence, which asks, and never before a sentence whose pronoun or first word would then
    lean on the stranger. A distractor can make a clean model's answer worse (GSM-NoOp of arXiv 2410.05229), so a
    suite that uses it needs control items.
    """

    name = "distractor"
    nothing = ("no_gap", "no sentence of the question can follow one about something else")

    def maker(self, question: str, item: Item) -> Maker | None:
        """A sentence of the table, with a name, before a sentence that can take it."""
        known = words(question)
        if sum(word in FUNCTION_WORDS for word in known) < _MIN_FUNCTION_WORDS:
            return None
        gaps = list(_gaps(question))
        present = frozenset(known).union(*map(words, (*item.choices, item.target)))
        names = [name for given in first_names().given.values() for name in given if name.casefold() not in present]

        def make(draws: Draws) -> Reworded:
            sentence = draws.one_of(_SENTENCES).format(name=draws.one_of(names))
            at = draws.one_of(gaps)
            return Reworded(edited(question, [Edit(at, at, f"{sentence} ")]), {"sentence": sentence})

        return make if gaps and names else None


def _gaps(question: str) -> Iterator[int]:
    """Where a sentence begins that stands on its own feet."""
    fixed = Fixed.of(question)
    for number, (start, end) in enumerate(sentences(question)):
        sentence = question[start:end]
        asks_alone = number == 0 and not _PRONOUN.search(sentence)
        if fixed.touches(start, start + 1) or (_LEANS.match(sentence) and not asks_alone):
            continue
        pronoun = _PRONOUN.search(sentence)
        name = _FIRST_WORD.match(sentence)
        named = name is not None and name.group() in first_names().gender
        if pronoun is None or (named and pronoun.start() > 0):
            yield start
