"""What a scan says of each item, by a policy."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.domain.errors import ProctorError
from proctor.exposure.index import Index, Unit
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.policies import COMMON_DOCUMENTS, Measure, Policy
from proctor.exposure.scanned import Scanned, Window
from proctor.exposure.spans import matches
from proctor.text.overlap_words import NORMALISATION, overlap_words

CLEAN: Final = "clean_comparable"
LIMITED: Final = "scope_limited"
INVALID: Final = "invalid_evidence"
UNSCORABLE: Final = "unscorable"
#: Stages in which a model is shown what to answer: an item's answer there is a label that leaked.
_TUNING: Final = frozenset(("tune", "finetune", "sft", "rlhf", "instruct"))
MARKUP_REMOVED: Final = "+without-markup"


class PartResult(NamedTuple):
    """What was found of one part of an item."""

    part: Part
    words: int
    grams: int
    containment: float | None
    """By the policy's measure where that is a share, otherwise the share of n-grams in one document; None where the
    part is too short to have an n-gram."""
    longest_run: int
    """Words."""
    whole_documents: int
    """Documents, or columns of documents, that are this part and nothing else."""
    is_past: bool
    """Whether it makes the item exposed under the policy."""


class ItemResult(NamedTuple):
    """What was found of an item."""

    item_id: str
    containment: float | None
    longest_run: int
    verdict: str
    parts: tuple[PartResult, ...]
    spans: tuple[dict[str, Any], ...]

    @property
    def is_exposed(self) -> bool:
        """Whether the policy's rule holds for it."""
        return self.verdict in (LIMITED, INVALID)


class ExposureReport(NamedTuple):
    """A scan's outcome."""

    policy: Policy
    n: int
    stage: str
    markup_removed: bool
    items: tuple[ItemResult, ...]
    scanned: Scanned
    duplicates: int
    """Items whose question another item before them has."""

    @property
    def n_exposed(self) -> int:
        """Items that the policy calls exposed."""
        return sum(item.is_exposed for item in self.items)

    @property
    def n_unscorable(self) -> int:
        """Items too short for an n-gram, and not found whole."""
        return sum(item.verdict == UNSCORABLE for item in self.items)

    def document(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "policy": self.policy.name,
            "rule": self.policy.words,
            "source": self.policy.source,
            "ngram": self.n,
            "stage": self.stage,
            "normalisation": NORMALISATION + (MARKUP_REMOVED if self.markup_removed else ""),
            "n_items": len(self.items),
            "n_unscorable": self.n_unscorable,
            "n_exposed": self.n_exposed,
            "n_duplicates": self.duplicates,
            "documents": self.scanned.documents,
            "bytes": self.scanned.bytes,
            "skipped": self.scanned.skipped,
            "skipped_places": [one._asdict() for one in self.scanned.skipped_places],
            "unread_bytes": self.scanned.unread_bytes,
            "broken_off": [{"file": file, "reason": why} for file, why in self.scanned.broken_off],
            "items": [
                {
                    "item_id": item.item_id,
                    "containment": item.containment,
                    "longest_run": item.longest_run,
                    "verdict": item.verdict,
                    "parts": {
                        one.part.value: {name: value for name, value in one._asdict().items() if name != "part"}
                        for one in item.parts
                    },
                    "spans": list(item.spans),
                }
                for item in self.items
            ],
        }


def exposure_report(
    items: Sequence[ScannedItem],
    index: Index,
    scanned: Scanned,
    policy: Policy,
    *,
    stage: str = "pretrain",
    markup_removed: bool = False,
    prepare: Callable[[str], str] = str,
) -> ExposureReport:
    """Judge what was found.

    An exposed item is `scope_limited`; where the stage is one in which a model is tuned, and the item's answer or
    identifier stands beside the question, it is `invalid_evidence`. `clean_comparable` says that the policy's rule does
    not hold, and nothing of what the policy cannot see.

    Args:
        items: what the index was made of.
        index: it.
        scanned: what a scan with it found.
        policy: the rule.
        stage: of training that the corpus is of.
        markup_removed: whether markup was taken out of items and documents.
        prepare: what was done to the items' texts.
    """
    by_item: dict[int, list[tuple[int, Unit]]] = {}
    for number, unit in enumerate(index.units):
        by_item.setdefault(unit.item, []).append((number, unit))
    anywhere = _anywhere(index, scanned, policy)
    results = []
    for place, item in enumerate(items):
        mine = by_item.get(place, [])
        parts = tuple(_part(number, unit, index, scanned, policy, anywhere) for number, unit in mine)
        results.append(_item(item, parts, [number for number, _ in mine], index, scanned, policy, stage, prepare))
    seen: set[bytes] = set()
    for item in items:
        seen.add(hashlib.sha256(" ".join(_forms(item.parts[Part.QUESTION])).encode()).digest())
    return ExposureReport(
        policy, index.arrays.n, stage, markup_removed, tuple(results), scanned, len(items) - len(seen)
    )


