"""A simulated situation, with a stream of randomness of its own, and what is counted in it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from proctor.domain.evidence import Estimate
from proctor.evidence.intervals import wilson

#: Of the intervals about simulated shares.
LEVEL = 0.95
#: The outcomes of one simulated audit that came about, out of those of its cell.
Audit = Callable[[np.random.Generator], Iterable[str]]


class Cell(NamedTuple):
    """A situation: who is audited beside what, over how many items."""

    study: str
    model: str
    beside: str
    items: int
    clean: bool
    """Planted truth: whether nothing is there to be found."""
    outcomes: tuple[str, ...]
    audit: Audit

    @property
    def name(self) -> str:
        """What tells it from every other cell."""
        return f"{self.study}: {self.model}, {self.beside}, {self.items} items"

    def rng(self, seed: int) -> np.random.Generator:
        """The cell's own stream: other cells, their order and their number change nothing."""
        digest = hashlib.sha256(self.name.encode()).digest()
        return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


class Row(NamedTuple):
    """How many of a cell's audits had one outcome."""

    cell: Cell
    outcome: str
    hits: int
    audits: int

    @property
    def share(self) -> Estimate:
        """Of all audits, as a fraction, with Wilson's interval."""
        return wilson(self.hits, self.audits, LEVEL)


def simulate(cell: Cell, *, audits: int, seed: int) -> list[Row]:
    """Simulate a cell; a row for each of its outcomes, in their order."""
    rng, hits = cell.rng(seed), Counter[str]()
    for _ in range(audits):
        hits.update(cell.audit(rng))
    return [Row(cell, outcome, hits[outcome], audits) for outcome in cell.outcomes]


def between(rows: Sequence[Row], outcome: str, *, clean: bool) -> str:
    """The smallest and the largest share of an outcome over the cells with this planted truth, in words.

    Raises:
        ValueError: where no row has the outcome and the truth.
    """
    shares = [row.hits / row.audits for row in rows if row.outcome == outcome and row.cell.clean is clean]
    ends = dict.fromkeys(f"{100 * share:.1f}" for share in (min(shares), max(shares)))
    return f"{' to '.join(ends)} %"
