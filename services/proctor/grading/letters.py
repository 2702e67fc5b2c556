"""Which option a multiple-choice answer gives: by its label, or by the option's own text."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from proctor.domain.labels import LabelScheme
from proctor.grading.label_patterns import LabelPatterns, patterns
from proctor.grading.numbers import boxed

#: What is read of an answer; an option is named early or in the last sentences, never after pages.
_MAX_CHARS = 100_000
#: An option that is longer is no word of a sentence: it is found where it stands by itself. Looking for a long text in
#: another takes the product of their lengths where both repeat themselves.
_MAX_MENTIONED_CHARS = 2_000
#: An answer that repeats "the answer is" more often than this is not worth reading to its start.
_MAX_CUES = 20

_WORD_FOLLOWS = re.compile(r"\s+[a-z]")
_CLAUSE = re.compile(r"\s+(?:because|since|as|for|which|and|but)\b")
_NEGATION = re.compile(r"(?=[nec])(?:\b(?:not|never|except|neither|nor|cannot)\b|n['’]t\b)", re.IGNORECASE)


def normalised(text: str) -> str:
    """Compatibility-normalised, case-folded, white space collapsed, quotes and final punctuation removed."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(" \"'“”‘’*_`").rstrip(".!,;:").strip(" \"'“”‘’*_`")


def chosen_option(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> str | None:
    """The text of the option that an answer gives; None where it gives none, several, or one that is not there.

    First rule that finds anything decides: the first line is a label, alone; the text is an option; the last
    `\\boxed{…}`; a leading "C." or "(C)"; the last "answer is …", "option …" and the like; one label set apart in
    brackets or bold; one option's text in a sentence without negation. A label beside another option's text, or
    beside a second label, is ambiguous.

    Under other labels than letters, a letter is the label of no option: what it stands beside decides, where that is
    an option's text, and otherwise nothing does. A leading "1." may begin a list instead of an answer: where the text
    goes on with another label or a cue, it counts only before its own option's text.

    Args:
        text: what the model answered.
        choices: the options in the order shown.
        labels: how they were labelled; None for A, B, C, ….
    """
    text = text[:_MAX_CHARS].strip()
    if not text or not choices:
        return None
    known = patterns(labels, len(choices))
    if (plain := _plainly(text, choices, known)) is not None:
        return plain or None
    if (cued := _cued(text, choices, known)) is not None:
        return cued or None
    apart = {match["label"] for match in known.apart.finditer(text)}
    if apart:
        return _option(apart.pop(), choices, known) if len(apart) == 1 else None
    return _mentioned(text, choices)


def names_option(text: str, choices: tuple[str, ...], labels: LabelScheme | None = None) -> bool:
    """Whether an answer names its option so that it stands whatever follows: at its beginning, in a box, or behind "the
    answer is" or the like, and not because the text happens to speak of one.
    """
    text = text[:_MAX_CHARS].strip()
    if not text or not choices:
        return False
    known = patterns(labels, len(choices))
    if (plain := _plainly(text, choices, known)) is not None:
        return plain != ""
    if not any("answer" in cue[0].casefold() for cue in known.cue.finditer(text)):
        return False
    return bool(_cued(text, choices, known))


def _plainly(text: str, choices: tuple[str, ...], known: LabelPatterns) -> str | None:
    """The option that an answer begins with, consists of or puts in a box; None without such, '' for none there."""
    first_line = text.split("\n", 1)[0]
    if match := known.alone.fullmatch(first_line):
        return _option(match["label"], choices, known) or ""
    if (option := _option_of_text(text, choices) or _option_of_text(first_line, choices)) is not None:
        return option
    if boxes := boxed(text):
        if match := known.alone.fullmatch(boxes[-1].replace("\\text{", "").replace("}", "")):
            return _option(match["label"], choices, known) or ""
        if (option := _option_of_text(boxes[-1], choices)) is not None:
            return option
    if (match := known.leading.match(text)) and not known.another.match(match["rest"]):
        in_list = known.listed is not None and known.listed.search(text)
        if not in_list or _option_of_text(match["rest"], choices) is not None:
            return _agreed(match["label"], match["rest"], choices, known) or ""
    return None


def _option(label: str, choices: tuple[str, ...], known: LabelPatterns) -> str | None:
    place = known.place(label)
    return choices[place] if place is not None else None


#: An option is compared with every part of an answer that may name it, in every trial of its item.
_normalised_choice = lru_cache(maxsize=4096)(normalised)


def _option_of_text(text: str, choices: tuple[str, ...]) -> str | None:
    """The one option that equals the text."""
    wanted = normalised(text)
    same = [choice for choice in choices if _normalised_choice(choice) == wanted]
    return same[0] if len(same) == 1 and wanted else None


def _agreed(label: str, rest: str, choices: tuple[str, ...], known: LabelPatterns) -> str | None:
    """The label's option, unless what follows is the text of another one."""
    option, stated = _option(label, choices, known), _option_of_text(rest, choices)
    if option is None and known.foreign(label):
        return stated
    return None if stated is not None and stated != option else option


def _cued(text: str, choices: tuple[str, ...], known: LabelPatterns) -> str | None:
    """What the last cue that names an option says; None without such a cue, '' where it names several or none there."""
    for cue in reversed(list(known.cue.finditer(text))[-_MAX_CUES:]):
        tail = text[cue.end() : cue.end() + 600]
        match = known.cued.match(tail)
        # "The answer is A dog": the article, unless the sentence is over.
        if match and not (known.words.fullmatch(match["label"]) and _goes_on(tail, match)):
            if known.another.match(match["rest"]):
                return ""
            return _agreed(match["label"], match["rest"].lstrip(" .:)-—"), choices, known) or ""
        sentence = re.split(r"[.!?](?:\s|$)|\n", tail, maxsplit=1)[0]
        option = _option_of_text(sentence, choices) or _mentioned(sentence, choices)
        if option is not None:
            return option
    return None


def _goes_on(tail: str, match: re.Match[str]) -> bool:
    """Whether a word follows, the label is not wrapped, and the word begins no clause: an article, or a number."""
    start = match.start("label")
    wrapped = start > 0 and tail[start - 1] in "*_`\"'“([{$"
    clause = _CLAUSE.match(match["rest"])
    return _WORD_FOLLOWS.match(match["rest"]) is not None and not wrapped and clause is None


def _mentioned(text: str, choices: tuple[str, ...]) -> str | None:
    """The one option whose text stands in the text as whole words; options within longer ones do not count there."""
    if _NEGATION.search(text):
        return None
    rest = f" {' '.join(unicodedata.normalize('NFKC', text).casefold().split())} "
    found: list[str] = []
    for choice in sorted(choices, key=lambda choice: (-len(choice), choice)):
        wanted = _normalised_choice(choice)
        if not wanted or len(wanted) > _MAX_MENTIONED_CHARS or wanted not in rest:
            continue
        rest, times = re.subn(rf"(?<!\w){re.escape(wanted)}(?!\w)", " ", rest)
        if times:
            found.append(choice)
    return found[0] if len(found) == 1 else None
