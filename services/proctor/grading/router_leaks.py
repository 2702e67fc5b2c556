"""Whether a router's message gives an answer away, and what can be read off messages alone.

A message lists the options by duty, so what counts is what it says beyond the list: an answer named as one ("the answer
is C"), a letter or an option all by itself, a letter set apart from the list, an option marked as right, or a single
option left of the list. An option that the question's own stem names is no answer when it stands in the message too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from proctor.domain.labels import marks
from proctor.grading.letters import chosen_option

#: What is read of a message; far more than any router needs.
_MAX_CHARS: Final = 100_000
#: Longer options are found by the line that they stand on, and not anywhere in the text.
_MAX_OPTION_CHARS: Final = 2_000
_MARKED: Final = re.compile(
    r"(?:✓|✔|✅|☑|<-+|←|[(\[*]\s*(?:the\s+)?(?:correct|right)(?:\s+(?:answer|option|one))?\s*[)\]*])", re.IGNORECASE
)
#: A line of the list: the option's letter, a delimiter, and its text.
_LISTED: Final = re.compile(
    r"^[ \t*_>#-]{0,8}[(\[]?(?P<label>[A-Z])[*_]{0,2}[.):\]][*_]{0,2}[ \t]+(?P<text>\S.*)$", re.M
)


def stated_option(message: str, question: str, choices: Sequence[str]) -> str | None:
    """The text of the option that a message gives as the answer, right or wrong; None where it gives none.

    Read by rules, so a hint that is none of the forms above is not found: what is counted is a lower bound.

    Args:
        message: what the router wrote.
        question: the stem of the item.
        choices: its options, in the order in which the router was shown them.
    """
    message = message[:_MAX_CHARS]
    options, letters = tuple(choices), marks(None, len(choices))
    listed = [match for match in _LISTED.finditer(message) if match["label"] in letters]
    marked = [match for match in listed if _MARKED.search(match["text"])]
    if len(marked) == 1:
        return options[letters.index(marked[0]["label"])]
    stated = chosen_option(_without_list(message, dict(zip(letters, options, strict=True))), options)
    return None if stated == chosen_option(question, options) else stated


def _without_list(message: str, options: Mapping[str, str]) -> str:
    """The message without its list of options: labelled lines, and labelled options word for word anywhere."""
    exact = "|".join(
        rf"{letter}[*_]{{0,2}}[.):\]]\s*{re.escape(option)}(?!\w)"
        for letter, option in options.items()
        if len(option) <= _MAX_OPTION_CHARS
    )
    listed: set[str] = set()

    def once(match: re.Match[str]) -> str:
        # A list has each option once: "the answer is B. Rome" beside it is none of it.
        label = next(letter for letter in match[0] if letter in options)
        if label in listed:
            return match[0]
        listed.add(label)
        return ""

    left = re.sub(rf"(?<!\w)(?<!\bis )(?<!nswer: )[(\[*_]{{0,3}}(?:{exact})", once, message) if exact else message
    left = _LISTED.sub(lambda match: once(match) if match["label"] in options else match[0], left)
    # A single labelled option is no list: it is the one that was singled out.
    return left if len(listed) > 1 else message


def read_off(stated: Sequence[str | None]) -> str | None:
    """What a reader without any model answers from the messages of one condition: the option that most of them state.

    None where none states one, or where two are stated equally often.
    """
    counts = Counter(option for option in stated if option is not None).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]
