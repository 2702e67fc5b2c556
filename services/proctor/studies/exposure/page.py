"""What a search found, as one self-contained HTML file without script: items against documents, marked in both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader

from proctor.domain.exposure import ExposureVerdict
from proctor.exposure.report import ExposureReport, ItemResult
from proctor.scorer.page.environment import page_environment, report_templates

#: Exposed items that the page shows; the document has all.
MAX_ITEMS: Final = 200
_MAX_CHARACTERS: Final = 4_000
_WORDS: Final = {
    ExposureVerdict.CLEAN_COMPARABLE: "Rule does not hold",
    ExposureVerdict.SCOPE_LIMITED: "Scope limited",
    ExposureVerdict.INVALID_EVIDENCE: "Invalid evidence",
    ExposureVerdict.UNSCORABLE: "Too short",
}


class Piece(NamedTuple):
    """A piece of a text."""

    text: str
    is_match: bool


class ShownPart(NamedTuple):
    """A part of an item with what was found of it."""

    name: str
    pieces: tuple[Piece, ...]
    spans: tuple[dict[str, Any], ...]


class ShownItem(NamedTuple):
    """An exposed item."""

    result: ItemResult
    parts: tuple[ShownPart, ...]


def render(report: ExposureReport) -> str:
    """The page of a search, as HTML text to be written in UTF-8."""
    exposed = [item for item in report.items if item.is_exposed]
    return (
        _environment()
        .get_template("exposure.html.jinja")
        .render(
            report=report,
            total=report.total,
            exposed=len(exposed),
            items=[_shown(item) for item in exposed[:MAX_ITEMS]],
            near=[item for item in report.items if item.has_near_duplicate][:MAX_ITEMS],
            verdicts=[(_WORDS[verdict], report.verdicts[verdict]) for verdict in ExposureVerdict],
            words=_WORDS,
            normalisation=report.normalisation,
        )
    )


@cache
def _environment() -> Environment:
    own = PackageLoader("proctor.studies.exposure", "templates")
    return page_environment(ChoiceLoader([own, report_templates()]))


def _shown(item: ItemResult) -> ShownItem:
    parts = []
    for part, text in item.texts.items():
        spans = tuple(span for span in item.spans if span["part"] == part.value)
        if spans:
            parts.append(ShownPart(part.value, pieces_of(text, spans), spans))
    return ShownItem(item, tuple(parts))


def pieces_of(text: str, spans: Sequence[dict[str, Any]]) -> tuple[Piece, ...]:
    """A text in pieces, those that stand in a document marked; where spans overlap they are one."""
    pieces: list[Piece] = []
    at = 0
    for span in sorted(spans, key=lambda span: (span["start"], -span["end"])):
        start, end = max(at, span["start"]), span["end"]
        if end <= start:
            continue
        if start > at or not pieces:
            pieces += [Piece(text[at:start], is_match=False)] * (start > at)
            pieces.append(Piece(text[start:end], is_match=True))
        else:
            pieces[-1] = Piece(pieces[-1].text + text[start:end], is_match=True)
        at = end
    if rest := text[at:]:
        more = len(rest) - _MAX_CHARACTERS
        cut = f"… ({more:,} more characters)" if more > 0 else ""
        pieces.append(Piece(rest[:_MAX_CHARACTERS] + cut, is_match=False))
    return tuple(pieces)
