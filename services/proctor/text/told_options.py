"""Whether a rewording of a multiple-choice question tells one of its options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, words

#: Words that tell nothing of an option.
_SMALL: Final = (
    "a an the of in to and or is are was were be been by for on with that as at from it its which their his her this "
    "these those than have has had not no they who will would can may do does all none both above following "
    # What a sentence with a verdict in it says of anything.
    "true false yes no correct incorrect right wrong"
)
_LITTLE: Final = frozenset(_SMALL.split())
_ENDING: Final = re.compile(r"(?:ing|ed|es|s|ly|al|ic|ism|ist|ity|ion)$")
#: Shorter words lose more than their ending.
_LONG_WORD: Final = 6
#: Share of an option's own words that tells it. Of 212 rewordings of MMLU questions that readers accept none has so
#: many; of 52 that they refuse because an option was worked into them 18 have.
TOLD_SHARE: Final = 0.6


def told_options(original: str, rewording: str, choices: Sequence[str]) -> list[int]:
    """The options, counted from 0, most of whose own words the rewording has and the original has not.

    "Which theory …?" with the option "labelling theory" may not become "Does labelling theory …?". An option's own
    words are those that are neither in the original question nor among the small words that any sentence has; word
    endings are passed over. Options that are sentences are often paraphrased when they are told, so this finds fewer
    than half of those that a reader sees.
    """
    if not choices:
        return []
    old, new = _stems(original), _stems(rewording)
    if new <= old:
        return []
    told = []
    for place, choice in enumerate(choices):
        own = {_stem(word) for word in words(choice) if word not in _LITTLE} - old
        if own and len(own & new) >= TOLD_SHARE * len(own):
            told.append(place)
    return told


@lru_cache(maxsize=TEXTS_KEPT)
def _stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem, words(text)))


def _stem(word: str) -> str:
    return _ENDING.sub("", word) if len(word) >= _LONG_WORD else word
