"""How the labels of options stand in an answer, as patterns: letters, and the labels of every other scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.domain.labels import LabelScheme, marks


class LabelPatterns(NamedTuple):
    """Where an answer names a label. Patterns that find one have the group `label`, some the `rest` of the line."""

    places: Mapping[str, int]
    """The place of each label's option, by the label in lower case."""
    alone: re.Pattern[str]
    """A line that is a label and nothing else."""
    leading: re.Pattern[str]
    """ "C. Paris", "(C) Paris", "**C**: Paris": a delimiter sets the label apart from the article in "A dog"."""
    cue: re.Pattern[str]
    """What comes before an answer: "the answer is", "option"."""
    cued: re.Pattern[str]
    """A label right after a cue."""
    another: re.Pattern[str]
    """A second label after the first."""
    apart: re.Pattern[str]
    """A label in brackets or bold."""
    words: re.Pattern[str]
    """Labels that may be a word of a sentence as well, so that a word after them speaks against the label."""
    listed: re.Pattern[str] | None
    """What tells a numbered list from an answer that begins with its label; None for letters."""

    def place(self, label: str) -> int | None:
        """The place of a label's option; None for a label that no option has."""
        return self.places.get(label.lower())

    def foreign(self, label: str) -> bool:
        """Whether a label is a letter where options have other labels than letters."""
        return self.listed is not None and label.lower() not in self.places


_AFTER: Final = r"[\s*_`\"'”)\]}$.]{0,8}$"
_CUE: Final = (
    r"\b(?:(?:final|correct|right|best)\s{1,4})?(?:answer|option|choice)(?:\s{1,4}(?:would\s{1,4}be|must\s{1,4}be|is|was)"
    r"|\s{0,4}[:=])[\s:=*_`]{0,8}|\b(?:choose|pick|select|go\s{1,4}with)\s{1,4}"
)


@lru_cache(maxsize=128)
def patterns(labels: LabelScheme | None, count: int) -> LabelPatterns:
    """The patterns of a scheme's first `count` labels; None for letters.

    Under another scheme the letters from A are looked for as well, and have no place: an answer that gives one is no
    answer under these labels, and must not be read for something else that it says.
    """
    own = marks(labels, count)
    places = {mark.lower(): place for place, mark in enumerate(own)}
    if labels is None:
        return _patterns(places, "[A-Z]", "[A-Za-z]", f"[A-Z]|[a-z](?={_AFTER})")
    forms = {form for mark in own for form in (mark, mark.upper(), mark.lower())}
    # The longest first: iii begins with i.
    either = "|".join(sorted(forms, key=lambda form: (-len(form), form)))
    # 2 is no label in 2.5, 2:30, 2% and 1/2, nor behind a minus or a currency.
    whole = rf"(?<![\d.,/$€£−-])(?:{either})(?![.,:/]\d|\s?[%°])" if labels is LabelScheme.NUMBERS else f"(?:{either})"
    letter = f"{whole}|[A-Z]"
    made = _patterns(places, letter, f"{whole}|[A-Za-z]", letter)
    return made._replace(
        apart=re.compile(rf"(?<!\w){made.apart.pattern}"),
        words=re.compile(".+"),
        listed=re.compile(rf"\n[\s*_`(]{{0,8}}(?:{either})[.):\]]\s|{_CUE}", re.IGNORECASE),
    )


def _patterns(places: Mapping[str, int], label: str, any_case: str, cued: str) -> LabelPatterns:
    wrapped = rf"[\s*_`\"'“”(\[{{$]{{0,8}}(?P<label>{any_case})(?![A-Za-z0-9'’])[\s*_`\"'“”)\]}}$]{{0,8}}"
    return LabelPatterns(
        places,
        alone=re.compile(rf"{wrapped}[.:,;!]{{0,3}}[\s*_`]{{0,8}}"),
        leading=re.compile(
            rf"[\s*_`\"'“(\[]{{0,8}}(?P<label>{label})[\s*_`\"'”]{{0,4}}[.):\]][\s*_`)]{{0,8}}(?P<rest>[^\n]{{0,500}})"
        ),
        # What a cue can begin with is looked for first, which takes a third of the time.
        cue=re.compile(rf"\b(?=[abcfgoprs])(?:{_CUE}|\boption\s{{1,4}}(?=[(\[*]?(?:{label})\b))", re.IGNORECASE),
        cued=re.compile(
            rf"(?:(?:the\s{{1,4}})?(?:option|letter|choice)\s{{1,4}})?[\s*_`\"'“(\[{{$]{{0,8}}(?P<label>{cued})"
            r"(?![A-Za-z0-9'’])[*_`\"'”)\]}$]{0,8}(?P<rest>[^\n]{0,60})"
        ),
        another=re.compile(
            rf"\s{{0,4}}(?:/|,|or\b|and\b|&)\s{{0,4}}(?:option\s{{1,4}})?[*(\[]{{0,3}}(?P<label>{label})(?![A-Za-z0-9])"
        ),
        apart=re.compile(rf"(?:\(|\*\*|\[)(?P<label>{label})(?:\)|\*\*|\])"),
        words=re.compile("A"),
        listed=None,
    )
