"""Moves of whole clauses: a condition to the front or the end, sentences joined or parted, the passive."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_SUBORDINATE: Final = "if|when|after|before|while|once|because|since|although|unless|until"
_LEADING: Final = re.compile(
    r"(?P<word>If|When|After|Before|While) (?P<clause>[^,;:?!]{6,120}), (?:then )?(?P<main>[^,;:]{6,150})"
    r"(?P<mark>[.?])",
    re.DOTALL,
)
_TRAILING: Final = re.compile(
    r"(?P<main>[^,;:?!]{6,150}),? (?P<word>if|when|after|before) (?P<clause>[^,;:?!]{6,120})(?P<mark>[.?])", re.DOTALL
)
_ANY_SUBORDINATE: Final = re.compile(
    rf"\b(?:{_SUBORDINATE}|that|which|who|whose|where|and|but|or|so|then)\b", re.IGNORECASE
)
_ASKING: Final = re.compile(r"(?:how|what) (?:many|much|is|was|are|were|will|would|does|do|did)\b", re.IGNORECASE)
_AUXILIARY: Final = re.compile(r"\b(?:is|was|are|were|will|would|does|do|did|can|could|should)\b", re.IGNORECASE)
_PRONOUN: Final = re.compile(
    r"\b(?:he|she|it|they|his|her|hers|him|them|their|its|this|these|those|one)\b", re.IGNORECASE
)
#: After these the condition would belong to something else than the sentence.
_GRASPING: Final = re.compile(r"\b(?:knows?|asks?|wonders?|sees?|checks?|tells?|days?|week|hours?)$")
_PRONOUN_FIRST: Final = re.compile(r"(?:he|she|it|they|we|you|there|I)\b", re.IGNORECASE)
_NAME_INSIDE: Final = re.compile(r"(?<=\s)[A-Z][a-z]")
_COMPLETE: Final = re.compile(r"\S+ \S+ \S+")
_JOINT: Final = re.compile(r"\.(?P<gap>\s+)(?P<pronoun>He|She|They)(?= [a-z])")
_SEAM: Final = re.compile(r", and (?P<pronoun>he|she|they) (?=[a-z])")
_DECLARATIVE: Final = re.compile(r"[A-Z][^?!:;]*\.", re.DOTALL)
_THERE_ARE: Final = re.compile(
    r"There (?P<be>are|were) (?P<count>[^,.;:]{1,40}?) in (?P<place>(?:the|a|an|his|her|their|this) (?:[a-z]+ )?"
    r"(?:class|classroom|school|family|team|box|bag|jar|basket|zoo|library|company|garden|town|city|village|building|house))\."
)
_ACTIVE: Final = re.compile(
    r"(?P<name>(?!(?:He|She|They|We|You|It|I|Who|Each|Both|Everyone|This|That)\b)[A-Z][a-z]+) "
    r"(?P<verb>bought|sold|made|baked|picked|collected|ordered|received|planted|caught|built|painted|won|found|packed"
    r"|washed|knitted) "
    r"(?P<count>\d{2,}|\d,\d{3}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty) "
    r"(?P<what>(?!more|less|other)(?:[a-z]+ )?[a-z]{3,}s)"
    r"(?P<when> (?:yesterday|today|last (?:week|month|year)|on (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day))?\."
)
_NO_PARTICIPLE: Final = re.compile(r"(?:minutes|hours|days|weeks|months|years|times|pounds|miles|this|was|has|plus)$")


def condition_last(sentence: str) -> str | None:
    """If he sells 3, how many are left? How many are left if he sells 3?"""
    match = _LEADING.fullmatch(sentence)
    if match is None:
        return None
    clause, main = match["clause"], match["main"]
    if _ANY_SUBORDINATE.search(main) or _ANY_SUBORDINATE.search(clause) or re.search(r"\bas\b", main):
        return None
    asks = match["mark"] == "?"
    if asks != bool(_ASKING.match(main)) or not _COMPLETE.match(main):
        return None
    # "How many does he have if Tom sells 3?" is about somebody else: who is named must be named first.
    if _PRONOUN.search(main) and not _PRONOUN_FIRST.match(clause):
        return None
    if _NAME_INSIDE.search(f" {clause}"):
        return None
    if re.match(r"how (?:many|much) (?:does|do|did|will|would|is|are|was|were|can)\b", main, re.IGNORECASE):
        return None
    return f"{_upper(main)} {match['word'].lower()} {clause}{match['mark']}"


def condition_first(sentence: str) -> str | None:
    """How many are left if he sells 3? If he sells 3, how many are left?"""
    match = _TRAILING.fullmatch(sentence)
    if match is None:
        return None
    clause, main = match["clause"], match["main"]
    if _ANY_SUBORDINATE.search(main) or _ANY_SUBORDINATE.search(clause) or not _COMPLETE.match(clause):
        return None
    if (match["mark"] == "?") != bool(_ASKING.match(main)):
        return None
    if match["mark"] == "?" and not _AUXILIARY.search(main):
        return None
    if match["mark"] == "." and match["word"] == "before":
        return None
    first = main.split(" ", 1)[0]
    begins_with_a_word = bool(_PRONOUN_FIRST.match(main)) or first in ("How", "What", "The", "There")
    if not begins_with_a_word or first == "I":
        return None
    if match["mark"] == "." and _GRASPING.search(main):
        return None
    return f"{match['word'].capitalize()} {clause}, {_lower(main)}{match['mark']}"


def join(text: str) -> str | None:
    """She buys 9 hats. She sells 3. She buys 9 hats, and she sells 3. Takes two sentences."""
    match = _JOINT.search(text)
    if match is None or len(_JOINT.findall(text)) != 1:
        return None
    first, second = text[: match.start() + 1], text[match.end() - len(match["pronoun"]) :]
    if not (_DECLARATIVE.fullmatch(first) and _DECLARATIVE.fullmatch(second)):
        return None
    if _ANY_SUBORDINATE.search(first) or "," in first or re.search(r"\d\.$|[a-z]\.[a-z]\.$", first):
        return None
    return f"{first[:-1]}, and {match['pronoun'].lower()}{second[len(match['pronoun']) :]}"


def part(sentence: str) -> str | None:
    """She buys 9 hats, and she sells 3. She buys 9 hats. She sells 3."""
    seams = list(_SEAM.finditer(sentence))
    if len(seams) != 1 or not _DECLARATIVE.fullmatch(sentence):
        return None
    seam = seams[0]
    first, second = sentence[: seam.start()], sentence[seam.end() :]
    if _ANY_SUBORDINATE.search(first) or "," in first:
        return None
    return f"{first}. {seam['pronoun'].capitalize()} {second}"


def place_has(sentence: str) -> str | None:
    """There are 20 pupils in the class. The class has 20 pupils."""
    match = _THERE_ARE.fullmatch(sentence)
    if match is None or _ANY_SUBORDINATE.search(match["count"]):
        return None
    return f"{_upper(match['place'])} {'has' if match['be'] == 'are' else 'had'} {match['count']}."


def passive(sentence: str) -> str | None:
    """Ann planted twelve trees. Twelve trees were planted by Ann. Only verbs whose past is their participle."""
    match = _ACTIVE.fullmatch(sentence)
    if match is None or _NO_PARTICIPLE.search(match["what"]):
        return None
    return f"{_upper(match['count'])} {match['what']} were {match['verb']} by {match['name']}{match['when'] or ''}."


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


SENTENCE_RULES: Final[dict[str, Callable[[str], str | None]]] = {
    "condition_last": condition_last,
    "condition_first": condition_first,
    "part": part,
    "place_has": place_has,
    "passive": passive,
}
