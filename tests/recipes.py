"""The recipes of docs/extending.md, as they stand there: what a test runs is what a reader copies."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[1] / "docs" / "extending.md"


def recipe(heading: str, language: str = "python") -> str:
    """The code of a section of the guide: its first block in a language.

    Args:
        heading: of the section, e.g. `A stage`.
        language: as it stands after the fence.
    """
    section = re.split(r"^## ", GUIDE.read_text(), flags=re.M)
    (text,) = [part for part in section if part.startswith(f"{heading}\n")]
    found = re.search(rf"^```{language}\n(.*?)^```$", text, flags=re.M | re.S)
    assert found, f"the section {heading!r} has no {language} block"
    return found[1]
