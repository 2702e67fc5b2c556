"""A search of training data inside an audit: what is to be searched, and what came of it. Both travel by digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.exposure import ExposureVerdict

#: Places in training data that are kept of an item, and characters of what stands there.
MAX_SPANS: Final = 4
SPAN_CHARACTERS: Final = 300


class CorpusFileFacts(Frozen):
    """A file of training data, as it was when the audit was submitted."""

    path: str
    """As it is reported: relative to the plan's folder, or absolute where the suite says so."""
    size_bytes: int
    sample: str
    """Digest of its content, or of its first and last bytes in a corpus that is too large to be read twice."""


class CorpusPlan(Frozen):
    """What is to be searched, and by whose rule."""

    folder: str | None
    """What relative paths start from; None for the operator's folder of corpora, which each machine has for itself."""
    stages: Mapping[str, tuple[CorpusFileFacts, ...]]
    """Stage of training → its files."""
    policy: str
    ngram: int | None = None
    without_markup: bool = False
    text_columns: tuple[str, ...] = ()
    max_skipped_pct: float = 1.0

    @property
    def corpora_digest(self) -> str:
        """Digest of the files by stage, by name, size and content: what a protocol card binds. Where they lie takes no
        part."""
        return json_digest(
            {
                stage: [[file.path.rpartition("/")[2], file.size_bytes, file.sample] for file in files]
                for stage, files in self.stages.items()
            }
        )

    @property
    def n_bytes(self) -> int:
        """Of all files, packed as they are."""
        return sum(file.size_bytes for files in self.stages.values() for file in files)


class CorpusSpan(Frozen):
    """Words of an item that stand in a document."""

    stage: str
    part: str
    start: int
    """Characters of the item's part."""
    end: int
    words: int
    text: str
    """The item's words, their beginning where they are many."""
    file: str
    document: int
    """Line or row in the file, from 1; in plain text the first byte of the piece."""
    offset: int
    """Bytes into the document."""


class StageFinding(Frozen):
    """What one stage's data say of an item."""

    is_exposed: bool
    has_label: bool
    containment: float | None
    longest_run: int


class ItemFinding(Frozen):
    """An item whose result is not comparable, and where it stands."""

    item_id: str
    verdict: ExposureVerdict
    reasons: tuple[str, ...]
    stages: Mapping[str, StageFinding]
    spans: tuple[CorpusSpan, ...] = ()

    @property
    def is_exposed(self) -> bool:
        """Whether the policy's rule holds in any stage."""
        return any(stage.is_exposed for stage in self.stages.values())


class SearchedStage(Frozen):
    """How much of a stage's data was read."""

    files: int
    documents: int
    bytes: int
    """Of the documents' text."""
    skipped: int
    unread_bytes: int


class CorpusSearch(Frozen):
    """What a search found. Items that are not named here are `clean_comparable` under the policy."""

    policy: str
    rule: str
    ngram: int
    normalisation: str
    stages: Mapping[str, SearchedStage]
    n_items: int
    verdicts: Mapping[ExposureVerdict, int]
    items: tuple[ItemFinding, ...]
    """Those that are exposed, in the order of the audit's."""
    unscorable: tuple[str, ...] = ()
    """Items that are too short for the rule."""
    skipped_places: tuple[str, ...] = ()
    invalid: str | None = None
    """Why nothing follows from it: too much could not be read."""


class Searched(Frozen):
    """How a search ended."""

    found: str | None = None
    """Digest of the CorpusSearch."""
    error: str | None = None
    """Why there is none."""
