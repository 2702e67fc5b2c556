"""The recipes of docs/extending.md, as they stand there: what a test runs is what a reader copies."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

GUIDE = Path(__file__).parents[1] / "docs" / "extending.md"
#: Sections of the guide that have a part to install.
HEADINGS: Final = ("A strategy", "A backend", "A log format", "A registry", "A channel", "A stage")
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"# (\w+)\.py\n")


class Parts(NamedTuple):
    """What recipes say to install."""

    modules: Mapping[str, str]
    """Name → source."""
    entry_points: Mapping[str, Mapping[str, str]]
    """Group → name → reference."""


def recipes(*headings: str) -> Parts:
    """What the sections of the guide say to install, all together; without headings, the whole guide."""
    modules, entry_points = dict[str, str](), dict[str, dict[str, str]]()
    for heading in headings or HEADINGS:
        blocks = _blocks(heading)
        named = {name[1]: text for kind, text in blocks if kind == "python" and (name := _NAME.match(text))}
        assert named, f"the section {heading!r} has no module with a name"
        modules |= named
        for kind, text in blocks:
            if kind == "toml":
                for group, points in tomllib.loads(text)["project"]["entry-points"].items():
                    entry_points.setdefault(group, {}).update(points)
    return Parts(modules, entry_points)


def recipe(heading: str, language: str = "python") -> str:
    """The code of a section of the guide: its first block in a language.

    Args:
        heading: of the section, e.g. `A stage`.
        language: as it stands after the fence.
    """
    found = next((text for kind, text in _blocks(heading) if kind == language), None)
    assert found, f"the section {heading!r} has no {language} block"
    return found


def _blocks(heading: str) -> list[tuple[str, str]]:
    """The code of a section of the guide: language and text of each block, in order."""
    sections = re.split(r"^## ", GUIDE.read_text(), flags=re.MULTILINE)
    (text,) = [part for part in sections if part.startswith(f"{heading}\n")]
    return _BLOCK.findall(text)
