"""What is said of each item, over all stages of training, and of the search."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from proctor.domain.errors import ProctorError
from proctor.domain.exposure import TUNING_STAGES, ExposureVerdict
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import PartResult, StageItem, forms
from proctor.exposure.near.report import ItemNear, NearReport
from proctor.exposure.policies import Policy
from proctor.exposure.scanned import SHOWN_SKIPPED, Counts
from proctor.text.overlap_words import NORMALISATION

MARKUP_REMOVED: Final = "+without-markup"


class ItemResult(NamedTuple):
    """What was found of an item."""

    item_id: str
    verdict: ExposureVerdict
    reasons: tuple[str, ...]
    """Why it is not comparable."""
    stages: Mapping[str, StageItem]
    texts: Mapping[Part, str]
    """Its parts, as they were looked for."""
    near: tuple[ItemNear, ...] = ()
    """What is like it, where that was searched for: near duplicates, and what asks something else."""

    @property
    def is_exposed(self) -> bool:
        """Whether the policy's rule holds for it in any stage."""
        return any(one.is_exposed for one in self.stages.values())

    @property
    def has_near_duplicate(self) -> bool:
        """Whether a near duplicate was found in any stage, by any method."""
        return any(one.is_duplicate for one in self.near)

    @property
    def containment(self) -> float | None:
        """The largest of any stage."""
        found = [one.containment for one in self.stages.values() if one.containment is not None]
        return max(found, default=None)

    @property
    def longest_run(self) -> int:
        """The longest of any stage, in words."""
        return max(one.longest_run for one in self.stages.values())

    @property
    def spans(self) -> tuple[dict[str, Any], ...]:
        """Of all stages."""
        return tuple(span for one in self.stages.values() for span in one.spans)

    def document(self) -> dict[str, Any]:
        """The result as plain data; parts under their stage."""
        return {
            "item_id": self.item_id,
            "containment": self.containment,
            "longest_run": self.longest_run,
            "verdict": self.verdict.value,
            "reasons": list(self.reasons),
            "stages": {
                stage: {
                    "is_exposed": one.is_exposed,
                    "containment": one.containment,
                    "longest_run": one.longest_run,
                    "parts": {part.part.value: _plain(part) for part in one.parts},
                }
                for stage, one in self.stages.items()
            },
            "spans": list(self.spans),
            **({"near": [one.document() for one in self.near]} if self.near else {}),
        }


class ExposureReport(NamedTuple):
    """A search's outcome."""

    policy: Policy
    n: int
    markup_removed: bool
    items: tuple[ItemResult, ...]
    counts: Mapping[str, Counts]
    """By stage."""
    duplicates: int
    """Items whose question another item before them has."""
    near: tuple[NearReport, ...] = ()
    """Searches for near duplicates, one a method."""

    @property
    def n_exposed(self) -> int:
        """Items for which the policy's rule holds."""
        return sum(item.is_exposed for item in self.items)

    @property
    def n_unscorable(self) -> int:
        """Items too short for the rule, and not found whole."""
        return sum(item.verdict is ExposureVerdict.UNSCORABLE for item in self.items)

    @property
    def verdicts(self) -> Mapping[ExposureVerdict, int]:
        """How many items have each."""
        found = [item.verdict for item in self.items]
        return {verdict: found.count(verdict) for verdict in ExposureVerdict}

    @property
    def normalisation(self) -> str:
        """The name of the form in which texts were compared."""
        return NORMALISATION + (MARKUP_REMOVED if self.markup_removed else "")

    @property
    def total(self) -> Counts:
        """Of all stages."""
        counts = self.counts.values()
        return Counts(
            documents=sum(one.documents for one in counts),
            bytes=sum(one.bytes for one in counts),
            skipped=sum(one.skipped for one in counts),
            skipped_places=tuple(place for one in counts for place in one.skipped_places)[:SHOWN_SKIPPED],
            unread_bytes=sum(one.unread_bytes for one in counts),
            broken_off=tuple(file for one in counts for file in one.broken_off),
        )

    def document(self) -> dict[str, Any]:
        """The report as plain data."""
        total = self.total
        return {
            "policy": self.policy.name,
            "rule": self.policy.words,
            "source": self.policy.source,
            "ngram": self.n,
            "normalisation": self.normalisation,
            "stages": {
                stage: {"documents": one.documents, "bytes": one.bytes, "skipped": one.skipped}
                for stage, one in self.counts.items()
            },
            "n_items": len(self.items),
            "n_unscorable": self.n_unscorable,
            "n_exposed": self.n_exposed,
            "n_duplicates": self.duplicates,
            "verdicts": {verdict.value: count for verdict, count in self.verdicts.items()},
            "documents": total.documents,
            "bytes": total.bytes,
            "skipped": total.skipped,
            "skipped_places": [one._asdict() for one in total.skipped_places],
            "unread_bytes": total.unread_bytes,
            "broken_off": [{"file": file, "reason": why} for file, why in total.broken_off],
            **({"near": [one.document() for one in self.near]} if self.near else {}),
            "items": [item.document() for item in self.items],
        }


