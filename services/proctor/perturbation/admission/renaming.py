"""A declared renaming: names replaced one for one, so that it can be undone and the rest compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

#: What takes the place of dollars in a made-up story.
CURRENCIES: Final = {"$": "\u20ac", "dollar": "euro", "dollars": "euros", "Dollars": "Euros"}
#: The strategy that renames, and the entry of its provenance that holds old and new names.
STRATEGY: Final = "entity_rename"
RENAMED: Final = "renamed"
#: Each is looked for in the whole text. The strategy knows fewer names, and none so long.
MAX_RENAMED: Final = 4_096
MAX_NAME_CHARACTERS: Final = 64


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with every mention of a key replaced by its value, in one pass; whole words only, case as it is.

    A value that is in the text already would make the renaming impossible to undo: whoever renames sees to it.
    """
    # No pattern: names differ from item to item, and to compile one would take longer than all the rest of the gate.
    mentions = sorted((start, -len(name), name) for name in names for start in _mentions(text, name))
    parts, at = [], 0
    for start, negative_length, name in mentions:
        # Where names overlap, the one that begins first stands, and of two that begin together the longer.
        if start >= at:
            parts += [text[at:start], names[name]]
            at = start - negative_length
    return "".join([*parts, text[at:]])


def undone(question: str, provenance: Mapping[str, Any]) -> str:
    """The question with the names that its provenance says were replaced, for the checks that compare names.

    A question whose provenance declares no renaming, or none that can be read, is returned as it is: provenance may
    come from elsewhere.
    """
    facts = provenance.get(STRATEGY)
    names = facts.get(RENAMED) if isinstance(facts, Mapping) else None
    if not isinstance(names, Mapping):
        return question
    if len(names) > MAX_RENAMED:
        return question
    pairs = {new: old for old, new in names.items() if _is_name(old) and _is_name(new)}
    return renamed(question, pairs)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= MAX_NAME_CHARACTERS


def _mentions(text: str, name: str) -> Iterator[int]:
    """Where a name stands as a word of its own; beside what is no letter or digit it may stand anywhere."""
    before, after = name[0].isalnum(), name[-1].isalnum()
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        if not (before and start > 0 and _in_word(text[start - 1])) and not (after and _in_word(text[end : end + 1])):
            yield start
        start = text.find(name, start + 1)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"
