"""The report as a document: everything that an audit found, in one canonical JSON that hashes the same each time.

Nothing of the run is inside: no times, latencies, ports, audit ids or error texts, and not how many variants the
library already held. So the same suite on a deterministic endpoint gives the same bytes, calm or under faults,
and the report digest is the SHA-256 of the file as it lies on disk. What belongs to one run (`RunFacts`) is shown
in the page's footer only. The page is built by `proctor.scorer.page.html`, the document by
`proctor.scorer.report.assembly`.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field

from proctor.domain.answering_check import AnsweringCheck
from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.card import ProtocolCard
from proctor.domain.decision import Decision
from proctor.domain.evidence import Evidence
from proctor.domain.item import Measurements
from proctor.domain.labels import LabelScheme
from proctor.domain.limitation import Limitation
from proctor.domain.looks import SequentialRecord
from proctor.domain.suite import Suite
from proctor.domain.trial import FinishReason, Outcome
from proctor.domain.versions import added
from proctor.domain.weights import Weights, weights_known

SCHEMA_VERSION: Literal["proctor-report/1"] = "proctor-report/1"
#: Enough to read a question with its options and a worked answer; keeps the page of 50 items under a few MB.
MAX_TEXT_CHARACTERS = 2_000
#: A question as a one-line reminder of the item; its prompt stands in full below it.
MAX_QUESTION_CHARACTERS = 200
MAX_ITEMS = 50
MAX_REWORDINGS_PER_ITEM = 10
#: The items whose rewordings are listed with their measurements: four times the default sample, at five rewordings
#: each. Such a list takes about 4 MB of the document and 4 MB of the page, however large the suite.
MAX_ITEMS_LISTED = 2_000
MAX_REWORDINGS_LISTED = 10_000
MAX_LISTED_TEXT_CHARACTERS = 120
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Excerpt(Frozen):
    """A text of at most `MAX_TEXT_CHARACTERS`, and how many characters more it had."""

    text: str
    cut_characters: int = 0


def excerpt(text: str, *, max_characters: int = MAX_TEXT_CHARACTERS) -> Excerpt:
    """Cap a text; the cut is counted, so that a reader always sees that there was more."""
    return Excerpt(text=text[:max_characters], cut_characters=max(0, len(text) - max_characters))


class Subject(Frozen):
    """The model version that was audited."""

    model_id: str
    digest: str
    """Content hash of the weights."""
    verified: bool
    """Whether the digest is proven; in reports of before there was `weights`, whether any was reported."""
    server: str
    """What answered: the server's name and version, as it reported them."""
    weights: Weights | None = added(None, since=2)
    """How the digest is known; None in reports of before there were kinds, see `weights_known`."""

    @property
    def weights_known(self) -> Weights:
        """How the digest is known."""
        return weights_known(self.weights, reported=self.verified)


class AnswerDetail(Frozen):
    """One prompt with what came back. `outcome` is None where nothing came back or nothing was graded."""

    prompt: Excerpt
    answer: Excerpt | None
    finish_reason: FinishReason
    outcome: Outcome | None
    extracted: Excerpt | None
    extractor: str


class AdmittedVariant(Frozen):
    """A rewording that was admitted, with the measurements that admitted it."""

    variant_id: str
    strategy: str
    level: int
    measurements: Measurements
    labels: LabelScheme | None = Field(default=None, exclude_if=lambda labels: labels is None)
    """How the prompt labels the options, where it is not by A., B., C., …; not written otherwise."""


class RewordingDetail(AnswerDetail, AdmittedVariant):
    """One reworded prompt with what came back, and the measurements that admitted the rewording."""


class ItemDetail(Frozen):
    """An item as it was asked, in its own wording and in others."""

    rank: int
    """1 is the most suspected item."""
    item_id: str
    question: Excerpt
    dimension: str
    suspicion: float
    flagged: bool
    canonical_correct: bool
    perturbed_correct: int
    perturbed_total: int
    target: Excerpt
    canonical: AnswerDetail
    rewordings: tuple[RewordingDetail, ...]
    rewordings_not_shown: int


