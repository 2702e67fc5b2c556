"""A rewording before the gate has seen it, and seeded order that is the same on every platform."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.domain.canonical import canonical_json
from proctor.domain.item import Item
from proctor.domain.labels import LabelScheme


@dataclass(frozen=True)
class Draft:
    """The wording of an item as far as a chain of strategies has changed it."""

    question: str
    choices: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What each strategy did, by its name: plain JSON, kept on the variant."""
    labels: LabelScheme | None = None
    """How the options are labelled; None for A., B., C., …."""

    @classmethod
    def of(cls, item: Item) -> Draft:
        """The canonical wording."""
        return cls(item.question, item.choices)

    def noting(self, strategy: str, **facts: Any) -> Draft:
        """The draft with what a strategy did to it."""
        return replace(self, provenance={**self.provenance, strategy: facts})


Rewrite = Callable[[Draft], Draft]
"""One alternative of a strategy: the draft changed in one particular way."""


@dataclass(frozen=True)
class Candidate:
    """A finished rewording, and the chain that made it."""

    question: str
    choices: tuple[str, ...]
    strategy: str
    level: int
    provenance: Mapping[str, Any]
    labels: LabelScheme | None = None


def seeded_rank(*parts: Any) -> bytes:
    """A sort key that is uniform over the parts' values.

    Sorting by a hash is a random permutation that no library version can change, unlike a generator's shuffle.
    """
    return hashlib.sha256(canonical_json(list(parts))).digest()
