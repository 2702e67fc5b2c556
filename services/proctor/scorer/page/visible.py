"""Hostile text made harmless to read: what a reader cannot see, or what would reorder a line, is spelled out.

Escaping keeps markup from running; this keeps a prompt, an answer or a model's name from deceiving the eye
(bidirectional overrides, zero-width characters, terminal sequences).
"""

from __future__ import annotations

import re
import unicodedata

#: Controls, format characters (bidirectional ones among them), lone surrogates, private use, line and paragraph
#: separators. Unassigned code points are left alone: which they are depends on the Python version.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
#: Blank glyphs and variation selectors that have another category, but leave no mark on the page.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffe\uffff")
_PLAIN = re.compile(r"[ -~\n\t]*", re.ASCII)


def _is_hidden(character: str) -> bool:
    if character in "\n\t":
        return False
    return character in _BLANK or unicodedata.category(character) in _HIDDEN_CATEGORIES


def visible(text: str) -> str:
    """The text with each hidden character spelled as `⟦U+202E⟧`; newlines and tabs stay."""
    if _PLAIN.fullmatch(text):
        return text
    text = text.replace("\r\n", "\n")
    return "".join(f"⟦U+{ord(c):04X}⟧" if _is_hidden(c) else c for c in text)
