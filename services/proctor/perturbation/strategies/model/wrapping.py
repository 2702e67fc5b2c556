"""What models put around a rewording although they were asked not to: taken off. Pure, whatever the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Step = Callable[[str], str]

_NOUN: Final = (
    r"(?:question|problem|version|text|wording|rewording|paraphrase|rephrasing|reformulation|translation|message|"
    r"restatement)s?"
)
_SUCH: Final = (
    r"(?:re-?worded|re-?phrased|re-?written|re-?stated|paraphrased|reformulated|translated|back-?translated|new|"
    r"revised|final|full|english|formal|simplified)"
)
_VERB: Final = r"(?:re-?word|re-?phrase|re-?write|re-?state|paraphrase|translate)"
_THOUGHT: Final = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCES: Final = ("```", "~~~")
_TAGGED: Final = re.compile(r"<([a-z][\w-]{0,40})>", re.IGNORECASE)
_GREETING: Final = re.compile(
    r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|understood|no problem)[!.,:]\s+", re.IGNORECASE
)
#: Names what follows, so that "Here are two numbers: 3 and 4" stays.
_ANNOUNCEMENT: Final = re.compile(
    rf"(?:(?:here|below|this|the following)(?:'s|\u2019s| is| are)?|i(?:'ve| have)? (?:re\w+|para\w+|trans\w+)) "
    rf"[^\n.:?!0-9]{{0,80}}?\b(?:{_NOUN}|{_SUCH}|{_VERB})\b[^\n.:?!0-9]{{0,80}}:(?:\s+|\Z)",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(
    rf"[*_#]{{0,4}} {{0,4}}(?:the |your |my |a )?(?:{_SUCH} ){{0,3}}(?:{_NOUN}|{_SUCH})"
    r"(?: \([^()\n]{0,40}\))?[*_]{0,4}:[*_]{0,4}(?:\s+|\Z)",
    re.IGNORECASE,
)
#: With all the space that follows, so that no part of it is read for every line break in it.
_PARAGRAPH_END: Final = re.compile(r"\n[ \t\r]*+\n\s*+")
_AFTERWORD: Final = re.compile(
    r"[*_(\[#>-]{0,4} ?(?:(?:note|notes|explanation|changes|changes made)\b[*_]{0,3}:|let me know\b|"
    r"(?:i )?hope (?:this|that) (?:helps|works)|"
    r"i(?:'ve| have)? (?:kept|changed|preserved|reworded|rephrased|replaced|used|tried|aimed)\b|"
    rf"(?:this|the) (?:{_SUCH} )?{_NOUN} (?:keeps|preserves|maintains|retains|uses|has|asks|is)\b|"
    r"feel free\b|is there anything\b|would you like (?:me|another)\b)",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(
    r"^[ \t]*[*_]{0,2}(?:(?:option|version|rewording|variant|alternative)[ \t]+)?([0-9]{1,2})[.):][*_]{0,2}[ \t]+",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTES: Final = (('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("`", "`"))
_EMPHASIS: Final = ("***", "**", "__", "*", "_")
#: Wrappings within wrappings; more are no model's habit.
_MOST_LAYERS: Final = 4
#: An entry of a list is a rewording of its own only if it is not much shorter than what was to be reworded.
_LEAST_LENGTH: Final = 0.5


def unwrapped(reply: str, question: str, tag: str) -> str:
    """The reply without what stands around the rewording; it may be empty.

    What the question wears itself (quotation marks, a label, a numbered list) stays: then it belongs to the text.

    Args:
        reply: what the model said.
        question: what it was to reword.
        tag: the name of the tags that stood around the question in the prompt.
    """
    question = question.strip()
    steps: tuple[Step, ...] = (
        _without_thoughts,
        _out_of_fence,
        lambda text: _out_of_tags(text, tag),
        _without_preamble,
        lambda text: _without_afterword(text, question),
        lambda text: _first_of_list(text, question),
        _out_of_quotes,
    )
    steps = tuple(step for step in steps if step(question).strip() == question)
    text = reply.strip()
    for _ in range(_MOST_LAYERS):
        before = text
        for step in steps:
            text = step(text).strip()
        if text == before:
            break
    return text


def _without_thoughts(text: str) -> str:
    match = _THOUGHT.match(text)
    return text[match.end() :] if match else text


def _out_of_fence(text: str) -> str:
    mark = next((mark for mark in _FENCES if text.startswith(mark)), None)
    start = text.find("\n")
    end = text.find(mark, start) if mark is not None and start > 0 else -1
    return text[start:end] if end > 0 else text


def _out_of_tags(text: str, tag: str) -> str:
    match = _TAGGED.match(text)
    if match is None or text.count(match[0]) > 1:
        return text
    end = text.find(f"</{match[1]}>")
    if match[1].casefold() == tag:
        return text[match.end() : end if end >= 0 else len(text)]
    # Of tags that were not in the prompt, only those around everything: of "<b>One</b> of these", all is text.
    return text[match.end() : end] if end >= 0 and end + len(match[0]) + 1 == len(text) else text


def _without_preamble(text: str) -> str:
    for preamble in (_GREETING, _ANNOUNCEMENT, _LABEL):
        match = preamble.match(text)
        text = text[match.end() :] if match else text
    return text


def _without_afterword(text: str, question: str) -> str:
    for gap in _PARAGRAPH_END.finditer(text):
        if _AFTERWORD.match(text, gap.end()):
            kept = text[: gap.start()]
            # A story told in the first person goes on like a comment; what is asked comes at its end.
            return text if "?" in question and "?" not in kept else kept
    return text


def _first_of_list(text: str, question: str) -> str:
    """The first of several rewordings, where they are plainly listed: numbered from 1 on, each as whole as the item."""
    marks = list(_NUMBERED.finditer(text))
    if len(marks) < 2 or marks[0].start() != 0 or [int(mark[1]) for mark in marks] != [*range(1, len(marks) + 1)]:
        return text
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    entries = [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    asks = "?" in question
    whole = all(len(entry) >= _LEAST_LENGTH * len(question) and ("?" in entry or not asks) for entry in entries)
    return entries[0] if whole else text


def _out_of_quotes(text: str) -> str:
    for mark in _EMPHASIS:
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            inside = text[len(mark) : -len(mark)]
            # Blanks to fill in are written with the same sign, and have a space beside them.
            if mark[0] not in inside and inside == inside.strip():
                return inside
    for opening, closing in _QUOTES:
        if len(text) > 1 and text.startswith(opening) and text.endswith(closing):
            inside = text[1:-1]
            if opening not in inside and (closing not in inside or closing == "\u2019"):
                return inside
    return text
