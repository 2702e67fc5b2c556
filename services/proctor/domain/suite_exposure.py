"""Which training data a suite has searched for its items, and by whose rule one counts as exposed."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from proctor.domain.base import Section
from proctor.domain.exposure import AUDIT_POLICIES
from proctor.domain.field_words import Words
from proctor.domain.suite_types import Percent

_STAGES: Final = 16
_PATTERNS: Final = 1_000

_STAGE: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_Pattern = Annotated[str, Field(min_length=1, max_length=4096)]


class ExposureSection(Section):
    """Training data of the model, by stage, that are searched for the benchmark's items while the model answers.

    What is found says of each item whether its result is comparable. That nothing was found is no sign that an item
    is clean: each policy has its recall, and rewordings are found by none.
    """

    corpora: Annotated[
        dict[str, Annotated[tuple[_Pattern, ...], Field(min_length=1, max_length=_PATTERNS)]],
        Words(example='{"pretrain": ["web/*.jsonl.zst"], "tune": ["sft/*.parquet"]}'),
    ] = Field(min_length=1, max_length=_STAGES, examples=[{"pretrain": ["corpus/*.jsonl"]}])
    """Stage of training → paths and globs of its files, relative to the suite's file; in what a gateway is sent, to the
    operator's folder of corpora. In a stage of tuning (tune, sft, …) a label beside the question makes a result no
    evidence."""
    policy: str = "article_8gram_80"
    """The rule by which an item counts as exposed: see `proctor exposure policies`."""
    ngram: int | None = Field(default=None, ge=1, le=100)
    """Words an n-gram; by default the policy's own."""
    without_markup: bool = False
    """Whether Markdown's links, TeX's commands and HTML's tags are taken out of items and documents first."""
    text_columns: tuple[Annotated[str, Field(min_length=1, max_length=256)], ...] = Field(default=(), max_length=64)
    """Columns of the documents' text; by default text or content, or every column of text."""
    max_skipped_pct: Percent = 1.0
    """No verdict where more of the corpus than this could not be read, in percent of documents or bytes."""

    @field_validator("policy")
    @classmethod
    def _policy_exists(cls, name: str) -> str:
        if name not in AUDIT_POLICIES:
            raise PydanticCustomError("unknown_part", "is no policy of audits", {"choices": AUDIT_POLICIES})
        return name

    @field_validator("corpora")
    @classmethod
    def _stages_of_paths(cls, corpora: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for stage in corpora:
            if not _STAGE.fullmatch(stage):
                raise PydanticCustomError(
                    "no_stage",
                    "has a stage whose name does not belong here",
                    {"mend": "write a lower-case word, e.g. pretrain or tune"},
                )
        for pattern in (one for patterns in corpora.values() for one in patterns):
            if "://" in pattern or "\0" in pattern:
                raise PydanticCustomError(
                    "no_path", "names what is no path", {"mend": "name files, e.g. corpus/*.jsonl"}
                )
        return corpora