def check_skipped(report: ExposureReport, files_bytes: int, most: float) -> None:
    """Refuse a verdict on a corpus of which too much could not be read.

    Raises:
        ProctorError: when nothing was read, or more than this share was not.
    """
    scanned = report.scanned
    attempted = scanned.documents + scanned.skipped
    share = max(
        scanned.skipped / attempted if attempted else 0.0, scanned.unread_bytes / files_bytes if files_bytes else 0.0
    )
    where = [f"{one.file}:{one.position}: {one.reason}" for one in scanned.skipped_places[:3]]
    where += [f"{file} breaks off: {why}" for file, why in scanned.broken_off[:3]]
    if scanned.documents and share <= most:
        return
    head = (
        f"{100 * share:.2g} % of the corpus could not be read, more than the {100 * most:g} % that are let pass "
        "(--max-skipped): no verdict"
        if scanned.documents
        else "the corpus holds no document that could be read; nothing was searched, and nothing is said of the items"
    )
    raise ProctorError("\n  ".join([head, *where]))


def _anywhere(index: Index, scanned: Scanned, policy: Policy) -> NDArray[np.int64]:
    """(U,) how many of each unit's n-grams the corpus has; for GPT-3's rule only those that are not common."""
    arrays, having = index.arrays, scanned.found.documents_with
    counts = (having > 0) & (having <= COMMON_DOCUMENTS) if policy.measure is Measure.RARE else having > 0
    grams = np.repeat(np.arange(len(having)), np.diff(arrays.place_starts))
    pairs = np.unique(np.stack([arrays.place_units, grams], axis=1), axis=0) if len(grams) else np.empty((0, 2), int)
    return np.bincount(pairs[counts[pairs[:, 1]], 0], minlength=len(index.units))


def _part(
    number: int, unit: Unit, index: Index, scanned: Scanned, policy: Policy, anywhere: NDArray[np.int64]
) -> PartResult:
    found, n = scanned.found, index.arrays.n
    whole = int(found.whole[number])
    longest = int(found.longest[number])
    run = longest + n - 1 if longest else unit.words if whole else 0
    value: float | None = None
    containment: float | None = None
    if unit.grams:
        one_document = int(found.weight[number]) / unit.weight
        share = int(anywhere[number]) / unit.grams
        containment = share if policy.measure is Measure.ANYWHERE else one_document
        value = {
            Measure.ONE_DOCUMENT: one_document,
            Measure.WEIGHTED: one_document,
            Measure.ANYWHERE: share,
            Measure.RARE: float(anywhere[number]),
            Measure.VERBATIM: run / unit.words,
        }[policy.measure]
    is_past = unit.part in policy.parts and (whole > 0 or (value is not None and policy.is_past(value)))
    return PartResult(unit.part, unit.words, unit.grams, containment, run, whole, is_past)


def _item(
    item: ScannedItem,
    parts: tuple[PartResult, ...],
    numbers: Sequence[int],
    index: Index,
    scanned: Scanned,
    policy: Policy,
    stage: str,
    prepare: Callable[[str], str],
) -> ItemResult:
    judged = [one for one in parts if one.part in policy.parts]
    containments = [one.containment for one in judged if one.containment is not None]
    containment = max(containments, default=None)
    longest = max((one.longest_run for one in judged), default=0)
    spans: list[dict[str, Any]] = []
    is_exposed = leaks_label = False
    for number, one in zip(numbers, parts, strict=True):
        window = scanned.windows.get(number)
        if not one.is_past:
            continue
        own = _spans(item, one, window, index.arrays.n, prepare) if window is not None else []
        # What was found by its keys alone, and not by its words, was a foreign n-gram with an item's key.
        is_exposed |= bool(own) or one.whole_documents > 0
        spans += own
        leaks_label |= window is not None and _has_label(item, window)
    if is_exposed:
        verdict = INVALID if stage in _TUNING and leaks_label else LIMITED
    elif not containments:
        verdict = UNSCORABLE
    else:
        verdict = CLEAN
    return ItemResult(item.item_id, containment, longest, verdict, parts, tuple(spans))


def _spans(
    item: ScannedItem, part: PartResult, window: Window, n: int, prepare: Callable[[str], str]
) -> list[dict[str, Any]]:
    text = prepare(item.parts[part.part])
    return [
        {
            "part": part.part.value,
            "start": match.start,
            "end": match.end,
            "words": match.words,
            "text": text[match.start : match.end],
            "file": window.file,
            "document": window.position,
            "offset": window.offset_bytes + match.document_start,
            "document_text": match.document_text,
        }
        for match in matches(text, window.text, n)
    ]


def _has_label(item: ScannedItem, window: Window) -> bool:
    """Whether the item's answer, or its identifier, stands beside what was found."""
    around = f" {' '.join(_forms(window.text.decode('utf-8', 'replace')))} "
    labels = [item.parts.get(Part.ANSWER, ""), item.item_id if not item.item_id.isdigit() else ""]
    return any(forms and f" {' '.join(forms)} " in around for forms in map(_forms, labels))


def _forms(text: str) -> list[str]:
    return [word.form for word in overlap_words(text)]
