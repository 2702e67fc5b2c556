"""Constraints that an answer can be held to by a rule: how long, of what form, with which words.

The kinds are IFEval's (arXiv 2311.07911) as far as no language has to be told and no judge asked. A target is a list of
them; each is an object with its `kind` and what the kind needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from proctor.domain.canonical import canonical_json

#: The key by which a target is known to be constraints.
CONSTRAINTS: Final = "proctor_constraints"
MAX_CONSTRAINTS: Final = 20
_MAX_TARGET_CHARACTERS: Final = 64 * 1024
_MAX_COUNT: Final = 100_000
_MAX_WORDS: Final = 50
_MAX_TEXT: Final = 500
#: What is read of an answer.
_MAX_READ: Final = 200_000
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_BULLET: Final = re.compile(r"^[ \t]{0,8}[-*•][ \t]+\S", re.MULTILINE)
_SENTENCE_END: Final = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)")
_BREAK: Final = re.compile(r"\n[ \t]*\n")
_FENCED: Final = re.compile(r"\A```(?:json)?[ \t]*\n(?P<body>.*)\n```\Z", re.DOTALL)


class Constraint(NamedTuple):
    """One constraint."""

    kind: str
    values: Mapping[str, Any]

    def plain(self) -> dict[str, Any]:
        """As it stands in a target."""
        return {"kind": self.kind, **self.values}


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, with the apostrophes and hyphens within them."""
    return _WORD.findall(text)


def sentences(text: str) -> int:
    """How many sentences a text has: ends of sentences, and one for what stands behind the last of them."""
    ends = list(_SENTENCE_END.finditer(text))
    return len(ends) + bool(words(text[ends[-1].end() :] if ends else text))


def _within(count: int, values: Mapping[str, Any]) -> bool:
    return bool(values.get("at_least", 0) <= count <= values.get("at_most", _MAX_COUNT))


def _has_words(text: str, wanted: list[str]) -> list[bool]:
    found = {word.casefold() for word in words(text)}
    return [word.casefold() in found for word in wanted]


def _json_object(text: str) -> Any:
    match = _FENCED.fullmatch(text.strip())
    try:
        return json.loads(match["body"] if match else text)
    except (ValueError, RecursionError):
        return None


def _is_json(text: str, values: Mapping[str, Any]) -> bool:
    found = _json_object(text)
    return isinstance(found, dict) and ("keys" not in values or sorted(found) == sorted(values["keys"]))


def _letters_are(text: str, changed: str) -> bool:
    return text == changed and any(character.isalpha() for character in text)


_CHECKS: Final[Mapping[str, Callable[[str, Mapping[str, Any]], bool]]] = MappingProxyType(
    {
        "words": lambda text, values: _within(len(words(text)), values),
        "sentences": lambda text, values: _within(sentences(text), values),
        "bullets": lambda text, values: _within(len(_BULLET.findall(text)), values),
        "paragraphs": lambda text, values: _within(sum(1 for one in _BREAK.split(text) if one.strip()), values),
        "include_words": lambda text, values: all(_has_words(text, values["words"])),
        "exclude_words": lambda text, values: not any(_has_words(text, values["words"])),
        "exclude_characters": lambda text, values: not any(one in text for one in values["characters"]),
        "lower_case": lambda text, values: _letters_are(text, text.lower()),
        "upper_case": lambda text, values: _letters_are(text, text.upper()),
        "json_object": _is_json,
        "starts_with": lambda text, values: text.lstrip().startswith(values["text"]),
        "ends_with": lambda text, values: text.rstrip().endswith(values["text"]),
    }
)
_COUNTED: Final = frozenset({"words", "sentences", "bullets", "paragraphs"})
KINDS: Final = tuple(_CHECKS)


def written_constraints(constraints: tuple[Constraint, ...]) -> str:
    """Constraints as an item's target."""
    return canonical_json({CONSTRAINTS: [one.plain() for one in constraints]}).decode()


def is_constraints(target: str) -> bool:
    """Whether a target says that it is constraints, right or wrong."""
    return target.startswith(f'{{"{CONSTRAINTS}"')


def parse_constraints(target: str) -> tuple[Constraint, ...]:
    """The constraints that a target is.

    Raises:
        ValueError: with what is wrong.
    """
    try:
        said = json.loads(target) if len(target) <= _MAX_TARGET_CHARACTERS else None
    except (ValueError, RecursionError):
        said = None
    listed = said.get(CONSTRAINTS) if isinstance(said, dict) and len(said) == 1 else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_CONSTRAINTS:
        form = f'{{"{CONSTRAINTS}": [{{"kind": …}}, …]}}'
        raise ValueError(f"no constraints: {form} with 1 to {MAX_CONSTRAINTS} of them is needed")
    return tuple(_constraint(number, one) for number, one in enumerate(listed, 1))


def checked(text: str, constraints: tuple[Constraint, ...]) -> tuple[bool, ...]:
    """Which of the constraints an answer keeps, in their order."""
    text = text[:_MAX_READ].strip()
    return tuple(_CHECKS[one.kind](text, one.values) for one in constraints)


def _constraint(number: int, said: Any) -> Constraint:
    kind = said.get("kind") if isinstance(said, dict) else said
    if not isinstance(said, dict) or not isinstance(kind, str) or kind not in _CHECKS:
        raise ValueError(f"constraint {number} has the kind {str(kind)[:80]!r}; there are: {', '.join(KINDS)}")
    values = {key: value for key, value in said.items() if key != "kind"}
    if fault := _fault(kind, values):
        raise ValueError(f"constraint {number} ({kind}) {fault}")
    return Constraint(kind, values)


def _fault(kind: str, values: dict[str, Any]) -> str | None:
    if kind in _COUNTED:
        counts = [value for value in values.values() if type(value) is int and 0 <= value <= _MAX_COUNT]
        if not values or not values.keys() <= {"at_least", "at_most"} or len(counts) < len(values):
            return f"needs at_least, at_most or both, whole numbers from 0 to {_MAX_COUNT:,}"
        return None if values.get("at_least", 0) <= values.get("at_most", _MAX_COUNT) else "has at_least above at_most"
    if kind in ("lower_case", "upper_case"):
        return f"takes nothing, and has {', '.join(map(str, values))[:80]}" if values else None
    if kind in ("starts_with", "ends_with"):
        text = values.get("text")
        if values.keys() == {"text"} and isinstance(text, str) and 0 < len(text) <= _MAX_TEXT and text == text.strip():
            return None
        return f"needs text, 1 to {_MAX_TEXT} characters, no space at its ends"
    key = {"json_object": "keys", "exclude_characters": "characters"}.get(kind, "words")
    if kind == "json_object" and not values:
        return None
    listed = values.get(key)
    if values.keys() != {key} or not isinstance(listed, list) or not 1 <= len(listed) <= _MAX_WORDS:
        return f"needs {key}, a list of 1 to {_MAX_WORDS} texts"
    if not all(isinstance(one, str) and 0 < len(one) <= _MAX_TEXT for one in listed) or len(set(listed)) < len(listed):
        return f"needs {key} to be texts, none empty and none twice"
    if key == "words" and not all(_WORD.fullmatch(one) for one in listed):
        return "needs single words, of letters and digits"
    return None
