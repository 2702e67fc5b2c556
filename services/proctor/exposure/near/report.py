"""What is said of near duplicates: evidence of its own kind, named by its method beside what the policy found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from proctor.exposure.near.matches import NearMatch, NearMethod
from proctor.exposure.near.scanning import NearScan

_RULES: Final = {
    NearMethod.MINHASH: (
        "a run of sentences of one document has at least {threshold:g} of its and the question's 5-letter shingles in "
        "common with it (Jaccard, candidates by MinHash-LSH), and keeps the answer invariants"
    ),
    NearMethod.EMBEDDING: (
        "a run of sentences of one document has a cosine similarity of at least {threshold:g} to the question by the "
        "sentence encoder, and keeps the answer invariants"
    ),
}


class ItemNear(NamedTuple):
    """A document's words that are like an item."""

    method: NearMethod
    stage: str
    match: NearMatch

    @property
    def is_duplicate(self) -> bool:
        """Whether they ask what the item asks, or something else."""
        return self.match.broken is None

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {"method": self.method.value, "stage": self.stage, **self.match._asdict()}


class NearReport(NamedTuple):
    """A search for near duplicates by one method."""

    method: NearMethod
    threshold: float
    settings: Mapping[str, Any]
    """What else decides what is found: library, encoder, sample, seed."""
    too_short: int
    """Items that have too little text for it."""
    stages: Mapping[str, NearScan]

    @property
    def rule(self) -> str:
        """What it takes for a near duplicate, in a sentence."""
        return _RULES[self.method].format(threshold=self.threshold)

    @property
    def n_near(self) -> int:
        """Items that have a near duplicate in any stage."""
        return len({item for scan in self.stages.values() for item in scan.found})

    @property
    def n_refused(self) -> int:
        """Items of which documents have only what is like them and asks something else."""
        refused = {item for scan in self.stages.values() for item in scan.refused}
        return len(refused - {item for scan in self.stages.values() for item in scan.found})

    def of_item(self, item: int) -> tuple[ItemNear, ...]:
        """What was found of an item (its place among the items), stage by stage."""
        return tuple(
            ItemNear(self.method, stage, found[item])
            for stage, scan in self.stages.items()
            for found in (scan.found, scan.refused)
            if item in found
        )

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "method": self.method.value,
            "rule": self.rule,
            "threshold": self.threshold,
            **self.settings,
            "n_near": self.n_near,
            "n_refused": self.n_refused,
            "n_too_short": self.too_short,
            "documents": sum(scan.documents for scan in self.stages.values()),
        }
