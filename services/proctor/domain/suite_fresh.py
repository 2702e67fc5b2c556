"""Which fresh items a suite has asked beside its benchmark: items of the same kind that no model can have seen."""

from __future__ import annotations

from pydantic import Field

from proctor.domain.base import Section


class FreshSection(Section):
    """Newly made items of the benchmark's kind, asked of the model beside it in the arm `fresh`.

    A model that learned the benchmark in every wording answers it better than these. Columns that are left out are
    those of dataset_config.
    """

    path: str = Field(min_length=1, max_length=4096, examples=["fresh.jsonl"])
    """A JSONL, CSV or Parquet file of items, relative to the suite's file; no id is one of the benchmark's."""
    sample_size: int = Field(default=500, ge=1, le=1_000_000)
    """How many fresh items are asked, drawn as dataset_config says."""
    id_field: str | None = None
    """The column of the id; by default item_id or id if there is one, else the position."""
    question_field: str | None = None
    """The column of the question."""
    choices_field: str | None = None
    """The column of the options of a multiple-choice item."""
    target_field: str | None = None
    """The column of the right answer."""
    panel_path: str | None = Field(default=None, min_length=1, max_length=4096, examples=["panel.jsonl"])
    """What reference models answered to the benchmark and to the fresh items: JSON lines with model, item_id and
    correct, relative to the suite's file. They show how much harder the fresh items are for everyone."""
