"""What a channel says of an audit, whichever channel it is; and all that a plug-in's channel can say."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from proctor.domain.base import Frozen
from proctor.domain.estimate import Estimate

_Name = Annotated[str, Field(min_length=1, max_length=80)]
_Sentence = Annotated[str, Field(max_length=2_000)]
_Cell = Annotated[str, Field(max_length=400)]


class Verdict(StrEnum):
    """What one channel says of an audit."""

    CONTAMINATED = "contaminated"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NOT_AUDITED = "not_audited"


class ChannelEvidence(Frozen):
    """What a channel found: its verdict, with the reasons in sentences."""

    verdict: Verdict
    reasons: tuple[str, ...]

    @property
    def allows_approval(self) -> bool:
        """Whether a suite that requires the channel may be approved with it."""
        return self.verdict is Verdict.CLEAN

    @property
    def against(self) -> str | None:
        """What stands against an approval, as a sentence; None where the verdict says it."""
        return None


class HypothesisEvidence(ChannelEvidence):
    """What a channel found by a test of its own null hypothesis."""

    null_hypothesis: str


class Figure(Frozen):
    """A number that a channel found, or an estimate with its interval, and what it is counted in."""

    value: Estimate | float | None
    """None where it is undefined."""
    unit: str = Field(default="", max_length=40)


class Section(Frozen):
    """A channel's own section of the report's page: a table of text, with what introduces it and explains it."""

    title: str = Field(max_length=200)
    introduction: _Sentence
    label: str = Field(max_length=200)
    """What the table is of, for those who hear the page."""
    columns: tuple[_Cell, ...] = Field(max_length=20)
    rows: tuple[tuple[_Cell, ...], ...] = Field(max_length=1_000)
    """As many cells in each as there are columns; the first names the row."""
    caption: _Sentence = ""

    @model_validator(mode="after")
    def _rows_have_the_columns(self) -> Self:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("a row has more or fewer cells than there are columns")
        return self


class OtherEvidence(HypothesisEvidence):
    """What a plug-in's channel found, with all that a report shows of it: a page is made where no plug-in is."""

    reasons: tuple[_Sentence, ...] = Field(min_length=1, max_length=20)
    null_hypothesis: _Sentence
    compares: _Sentence
    """What is set against what, and when that is suspicious."""
    wording: str = Field(max_length=80)
    """The verdict as the page words it."""
    figures: dict[_Name, Figure] = Field(default_factory=dict, max_length=100)
    section: Section | None = None
