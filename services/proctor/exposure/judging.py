"""What the corpus of one stage says of each item, by a policy that counts n-grams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.exposure.index import Index, Unit
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.policies import COMMON_DOCUMENTS, Measure, Policy
from proctor.exposure.scanned import Scanned, Window
from proctor.exposure.spans import matches
from proctor.text.overlap_words import overlap_words


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


class StageItem(NamedTuple):
    """What one stage's corpus says of an item."""

    containment: float | None
    longest_run: int
    is_exposed: bool
    has_label: bool
    """Whether the item's answer, or its identifier, stands beside what was found."""
    is_scorable: bool
    parts: tuple[PartResult, ...] = ()
    spans: tuple[dict[str, Any], ...] = ()


def judge_stage(
    items: Sequence[ScannedItem],
    index: Index,
    scanned: Scanned,
    policy: Policy,
    stage: str,
    prepare: Callable[[str], str] = str,
) -> list[StageItem]:
    """Judge each item by what a scan found.

    Args:
        items: what the index was made of.
        index: it.
        scanned: what the scan with it found.
        policy: the rule.
        stage: of training that the corpus is of.
        prepare: what was done to the items' texts.
    """
    by_item: dict[int, list[tuple[int, Unit]]] = {}
    for number, unit in enumerate(index.units):
        by_item.setdefault(unit.item, []).append((number, unit))
    anywhere = _anywhere(index, scanned, policy)
    judged = []
    for place, item in enumerate(items):
        mine = by_item.get(place, [])
        parts = tuple(_part(number, unit, index, scanned, policy, anywhere) for number, unit in mine)
        judged.append(_item(item, parts, [number for number, _ in mine], index, scanned, policy, stage, prepare))
    return judged


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
) -> StageItem:
    if policy.with_options and Part.CHOICES in item.parts:
        windows = (scanned.windows.get(number) for number in numbers)
        parts = tuple(
            one._replace(is_past=one.is_past and found_in is not None and _has_options(item, found_in[1]))
            for one, found_in in zip(parts, windows, strict=True)
        )
    of_rule = [one for one in parts if one.part in policy.parts]
    containments = [one.containment for one in of_rule if one.containment is not None]
    spans: list[dict[str, Any]] = []
    is_exposed = has_label = False
    for number, one in zip(numbers, parts, strict=True):
        if not one.is_past:
            continue
        found_in = scanned.windows.get(number)
        own = _spans(item, one.part, found_in, index.arrays.n, stage, prepare) if found_in is not None else []
        # What was found by its keys alone, and not by its words, was a foreign n-gram with an item's key.
        is_exposed |= bool(own) or one.whole_documents > 0
        spans += own
        has_label |= found_in is not None and _has_label(item, found_in[1])
    return StageItem(
        containment=max(containments, default=None),
        longest_run=max((one.longest_run for one in of_rule), default=0),
        is_exposed=is_exposed,
        has_label=has_label,
        is_scorable=bool(containments),
        parts=parts,
        spans=tuple(spans),
    )


def _spans(
    item: ScannedItem,
    part: Part,
    found_in: tuple[str, Window],
    n: int,
    stage: str,
    prepare: Callable[[str], str],
) -> list[dict[str, Any]]:
    file, window = found_in
    text = prepare(item.parts[part])
    return [
        {
            "stage": stage,
            "part": part.value,
            "start": match.start,
            "end": match.end,
            "words": match.words,
            "text": text[match.start : match.end],
            "file": file,
            "document": window.position,
            "offset": window.offset_bytes + match.document_start,
            "before": match.before,
            "document_text": match.document_text,
            "after": match.after,
        }
        for match in matches(text, window.text, n)
    ]


def _has_options(item: ScannedItem, window: Window) -> bool:
    """Whether every option of an item stands around what was found of it, in whatever order."""
    around = _words_of(window)
    options = map(forms, item.parts[Part.CHOICES].splitlines())
    return all(f" {' '.join(option)} " in around for option in options if option)


def _words_of(window: Window) -> str:
    return f" {' '.join(forms(window.text.decode('utf-8', 'replace')))} "


def _has_label(item: ScannedItem, window: Window) -> bool:
    around = _words_of(window)
    labels = [item.parts.get(Part.ANSWER, ""), item.item_id if not item.item_id.isdigit() else ""]
    return any(label and f" {' '.join(label)} " in around for label in map(forms, labels))


def forms(text: str) -> list[str]:
    """The words of a text."""
    return [word.form for word in overlap_words(text)]
