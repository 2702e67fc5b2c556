"""A cell of the calibration: one simulated situation, with a stream of randomness of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from proctor.evidence.planning.clustered_audits import SHARED
from proctor.evidence.planning.families import FAMILIES, Family, Simulated

#: Audits that are drawn at once, so that memory does not grow with the replications. Part of the seed's meaning.
BLOCK = 500
#: Beside the published families: hardly any answer ever varies, so that a plain interval often has no width.
NEARLY_DETERMINISTIC = Family(
    "nearly_deterministic", "answers that hardly ever vary, Beta(0.002, 0.001)", (0.002, 0.001)
)
#: By name, in the order of the tables.
MODELS = MappingProxyType({**FAMILIES, NEARLY_DETERMINISTIC.name: NEARLY_DETERMINISTIC})


class Measure(StrEnum):
    """What is counted over the simulated audits of a cell."""

    DEFAULT_P = "default p < 0.05"
    EXACT_P = "exact test alone, p < 0.05"
    STUDENTISED_P = "studentised mean alone, p < 0.05"
    ARTICLE_FLAGS = "article's rule: items flagged"
    ARTICLE_BLOCKS = "article's rule: models blocked"
    CONTROLLED_P = "difference-in-differences, p < 0.05"
    UNCLUSTERED_P = "default p < 0.05, items taken as independent"
    FRESH_P = "fresh items, p < 0.05"
    MCNEMAR_P = "McNemar's exact p < 0.05"
    APPROVED = "gate: approved"
    REVIEWED = "gate: review"
    BLOCKED = "gate: blocked"
    INFLATION = "D"
    SCORE = "Contamination Score"
    LEAKED_SHARE = "leaked share"
    CANONICAL = "canonical accuracy"
    REWORDED = "reworded accuracy"
    EXCESS = "D beyond the control items'"
    EXCESS_SCORE = "Contamination Score beyond the control items'"
    FRESH_EXCESS = "excess over fresh items"
    FUTURE_ACCURACY = "accuracy of the next batch"
    PAIRED_DIFFERENCE = "paired difference, Agresti–Min"
    PAIRED_BOOTSTRAP = "paired difference, percentile bootstrap"
    PLAIN_INFLATION = "D, plain t interval"
    PLAIN_SCORE = "Contamination Score, plain Fieller"
    UNCLUSTERED_INFLATION = "D, items taken as independent"
    BOOTSTRAP_INFLATION = "D, percentile bootstrap"
    ITEMS_ASKED = "items asked"
    """Of all that may be: shares, added up over audits and rounded."""
    ANY_LOOK_P = "p below its look's level at a look until the stop"
    INFLATION_AT_LOOKS = "D, at every look"
    SCORE_AT_LOOKS = "Contamination Score, at every look"
    FALSELY_APPROVED = "approved with D past the limit"
    WHOLE_APPROVED = "whole sample asked: approved"
    WHOLE_BLOCKED = "whole sample asked: blocked"
    FUTILE = "stopped as futile"


class Cell(NamedTuple):
    """A situation to simulate. Its figures depend on its fields and the seed alone: not on other cells, order or jobs.

    `leaked_share`, `cost` (accuracy that a rewording costs a clean model) and `shared` (chance that an item's answers
    are its cluster's own, the same for all of them) are fractions.
    """

    study: str
    family: str
    items: int
    variants: int
    replicates: int = 1
    leaked_share: float = 0.0
    cost: float = 0.0
    control_items: int = 0
    cluster_items: int = 1
    reference_models: int = 0
    clusters: int = 0
    layout: str = ""
    shared: float = SHARED
    design: str = ""
    """When it is looked, by a name of `calibration.designs`; empty outside of the study of designs."""

    @property
    def name(self) -> str:
        """The fields that are not as usual, in a fixed order: a field more leaves the names of other cells alone."""
        usual = self._field_defaults
        return " ".join(f"{field}={value}" for field, value in self._asdict().items() if value != usual.get(field))

    @property
    def model(self) -> Family:
        """The family that answers."""
        return MODELS[self.family]

    def rng(self, seed: int) -> np.random.Generator:
        """The cell's own stream."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])

    def draws(self, rng: np.random.Generator, audits: int) -> Iterator[Simulated]:
        """This many simulated audits, in blocks."""
        for start in range(0, audits, BLOCK):
            yield self.model.draw(
                rng,
                audits=min(BLOCK, audits - start),
                items=self.items,
                variants=self.variants,
                leaked_share=self.leaked_share,
                cost=self.cost,
            )


class Row(NamedTuple):
    """One line of the published table."""

    cell: Cell
    measure: Measure
    hits: int
    """How often it was seen."""
    trials: int
    seed: int

    @property
    def rate(self) -> float:
        """Hits by trial."""
        return self.hits / self.trials


class Tally:
    """Counts by measure, added up over audits."""

    def __init__(self) -> None:
        self._hits: dict[Measure, int] = {}
        self._trials: dict[Measure, int] = {}

    def add(self, measure: Measure, hits: int, trials: int = 1) -> None:
        """Count `hits` of `trials`."""
        self._hits[measure] = self._hits.get(measure, 0) + int(hits)
        self._trials[measure] = self._trials.get(measure, 0) + trials

    def hits(self, measure: Measure) -> int:
        """How often it was seen so far."""
        return self._hits.get(measure, 0)

    def rows(self, cell: Cell, seed: int) -> list[Row]:
        """One for each measure, in the order in which they were first seen."""
        return [Row(cell, measure, hits, self._trials[measure], seed) for measure, hits in self._hits.items()]
