"""What kind of figure is asked for: a percentage or a part, and in which unit where there are several."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT
from proctor.text.numerals import prepare
from proctor.text.units import Unit, asked_units, unit_of

_ASKS: Final = re.compile(r"\b(?:what|which|how|find|calculate|determine|compute)\b")
_VERB: Final = r"^(?:what|which|find|calculate|determine|compute)(?:'s| is| was| are| will be| would be| were)?"
_PERCENTAGE: Final = re.compile(_VERB + r"(?: the| a)?(?: \w+){0,2} (?:percent\w*|per cent|%)")
_PART: Final = re.compile(
    _VERB
    + r"(?: the| a)?(?: \w+){0,2} (?:portion|proportion|fraction|share|ratio|part|probability|likelihood|chances?)\b"
)
_SAYS_PERCENT: Final = re.compile(r"\bpercent\w*|\bper cent\b|%")
_SENTENCE_END: Final = re.compile(r"[.?!](?:\s|$)")
_WORD: Final = re.compile(r"[a-z]+|[$\u20ac\u00a3\u00a5\u20b9]")


class _Asked(NamedTuple):
    percentage: bool
    part: bool
    """A part, a ratio or a chance, and no word of per cent."""
    counted: frozenset[Unit]
    """Units in which a number is asked for."""
    named: frozenset[Unit]
    """All units that the question names."""


def keeps_asked(original: str, rewording: str) -> bool:
    """False when a percentage became a part, or the reverse, or the unit asked for is left open.

    For "what portion", one half is as right as 50. A rewording may leave out the unit of the answer where the text has
    one unit of that kind only: "how many minutes" and "how long", unless hours are told of as well.
    """
    old, new = prepare(original), prepare(rewording)
    here, there = _asked(old), _asked(new)
    if (here.percentage and there.part) or (here.part and there.percentage):
        return False
    if not here.counted:
        return True
    told = units_of(new)
    return not any(
        unit.kind not in {other.kind for other in there.named} and sum(other.kind == unit.kind for other in told) > 1
        for unit in here.counted
    )


def units_of(prepared: str) -> frozenset[Unit]:
    """Every unit that a prepared text names."""
    return frozenset(unit for word in _WORD.findall(prepared) if (unit := unit_of(word)) is not None)


@lru_cache(maxsize=TEXTS_KEPT)
def _asked(prepared: str) -> _Asked:
    question = _question(prepared)
    says_percent = _SAYS_PERCENT.search(question) is not None
    return _Asked(
        percentage=_PERCENTAGE.search(question) is not None,
        part=not says_percent and _PART.search(question) is not None,
        counted=asked_units(question),
        named=units_of(question),
    )


def _question(prepared: str) -> str:
    """From the last word that asks to the end of its sentence; empty where none asks."""
    places = [match.start() for match in _ASKS.finditer(prepared)]
    return _SENTENCE_END.split(prepared[places[-1] :], maxsplit=1)[0] if places else ""
