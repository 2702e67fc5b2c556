"""Whether an answer that was cut at its token limit had already given what is read of it."""

from __future__ import annotations

from typing import Final

from proctor.domain.labels import LabelScheme
from proctor.grading.extractors import Extractor

#: No answer goes on with this. It is set right behind the last character, because a cut may halve a word or a number.
_CONTINUATION: Final = "7319046182"


def is_settled(extractor: Extractor, text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> bool:
    """Whether an answer is read in a text, and would be read in it however the text went on.

    An option counts by how it was named (`Extractor.settled`): where a letter is all that is asked for, nothing is
    known to follow it. Everything else is tried: an answer behind `####`, in a closed `\\boxed{…}`, in a sentence "the
    answer is …" that has ended or in a closed block of code stays what it is when more text follows, while the last
    number of a text, or a text that is compared whole, does not. A last "answer is …" that a model would have taken
    back is settled all the same.
    """
    if extractor.settled is not None:
        return extractor.settled(text, choices, labels)
    read = extractor.extract(text, choices, labels)
    return read is not None and extractor.extract(text + _CONTINUATION, choices, labels) == read