class Spread(Frozen):
    """Smallest, middle and largest of a measurement."""

    low: float
    median: float
    high: float


class LeftOut(Frozen):
    """A selected item that took no part in the perturbation evidence, and why."""

    item_id: str
    reason: str


class ListedVariant(AdmittedVariant):
    """An admitted rewording as the list of all items has it: what it asks, without the prompt and the answer."""

    question: Excerpt


class ItemVariants(Frozen):
    """A selected item with all of its admitted rewordings, and how many more were turned away."""

    item_id: str
    question: Excerpt
    """The canonical wording."""
    variants: tuple[ListedVariant, ...]
    rejected: dict[str, int]
    """The item's rejected rewordings by reason."""


class VariantsSummary(Frozen):
    """What the perturbation service admitted and turned away."""

    strategy: str
    encoder: str
    admitted: int
    admitted_by_strategy: dict[str, int]
    items_with_variants: int
    rejected: dict[str, int]
    """Rejected rewordings by reason."""
    semantic_distance: Spread | None
    token_overlap: Spread | None
    edit_distance: Spread | None
    containment: Spread | None
    """Over the rewordings whose containment was measured."""
    items_left_out: tuple[LeftOut, ...]
    items: tuple[ItemVariants, ...]
    """The selected items in the order in which they were drawn, audited or not, each with all of its rewordings; at
    most `MAX_ITEMS_LISTED` items and `MAX_REWORDINGS_LISTED` rewordings."""
    items_not_listed: int
    """Selected items past those limits. The counts above are over them too."""
    answering_check: AnsweringCheck | None = Field(default=None, exclude_if=lambda check: check is None)
    """What solvers answered, and what is held by that; not written where none were asked."""


class Counts(Frozen):
    """Trials by what became of them: `trials` = `graded` + `failed` + `dead_lettered`."""

    items_selected: int
    items_audited: int
    trials: int
    graded: int
    correct: int
    incorrect: int
    invalid: int
    """Graded answers that held no readable answer; they count as not right."""
    truncated: int
    """Answers that reached the ceiling of generated tokens."""
    failed: int
    """Trials that came back with an error; neither right nor wrong."""
    dead_lettered: int
    """Trials of shards that were given up."""


class Report(Frozen):
    """One audit's report."""

    schema_version: Literal["proctor-report/1"] = SCHEMA_VERSION
    suite: Suite
    card: ProtocolCard
    fingerprint: str
    protocol_digest: str
    subject: Subject
    decision: Decision
    evidence: Evidence
    items: tuple[ItemDetail, ...]
    """The most suspected items, first the most suspected; at most `MAX_ITEMS`."""
    variants: VariantsSummary
    counts: Counts
    limits: tuple[Limitation, ...]
    seeds: dict[str, int | None]
    sequential: SequentialRecord | None = Field(default=None, exclude_if=lambda record: record is None)
    """The looks of a sequential audit, and why it stopped; not written of a fixed one."""
    versions: dict[str, str]


class RunFacts(Frozen):
    """What belongs to one run and so stays outside the document and its digest."""

    audit_id: str = ""
    notes: tuple[str, ...] = ()
    """Sentences on the run itself, e.g. why shards were given up."""


def to_json(report: Report) -> bytes:
    """The document's bytes: canonical JSON, the same for the same audit content.

    Lone surrogates, which text from elsewhere can carry and UTF-8 cannot, become U+FFFD.
    """
    return canonical_json(_storable(report.plain()))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_storable(inner) for inner in value]
    return value


def report_digest(report: Report) -> str:
    """Digest of the document's bytes, as `sha256sum` of the file prints it."""
    return bytes_digest(to_json(report))
