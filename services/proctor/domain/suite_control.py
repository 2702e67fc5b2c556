"""Which control items a suite has reworded and asked beside its benchmark: items that cannot have leaked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from proctor.domain.base import Section
from proctor.domain.field_words import Words
from proctor.domain.shared_context import SHARED_CONTEXT


class ControlSection(Section):
    """Items that no model can have seen, asked in both wordings as the benchmark's are.

    They were written after the model's cut-off, are private, or were made anew. They are reworded by the same
    strategies through the same gate, so what rewording costs on them is no memory, and only what it costs beyond that
    on the benchmark is held against the limits. Columns that are left out are those of dataset_config.
    """

    path: str = Field(min_length=1, max_length=4096, examples=["control.jsonl"])
    """A JSONL, CSV or Parquet file of items, relative to the suite's file; no id is one of the benchmark's."""
    sample_size: int = Field(default=500, ge=1, le=1_000_000)
    """How many control items are asked, drawn as dataset_config says."""
    id_field: str | None = None
    """The column of the id; by default item_id or id if there is one, else the position."""
    question_field: str | None = None
    """The column of the question."""
    choices_field: str | None = None
    """The column of the options of a multiple-choice item."""
    target_field: str | None = None
    """The column of the right answer."""
    cluster_field: Annotated[
        str | None, Words(alphabet=f"a column's name, or the reserved {SHARED_CONTEXT}", example=f'"{SHARED_CONTEXT}"')
    ] = Field(
        default=None,
        min_length=1,
        max_length=256,
        pattern=rf"^([^@]|{SHARED_CONTEXT}$)",
        examples=["passage_id", SHARED_CONTEXT],
        exclude_if=lambda field: field is None,
    )
    """What control items share, as dataset_config.cluster_field says it of the benchmark's; without it they are taken
    to be as much alike as the benchmark's."""
