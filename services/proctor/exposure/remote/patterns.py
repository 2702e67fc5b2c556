"""Globs of names that no file system matches: keys of a bucket, paths of a repository. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Final

_MAGIC: Final = re.compile(r"[*?\[]")
_ANY_FOLDERS: Final = "**"


def is_pattern(text: str) -> bool:
    """Whether a text has a sign of a glob in it."""
    return _MAGIC.search(text) is not None


def folder_of(pattern: str) -> str:
    """The folder that every name which a glob matches is in: what comes before its first sign, up to a stroke."""
    found = _MAGIC.search(pattern)
    head = pattern[: found.start()] if found else pattern
    return head.rpartition("/")[0]


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a name is one that a glob matches: `*`, `?` and `[…]` within a part of it, `**` any parts or none."""
    wanted = pattern.split("/")
    if wanted[-1] == _ANY_FOLDERS:
        # A name has something in the folder.
        wanted.append("*")

    def matches(name: str) -> bool:
        # How many of the pattern's parts may have been used up by the name's parts so far.
        reached = _past_any({0}, wanted)
        for part in name.split("/"):
            further = {at for at in reached if at < len(wanted) and wanted[at] == _ANY_FOLDERS}
            further |= {at + 1 for at in reached if at < len(wanted) and fnmatchcase(part, wanted[at])}
            reached = _past_any(further, wanted)
        return len(wanted) in reached

    return matches


def _past_any(reached: set[int], wanted: list[str]) -> set[int]:
    for at in sorted(reached):
        while at < len(wanted) and wanted[at] == _ANY_FOLDERS:
            at += 1
            reached.add(at)
    return reached
