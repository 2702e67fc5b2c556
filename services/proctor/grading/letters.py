"""Which option a multiple-choice answer gives: by its letter, or by the option's own text."""

from __future__ import annotations

import re
import unicodedata

from proctor.grading.numbers import boxed

#: What is read of an answer; an option is named early or in the last sentences, never after pages.
_MAX_CHARS = 100_000
#: An answer that repeats "the answer is" more often than this is not worth reading to its start.
_MAX_CUES = 20

_WRAPPED = r"[\s*_`\"'“”(\[{$]{0,8}(?P<letter>[A-Za-z])(?![A-Za-z0-9'’])[\s*_`\"'“”)\]}$]{0,8}"
_ALONE = re.compile(rf"{_WRAPPED}[.:,;!]{{0,3}}[\s*_`]{{0,8}}")
# "C. Paris", "(C) Paris", "**C**: Paris": a delimiter sets the letter apart from the article in "A dog".
_LEADING = re.compile(r"[\s*_`\"'“(\[]{0,8}(?P<letter>[A-Z])[\s*_`\"'”]{0,4}[.):\]][\s*_`)]{0,8}(?P<rest>[^\n]{0,500})")
_CUE = re.compile(
    r"\b(?:(?:final|correct|right|best)\s{1,4})?(?:answer|option|choice)(?:\s{1,4}(?:would\s{1,4}be|must\s{1,4}be|is|was)"
    r"|\s{0,4}[:=])[\s:=*_`]{0,8}|\b(?:choose|pick|select|go\s{1,4}with)\s{1,4}|\boption\s{1,4}(?=[(\[*]?[A-Z]\b)",
    re.IGNORECASE,
)
_CUED = re.compile(
    r"(?:(?:the\s{1,4})?(?:option|letter|choice)\s{1,4})?[\s*_`\"'“(\[{$]{0,8}(?P<letter>[A-Z]|[a-z](?=[\s*_`\"'”)\]}$.]{0,8}$))"
    r"(?![A-Za-z0-9'’])[*_`\"'”)\]}$]{0,8}(?P<rest>[^\n]{0,60})"
)
_ANOTHER = re.compile(
    r"\s{0,4}(?:/|,|or\b|and\b|&)\s{0,4}(?:option\s{1,4})?[*(\[]{0,3}(?P<letter>[A-Z])(?![A-Za-z0-9])"
)
_ARTICLE = re.compile(r"\s+[a-z]")
_SET_APART = re.compile(r"(?:\(|\*\*|\[)(?P<letter>[A-Z])(?:\)|\*\*|\])")
_NEGATION = re.compile(r"\b(?:not|never|except|neither|nor|cannot)\b|n['’]t\b", re.IGNORECASE)


def normalised(text: str) -> str:
    """Compatibility-normalised, case-folded, white space collapsed, quotes and final punctuation removed."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return folded.strip(" \"'“”‘’*_`").rstrip(".!,;:").strip(" \"'“”‘’*_`")


def chosen_option(text: str, choices: tuple[str, ...]) -> str | None:
    """The text of the option that an answer gives; None where it gives none, several, or one that is not there.

    First rule that finds anything decides: the first line is a letter, alone; the text is an option; the last
    `\\boxed{…}`; a leading "C." or "(C)"; the last "answer is …", "option …" and the like; one letter set apart in
    brackets or bold; one option's text in a sentence without negation. A letter beside another option's text, or
    beside a second letter, is ambiguous.
    """
    text = text[:_MAX_CHARS].strip()
    if not text or not choices:
        return None
    first_line = text.split("\n", 1)[0]
    if match := _ALONE.fullmatch(first_line):
        return _option(match["letter"], choices)
    if (option := _option_of_text(text, choices) or _option_of_text(first_line, choices)) is not None:
        return option
    if boxes := boxed(text):
        if match := _ALONE.fullmatch(boxes[-1].replace("\\text{", "").replace("}", "")):
            return _option(match["letter"], choices)
        if (option := _option_of_text(boxes[-1], choices)) is not None:
            return option
    if (match := _LEADING.match(text)) and not _ANOTHER.match(match["rest"]):
        return _agreed(match["letter"], match["rest"], choices)
    if (cued := _cued(text, choices)) is not None:
        return cued or None
    apart = {match["letter"] for match in _SET_APART.finditer(text)}
    if apart:
        return _option(apart.pop(), choices) if len(apart) == 1 else None
    return _mentioned(text, choices)


def _option(letter: str, choices: tuple[str, ...]) -> str | None:
    index = ord(letter.upper()) - ord("A")
    return choices[index] if index < len(choices) else None


def _option_of_text(text: str, choices: tuple[str, ...]) -> str | None:
    """The one option that equals the text."""
    wanted = normalised(text)
    same = [choice for choice in choices if normalised(choice) == wanted]
    return same[0] if len(same) == 1 and wanted else None


def _agreed(letter: str, rest: str, choices: tuple[str, ...]) -> str | None:
    """The letter's option, unless what follows is the text of another one."""
    option, stated = _option(letter, choices), _option_of_text(rest, choices)
    return None if stated is not None and stated != option else option


def _cued(text: str, choices: tuple[str, ...]) -> str | None:
    """What the last cue that names an option says; None without such a cue, '' where it names several or none there."""
    for cue in reversed(list(_CUE.finditer(text))[-_MAX_CUES:]):
        tail = text[cue.end() : cue.end() + 600]
        match = _CUED.match(tail)
        # "The answer is A dog": the article, unless the sentence is over.
        if match and not (match["letter"] == "A" and _ARTICLE.match(match["rest"]) and not _is_bare(tail, match)):
            if _ANOTHER.match(match["rest"]):
                return ""
            return _agreed(match["letter"], match["rest"].lstrip(" .:)-—"), choices) or ""
        sentence = re.split(r"[.!?](?:\s|$)|\n", tail, maxsplit=1)[0]
        option = _option_of_text(sentence, choices) or _mentioned(sentence, choices)
        if option is not None:
            return option
    return None


def _is_bare(tail: str, match: re.Match[str]) -> bool:
    """Whether the letter is wrapped, or followed by the start of another clause, and so no article."""
    wrapped = match.start("letter") > 0 and tail[match.start("letter") - 1] in "*_`\"'“([{$"
    return wrapped or bool(re.match(r"\s+(?:because|since|as|for|which|and|but)\b", match["rest"]))


def _mentioned(text: str, choices: tuple[str, ...]) -> str | None:
    """The one option whose text stands in the text as whole words; options within longer ones do not count there."""
    if _NEGATION.search(text):
        return None
    rest = f" {' '.join(unicodedata.normalize('NFKC', text).casefold().split())} "
    found: list[str] = []
    for choice in sorted(choices, key=lambda choice: (-len(choice), choice)):
        wanted = normalised(choice)
        pattern = re.compile(rf"(?<!\w){re.escape(wanted)}(?!\w)")
        if wanted and pattern.search(rest):
            found.append(choice)
            rest = pattern.sub(" ", rest)
    return found[0] if len(found) == 1 else None
