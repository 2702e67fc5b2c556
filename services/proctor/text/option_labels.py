"""Whether labels can stand before options without being taken for something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from proctor.domain.labels import LabelScheme, marks
from proctor.text.normalise import normalise, words

_ARTICLE: Final = re.compile(r"\ba (?=[^\W\d_]{2})")


def stand_apart(labels: LabelScheme, question: str, choices: Sequence[str]) -> bool:
    """Whether an answer that gives one of the labels can mean nothing but the label.

    Not so where a label is a word of an option ("2 apples" beside the labels 1 to 4; the article of "a dog" is no
    label, because an answer goes on after it), where an option is a letter by itself, which may be the old label of
    another one, or where the question holds a list with the same marks.
    """
    if not 1 < len(choices) <= labels.most_options:
        return False
    own = [mark.casefold() for mark in marks(labels, len(choices))]
    for choice in choices:
        said = words(_ARTICLE.sub("", normalise(choice)))
        if not set(own).isdisjoint(said) or (len(said) == 1 and len(said[0]) == 1 and said[0].isalpha()):
            return False
    return not all(re.search(rf"(?:^|[\s(]){mark}[.)]", question, re.IGNORECASE) for mark in own[:2])
