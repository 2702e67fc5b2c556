"""English verb forms: the third person and the past of a bare verb, or None where a rule is not sure."""

from __future__ import annotations

import re
from typing import Final

_VOWELS: Final = "aeiou"
_THIRD: Final = {"have": "has", "do": "does", "go": "goes", "be": None}
#: Their past is the bare form, or depends on what is meant.
_AMBIGUOUS: Final = "read cut put set let hit hurt shut cost bet quit spread split be lie bid burst cast rid"
_IRREGULAR: Final = (
    "have/had do/did go/went buy/bought sell/sold make/made spend/spent eat/ate get/got give/gave take/took "
    "pay/paid run/ran see/saw leave/left lose/lost win/won find/found catch/caught write/wrote drive/drove "
    "ride/rode swim/swam keep/kept sleep/slept bring/brought build/built choose/chose come/came draw/drew "
    "drink/drank fall/fell feed/fed feel/felt fly/flew forget/forgot grow/grew hang/hung hear/heard hide/hid "
    "hold/held know/knew lead/led lend/lent meet/met send/sent shoot/shot show/showed sing/sang sit/sat "
    "speak/spoke stand/stood steal/stole sweep/swept teach/taught tell/told think/thought throw/threw "
    "understand/understood wake/woke wear/wore begin/began break/broke blow/blew bend/bent bite/bit dig/dug "
    "fight/fought freeze/froze mean/meant rise/rose say/said shake/shook sink/sank slide/slid spin/spun "
    "spring/sprang stick/stuck strike/struck swing/swung tear/tore weave/wove become/became deal/dealt "
    "withdraw/withdrew shop/shopped stop/stopped drop/dropped plan/planned wrap/wrapped skip/skipped tip/tipped "
    "trip/tripped grab/grabbed pop/popped jog/jogged hop/hopped chop/chopped clip/clipped swap/swapped mop/mopped "
    "trim/trimmed prefer/preferred admit/admitted"
)
_PAST: Final[dict[str, str | None]] = {
    **{pair.split("/")[0]: pair.split("/")[1] for pair in _IRREGULAR.split()},
    **dict.fromkeys(_AMBIGUOUS.split()),
}
_WORD: Final = re.compile(r"[a-z]{2,}")
#: One syllable that ends in consonant, vowel, consonant doubles its last letter; the table has those that are usual.
_DOUBLING: Final = re.compile(r"[^aeiou]*[aeiou][bdfgklmnprstz]")


def third_person(verb: str) -> str | None:
    """What he, she or it does: sell gives sells."""
    if not _WORD.fullmatch(verb):
        return None
    if verb in _THIRD:
        return _THIRD[verb]
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def past(verb: str) -> str | None:
    """What was done: sell gives sold. None for verbs whose past looks like the bare form, and where in doubt."""
    if not _WORD.fullmatch(verb):
        return None
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return f"{verb[:-1]}ied"
    return None if _DOUBLING.fullmatch(verb) else f"{verb}ed"
