"""Faults in a file that a person wrote, worded so that the person can mend them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from proctor.domain.errors import BadInputError

Path = tuple[str | int, ...]

#: More than this is one cause repeated; the rest is counted.
MAX_SHOWN = 50
_SHOWN_CHARACTERS = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,63}", re.ASCII)
#: Control, format (bidi marks among them), surrogate, private and separating characters can forge output.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


@dataclass(frozen=True)
class Problem:
    """One fault. `path` is as the person wrote it, `value` what stands there (quoted), empty where nothing does."""

    path: str
    value: str
    message: str
    mend: str

    def __str__(self) -> str:
        subject = f"{self.path}: {self.value}" if self.value else f"{self.path}:"
        return f"{subject} {self.message}; {self.mend}"


class Fault(NamedTuple):
    """A problem with the path where it stands, and all the paths that have a part in it."""

    path: Path
    problem: Problem
    involved: tuple[Path, ...]


class SuiteProblems(BadInputError):
    """A suite that cannot be used, with all its problems at once."""

    def __init__(self, problems: Sequence[Problem], source: str = "suite") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(self._text())

    def of(self, source: str) -> SuiteProblems:
        """The same problems, under the name of the file that they were found in."""
        return SuiteProblems(self.problems, source)

    def lines(self) -> list[str]:
        """One line a problem, each with the file's name."""
        source = visible(self.source)
        shown = [f"{source}: {problem}" for problem in self.problems[:MAX_SHOWN]]
        hidden = len(self.problems) - len(shown)
        if hidden:
            shown.append(f"{source}: {hidden} more problem{'s' if hidden > 1 else ''}")
        return shown

    def _text(self) -> str:
        return "\n".join(self.lines())


def visible(text: str) -> str:
    """The text with every character that would not show, or would act on a terminal, as an escape."""
    return "".join(_escape(sign) if _hidden(sign) else sign for sign in text)


def _hidden(sign: str) -> bool:
    return sign != " " and unicodedata.category(sign) in _UNPRINTABLE


def _escape(character: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    return short or (f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}")


def quoted(value: Any) -> str:
    """A value as JSON on one line, shortened, with control characters shown as escapes."""
    if isinstance(value, (dict, list)) and len(value) > 20:
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
        value = value[:_SHOWN_CHARACTERS] + "…"
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 2 * _SHOWN_CHARACTERS else text[: 2 * _SHOWN_CHARACTERS] + "…"


def path_text(path: Path) -> str:
    """A path as a person would write it: `governance.notify_on_failure[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quoted(part)}]"
    return text or "(the whole file)"


def value_at(tree: Any, path: Path) -> Any:
    """What stands at a path, None where nothing does."""
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return None
    return tree
