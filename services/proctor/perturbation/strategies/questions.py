"""Other ways to put a question: How many eggs does she sell? What is the number of eggs that she sells?"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from proctor.perturbation.strategies.english import FUNCTION_WORDS
from proctor.perturbation.strategies.verbs import past, third_person

_PRONOUNS: Final = "he|she|it|they|we|you|I"
_NAME: Final = r"[A-Z][a-z]+"
_ADVERBS: Final = "still|now|currently|actually|also|each|both|all|together|originally|initially|usually"
#: The question at the start of a sentence or behind its condition; subjects are pronouns or names, because the end of
#: a longer subject cannot be told from its verb.
_HOW: Final = re.compile(
    r"(?P<lead>\A|.*, )(?P<how>[Hh]ow (?P<kind>many|much)) ?(?P<what>(?: ?[a-z][a-z'\u2019-]*){0,5}) "
    rf"(?P<aux>does|do|did|will|would|can|could|should|must) (?P<subject>(?:{_PRONOUNS})|{_NAME}(?: and {_NAME})?)"
    rf"(?P<adverb>(?: (?:{_ADVERBS}))?) (?P<verb>[a-z]+)(?P<rest>[^?]*)\?",
    re.DOTALL,
)
_HOW_MANY_ARE: Final = re.compile(
    r"(?P<lead>\A|.*, )(?P<how>[Hh]ow many) (?P<what>[a-z][a-z'\u2019-]*(?: [a-z][a-z'\u2019-]*){0,3}) "
    r"(?P<aux>are|were)(?P<there> there)?(?P<rest> [^?]*)?\?",
    re.DOTALL,
)
_WHAT_IS: Final = re.compile(
    r"(?P<lead>\A|.*, )(?P<what>[Ww]hat is) (?P<noun>(?:the|his|her|their|its) [^?,]{3,120})\?",
    re.DOTALL,
)
_WHAT_IS_NUMBER: Final = re.compile(
    r"(?P<lead>\A|.*, )(?P<what>[Ww]hat is) the (?:total )?number of (?P<noun>[a-z]+) "
    r"(?P<rest>(?:in|on|at) [^?,]{3,80})\?",
    re.DOTALL,
)
#: Words that make "the number of ..." say something else, or nothing.
_NOT_COUNTED: Final = re.compile(
    r"\b(?:more|less|fewer|longer|further|farther|older|younger|of|times|percent|percentage|extra|additional|total|each)\b"
)
_CLAUSE_IN_REST: Final = re.compile(
    r"[.;:]|\b(?:and|but) (?:how|what|which|who)\b|\bhow (?:many|much)\b", re.IGNORECASE
)
_COMPARED: Final = re.compile(r"\b(?:than|as)\b")


#: "How much did Ann and Bob's aunt give": what follows the name is no verb.
_NO_VERBS: Final = FUNCTION_WORDS - {"have", "do"}


class Parsed(NamedTuple):
    """A question in how many or how much, taken apart."""

    lead: str
    how: str
    kind: str
    what: str
    clause: str
    """Subject, verb and the rest in the order of a statement."""


def number_of(sentence: str) -> str | None:
    """How many eggs does she sell? What is the number of eggs that she sells?"""
    parsed = _parsed(sentence)
    if parsed is None or _NOT_COUNTED.search(parsed.what) or _COMPARED.search(parsed.clause):
        return None
    if parsed.kind == "many" and parsed.what:
        asked = f"the number of {parsed.what} that"
    elif parsed.kind == "much" and parsed.what:
        asked = f"the amount of {parsed.what} that"
    else:
        return None
    return f"{parsed.lead}{_cased('what', parsed.how)} is {asked} {parsed.clause}?"


def find_how(sentence: str) -> str | None:
    """How many eggs does she sell? Find how many eggs she sells."""
    parsed = _parsed(sentence)
    if parsed is None or (not parsed.what and parsed.kind == "many"):
        return None
    what = f" {parsed.what}" if parsed.what else ""
    return f"{parsed.lead}{_cased(_verb(sentence), parsed.how)} how {parsed.kind}{what} {parsed.clause}."


def find_how_many_are(sentence: str) -> str | None:
    """How many eggs are left? Find how many eggs are left."""
    match = _HOW_MANY_ARE.fullmatch(sentence)
    if match is None or _CLAUSE_IN_REST.search(match["rest"] or ""):
        return None
    be = f"there {match['aux']}" if match["there"] else match["aux"]
    return f"{match['lead']}{_cased(_verb(sentence), match['how'])} how many {match['what']} {be}{match['rest'] or ''}."


def number_of_are(sentence: str) -> str | None:
    """How many pupils are there in the class? What is the number of pupils in the class?"""
    match = _HOW_MANY_ARE.fullmatch(sentence)
    if match is None or _NOT_COUNTED.search(match["what"]):
        return None
    rest = match["rest"] or ""
    if _CLAUSE_IN_REST.search(rest) or _COMPARED.search(rest):
        return None
    if match["there"]:
        if match["aux"] == "were" or not re.match(r" (?:in|on|at) ", rest):
            return None
        return f"{match['lead']}{_cased('what', match['how'])} is the number of {match['what']}{rest}?"
    if not re.match(r" (?:left|remaining|needed|in|on|at|now|still)\b", rest):
        return None
    return f"{match['lead']}{_cased('what', match['how'])} is the number of {match['what']} that {match['aux']}{rest}?"


def find_the(sentence: str) -> str | None:
    """What is the price of the hat? Find the price of the hat."""
    match = _WHAT_IS.fullmatch(sentence)
    if match is None or _CLAUSE_IN_REST.search(match["noun"]) or re.search(r"\bif\b", match["noun"]):
        return None
    return f"{match['lead']}{_cased(_verb(sentence), match['what'])} {match['noun']}."


def how_many_in(sentence: str) -> str | None:
    """What is the total number of pupils in the class? How many pupils are there in the class?"""
    match = _WHAT_IS_NUMBER.fullmatch(sentence)
    if match is None or not match["noun"].endswith("s") or re.search(r"\bif\b|\bthat\b", match["rest"]):
        return None
    return f"{match['lead']}{_cased('how', match['what'])} many {match['noun']} are there {match['rest']}?"


def _parsed(sentence: str) -> Parsed | None:
    match = _HOW.fullmatch(sentence)
    if match is None or _CLAUSE_IN_REST.search(match["rest"]):
        return None
    verb = _inflected(match["aux"], match["adverb"], match["verb"])
    if verb is None or match["verb"] in _NO_VERBS or match["adverb"].strip() == match["verb"]:
        return None
    if match["what"].split()[-1:] in (["long"], ["far"]) or match["what"].startswith("of "):
        return None
    clause = f"{match['subject']} {verb}{match['rest']}"
    return Parsed(match["lead"], match["how"], match["kind"], match["what"].strip(), clause)


def _inflected(aux: str, adverb: str, verb: str) -> str | None:
    """Auxiliary, adverb and verb in the order of a statement: still sells, will still sell."""
    if aux not in ("do", "does", "did"):
        return f"{aux}{adverb} {verb}"
    finite = third_person(verb) if aux == "does" else past(verb) if aux == "did" else verb
    return f"{adverb} {finite}".strip() if finite else None


def _verb(sentence: str) -> str:
    """Find or determine, by the sentence's length: both are said, and the choice needs no draw."""
    return "find" if len(sentence) % 2 else "determine"


def _cased(word: str, model: str) -> str:
    return word.capitalize() if model[0].isupper() else word


QUESTION_RULES: Final[dict[str, Callable[[str], str | None]]] = {
    "number_of": number_of,
    "find_how": find_how,
    "find_how_many_are": find_how_many_are,
    "number_of_are": number_of_are,
    "find_the": find_the,
    "how_many_in": how_many_in,
}
