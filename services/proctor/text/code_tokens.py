"""Programs as tokens of their language, in whatever text they stand: comments, spaces and docstrings are none.

A document is no program: prose stands around one, or a fence, or half of another. So nothing is parsed, and a text is
read by one pattern from its begin to its end. For a Python program the tokens are those of `tokenize`, which a test
holds them to; for any other language they are those of a lexer of C's family.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from enum import StrEnum
from typing import Final, NamedTuple

_TRIPLE: Final = (
    r'(?:[rRbBuUfF]{1,2})?"""(?:[^"\\]+|\\.|"(?!""))*+(?:""")?|'
    r"(?:[rRbBuUfF]{1,2})?'''(?:[^'\\]+|\\.|'(?!''))*+(?:''')?"
)
#: One that is not closed on its line is a mark in prose. It has so many escapes at most, or prose that is nothing but
#: marks and strokes would be read from each of them to its end.
_STRING: Final = (
    r'(?:[rRbBuUfF]{1,2})?"(?:[^"\\\n]+|\\.){0,300}+"|' + r"(?:[rRbBuUfF]{1,2})?'(?:[^'\\\n]+|\\.){0,300}+'"
)
_NUMBER: Final = r"0[xX][0-9a-fA-F_]+|\.?\d(?:[eE][+-]?(?=\d)|[\w.])*+"
_NAME: Final = r"[^\W\d]\w*+"
#: Every part takes what it can and gives nothing back, and what is never closed ends with the text: no text takes more
#: time than its length.
_PYTHON: Final = re.compile(
    rf"(?P<space>\s++|\\\r?\n)|(?P<comment>#[^\n]*+)|(?P<string>{_TRIPLE}|{_STRING})|(?P<code>{_NUMBER}|{_NAME}|"
    r"\*\*=|//=|>>=|<<=|\.\.\.|\*\*|//|>>|<<|->|:=|[-+*/%&|^=<>!@]=|.)",
    re.DOTALL,
)
_OTHER: Final = re.compile(
    rf"(?P<space>\s++|\\\r?\n)|(?P<comment>//[^\n]*+|/\*(?:[^*]+|\*(?!/))*+(?:\*/)?)|(?P<string>{_STRING})|(?P<code>{_NUMBER}|"
    rf"{_NAME}|>>>=|<=>|===|!==|\.\.\.|>>>|>>=|<<=|&&=|\|\|=|\?\?=|&&|\|\||\+\+|--|->|=>|::|:=|\?\.|\?\?|>>|<<|"
    r"[-+*/%&|^=<>!]=|.)",
    re.DOTALL,
)
_OPERATORS: Final = ("return", "in", "not", "and", "or", "if", "else")
#: After these a string on a line of its own is a part of an expression that goes on.
_GOES_ON: Final = frozenset((*"([{,=+-*/%&|^<>!~@.", "+=", "==", "!=", ":=", "->", "**", "//", *_OPERATORS))
_LINE_END: Final = re.compile(r"[ \t\f]*+(?:#[^\n]*+)?(?:\r?\n|\Z)")
#: What no prose has at a line's end, or within one.
_CODE: Final = re.compile(r"[;{}][ \t]*$|=>|->|::|:=|\w\(\)", re.MULTILINE)
_FENCE: Final = re.compile(r"\s*(?:```|~~~)[^\n]*\n(.*?)\n[ \t]*(?:```|~~~)\s*", re.DOTALL)


class Language(StrEnum):
    """By which lexer a program is read."""

    PYTHON = "python"
    OTHER = "other"


class CodeToken(NamedTuple):
    """A token, and the characters of the text between which it stands."""

    text: str
    start: int
    end: int


def code_tokens(text: str, language: Language) -> list[CodeToken]:
    """The tokens of a text, in order; of one in Python without strings that are statements (docstrings)."""
    pattern = _PYTHON if language is Language.PYTHON else _OTHER
    found: list[CodeToken] = []
    begins_line = True
    for match in pattern.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            begins_line |= "\n" in match[0] and match[0][0] != "\\"
        elif kind != "comment":
            is_alone = begins_line and kind == "string" and _LINE_END.match(text, match.end()) is not None
            if not (is_alone and language is Language.PYTHON and _ends_statement(found)):
                found.append(CodeToken(match[0], *match.span()))
            begins_line = False
    return found


def _ends_statement(before: list[CodeToken]) -> bool:
    """Whether a new statement may begin after these."""
    last = before[-1].text if before else ""
    return last not in _GOES_ON and not last.endswith(('"', "'"))


def program_of(answer: str) -> tuple[str, Language] | None:
    """The program that an answer is, without a fence around it, and its language; None where it is none."""
    fenced = _FENCE.fullmatch(answer)
    program = fenced[1] if fenced else answer
    if not program.strip():
        return None
    if _is_python(program):
        return program, Language.PYTHON
    return (program, Language.OTHER) if fenced or _CODE.search(program) else None


def _is_python(program: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # A body without its head is a program's, too.
            ast.parse(textwrap.dedent(program))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
