"""The variant library: what was made of an item once is never made, or embedded, again.

One append-only row an item and recipe, under the digest of all that decides it. Rejections are kept beside the
variants, so that a second audit reports the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from pydantic import ValidationError

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.errors import StoreError
from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.gate import GATE_VERSION
from proctor.perturbation.strategies.compose import Chain

_SCHEMA: Final = "variants/1"


class Outcome(Frozen):
    """What became of one item: its admitted variants, and every candidate that was turned away."""

    variants: tuple[Variant, ...]
    rejections: tuple[Rejection, ...]
    distances: tuple[float, ...] = ()
    """Semantic distances of the candidates that reached the encoder, admitted or not: what a better window is
    found from."""

    def of_item(self, item_id: str) -> Outcome:
        """The same outcome under another identifier: equal problems share a row whatever they are called."""
        return Outcome(
            variants=tuple(variant.model_copy(update={"item_id": item_id}) for variant in self.variants),
            rejections=tuple(rejection.model_copy(update={"item_id": item_id}) for rejection in self.rejections),
            distances=self.distances,
        )


class Rows(Protocol):
    """The part of the record store that the library needs."""

    def library_get(self, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Rows by key; keys without a row are left out."""
        ...

    def library_put(self, rows: Mapping[str, Mapping[str, Any]]) -> int:
        """Append rows; a key that is there already stays as it is."""
        ...


def library_key(item: Item, chain: Chain, settings: PerturbationSection, encoder_fingerprint: str) -> str:
    """The digest of all that decides an item's outcome."""
    return json_digest(
        {
            "schema": _SCHEMA,
            "item": item.content_hash,
            "strategy": chain.name,
            "data": chain.data_digests(item),
            # The content hash leaves out what wordings are filled from.
            "filled_from": [item.dimension, item.metadata],
            "seed": settings.seed,
            "gate": [
                GATE_VERSION,
                settings.min_semantic_distance,
                settings.max_semantic_distance,
                settings.max_token_overlap,
            ],
            "encoder": encoder_fingerprint,
            "variants": settings.num_variants_per_item,
        }
    )


class VariantLibrary:
    """Outcomes by key, in the record store."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def find(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes that are there.

        Raises:
            StoreError: for a row that is not an outcome.
        """
        found: dict[str, Outcome] = {}
        for key, row in self._rows.library_get(sorted(set(keys))).items():
            try:
                found[key] = Outcome.model_validate(row)
            except ValidationError as error:
                raise StoreError(
                    f"the variant library's row {key} is damaged ({error.error_count()} faults): delete that row of "
                    "the table variant_library, and it is made again"
                ) from None
        return found

    def add(self, outcomes: Mapping[str, Outcome]) -> None:
        """Append outcomes; the first writer of a key wins."""
        if outcomes:
            self._rows.library_put({key: outcome.plain() for key, outcome in outcomes.items()})