def exposure_report(
    items: Sequence[ScannedItem],
    judged: Mapping[str, tuple[Sequence[StageItem], Counts]],
    policy: Policy,
    *,
    n: int,
    template: str | None = None,
    markup_removed: bool = False,
    prepare: Callable[[str], str] = str,
    near: Sequence[NearReport] = (),
) -> ExposureReport:
    """Say of each item the worst that its stages say.

    Args:
        items: in their order.
        judged: by stage, what its corpus says of each of them, and how much of it was read.
        policy: the rule.
        n: words an n-gram.
        template: the protocol card's; an item that names another was asked another way.
        markup_removed: whether markup was taken out of items and documents.
        prepare: what was done to the items' texts.
        near: searches of the same items and corpora for near duplicates. One makes an item `scope_limited`, by a reason
            that names the method; it is not exposed under the policy by that.
    """
    results = tuple(
        _item(
            item,
            {stage: found[place] for stage, (found, _) in judged.items()},
            template,
            prepare,
            tuple(one for search in near for one in search.of_item(place)),
        )
        for place, item in enumerate(items)
    )
    seen = {hashlib.sha256(" ".join(forms(item.parts[Part.QUESTION])).encode()).digest() for item in items}
    counts = {stage: count for stage, (_, count) in judged.items()}
    return ExposureReport(policy, n, markup_removed, results, counts, len(items) - len(seen), tuple(near))


def check_skipped(report: ExposureReport, files_bytes: int, most: float) -> None:
    """Refuse a verdict on a corpus of which too much could not be read.

    Raises:
        ProctorError: when nothing was read of a stage, or more than this share of all was not.
    """
    total = report.total
    attempted = total.documents + total.skipped
    share = max(
        total.skipped / attempted if attempted else 0.0, total.unread_bytes / files_bytes if files_bytes else 0.0
    )
    empty = [stage for stage, one in report.counts.items() if not one.documents]
    if not empty and share <= most:
        return
    where = [f"{one.file}:{one.position}: {one.reason}" for one in total.skipped_places[:3]]
    where += [f"{file} breaks off: {why}" for file, why in total.broken_off[:3]]
    head = (
        f"the {empty[0]} data hold no document that could be read; nothing was searched, nothing is said of the items"
        if empty
        else f"{100 * share:.2g} % of the corpus could not be read, more than the {100 * most:g} % that are let pass "
        "(--max-skipped): no verdict"
    )
    raise ProctorError("\n  ".join([head, *where]))


def _item(
    item: ScannedItem,
    stages: Mapping[str, StageItem],
    template: str | None,
    prepare: Callable[[str], str],
    near: tuple[ItemNear, ...],
) -> ItemResult:
    reasons = []
    verdict = ExposureVerdict.CLEAN_COMPARABLE
    if not any(one.is_scorable for one in stages.values()):
        verdict = ExposureVerdict.UNSCORABLE
    if template is not None and item.template not in (None, template):
        verdict = ExposureVerdict.SCOPE_LIMITED
        reasons.append(f"asked by the template {item.template!r}, not by the card's {template!r}")
    for stage, one in stages.items():
        if not one.is_exposed:
            continue
        leaked = stage in TUNING_STAGES and one.has_label
        reasons.append(f"stands in {stage} data" + (", with its label" if leaked else ""))
        if leaked:
            verdict = ExposureVerdict.INVALID_EVIDENCE
        elif verdict is not ExposureVerdict.INVALID_EVIDENCE:
            verdict = ExposureVerdict.SCOPE_LIMITED
    for like in near:
        if like.is_duplicate:
            how = f"{like.method.value}, similarity {like.match.similarity:.2f}"
            reasons.append(f"a near duplicate stands in {like.stage} data ({how})")
            if verdict is not ExposureVerdict.INVALID_EVIDENCE:
                verdict = ExposureVerdict.SCOPE_LIMITED
    texts = {part: prepare(text) for part, text in item.parts.items()}
    return ItemResult(item.item_id, verdict, tuple(reasons), stages, texts, near)


def _plain(part: PartResult) -> dict[str, Any]:
    return {name: value for name, value in part._asdict().items() if name != "part"}
