"""A declared renaming: names replaced one for one, so that it can be undone and the rest compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

#: What takes the place of dollars in a made-up story.
CURRENCIES: Final = {"$": "\u20ac", "dollar": "euro", "dollars": "euros", "Dollars": "Euros"}
#: The strategy that renames, and the entry of its provenance that holds old and new names.
STRATEGY: Final = "entity_rename"
RENAMED: Final = "renamed"


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with every mention of a key replaced by its value, in one pass; whole words only, case as it is.

    A value that is in the text already would make the renaming impossible to undo: whoever renames sees to it.
    """
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    return re.sub("|".join(map(_bounded, longest_first)), lambda match: names[match.group()], text)


def undone(question: str, provenance: Mapping[str, Any]) -> str:
    """The question with the names that its provenance says were replaced, for the checks that compare names.

    A question whose provenance declares no renaming, or none that can be read, is returned as it is: provenance may
    come from elsewhere.
    """
    facts = provenance.get(STRATEGY)
    names = facts.get(RENAMED) if isinstance(facts, Mapping) else None
    if not isinstance(names, Mapping):
        return question
    pairs = {new: old for old, new in names.items() if isinstance(old, str) and isinstance(new, str) and new}
    return renamed(question, pairs)


def _bounded(name: str) -> str:
    before = r"(?<!\w)" if name[0].isalnum() else ""
    after = r"(?!\w)" if name[-1].isalnum() else ""
    return before + re.escape(name) + after
