"""Write docs/suite.md, the page of a suite's fields, from what the fields say of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proctor.domain.suite_fields import Place, all_places

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "suite.md"
_HEAD: Final = (
    "# Suite\n\n"
    "Every field of an audit suite: what `proctor suite schema` and `proctor suite init` print, as a page. Keys named "
    "`$comment` are ignored wherever they stand. Written by `python scripts/write_suite_page.py` from the fields "
    "themselves; a test holds it to them.\n\n"
    "| field | default | what it says |\n"
    "|---|---|---|\n"
)


def page() -> str:
    """The page's text."""
    return _HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for place in all_places():
        meaning = place.meaning.replace("|", "\\|")
        yield f"| `{place.dotted}` | {_default(place)} | {meaning} |"


def _default(place: Place) -> str:
    if place.field.is_required():
        return "required"
    if place.is_section:
        return ""
    return "none" if place.default_words == "none" else f"`{place.default_words}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
