"""The variant library: what was made of an item once is never made, or embedded, again.

One append-only row an item and recipe, under the digest of all that decides it. Rejections are kept beside the
variants, so that a second audit reports the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, Literal, Protocol

from pydantic import ValidationError

from proctor import __version__
from proctor.domain.answering_check import HeldVariant
from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest, canonical_json, json_digest
from proctor.domain.errors import StoreError
from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.domain.versions import reading, unknown_fields
from proctor.perturbation.admission.gate import GATE_VERSION
from proctor.perturbation.strategies.compose import Chain

_SCHEMA: Final = "variants/1"
#: Canonical JSON of an item's dimension and metadata where it has neither.
_NO_FILLING: Final = b'["",{}]'


class Outcome(Frozen):
    """What became of one item: its admitted variants, and every candidate that was turned away."""

    variants: tuple[Variant, ...]
    rejections: tuple[Rejection, ...]
    distances: tuple[float, ...] = ()
    """Semantic distances of the candidates that reached the encoder, admitted or not: what a better window is
    found from."""

    def of_item(self, item_id: str) -> Outcome:
        """The same outcome under another identifier: equal problems share a row whatever they are called."""
        mine = all(variant.item_id == item_id for variant in self.variants)
        if mine and all(rejection.item_id == item_id for rejection in self.rejections):
            return self
        return Outcome(
            variants=tuple(variant.model_copy(update={"item_id": item_id}) for variant in self.variants),
            rejections=tuple(rejection.model_copy(update={"item_id": item_id}) for rejection in self.rejections),
            distances=self.distances,
        )


class Origin(Frozen):
    """What made a row of the library."""

    source: Literal["build", "import"]
    proctor: str
    """Version of Proctor that wrote the row."""
    gate: str
    """Version of the gate that admitted it."""
    file: str = ""
    """Digest of the file that it was imported from."""
    created_at: str = ""
    """UTC, ISO 8601; the record store writes it."""

    @classmethod
    def here(cls, *, file: str | None = None) -> Origin:
        """This Proctor: a build, or the import of a file by its digest."""
        return cls(
            source="build" if file is None else "import", proctor=__version__, gate=GATE_VERSION, file=file or ""
        )


class Rows(Protocol):
    """The part of the record store that the library needs."""

    def library_get(self, keys: Sequence[str]) -> dict[str, str]:
        """Rows by key, as JSON; keys without a row are left out."""
        ...

    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> int:
        """Append rows with their origin; a key that is there already stays as it is. Returns how many were new."""
        ...

    def library_origins(self, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        """What made the rows of these keys, where it is known."""
        ...


def library_key(
    item: Item, chain: Chain, settings: PerturbationSection, encoder_fingerprint: str, others: str | None = None
) -> str:
    """The digest of all that decides an item's outcome.

    Args:
        item: the item.
        chain: the strategies.
        settings: the suite's, with the window and the margin that a calibrated gate has learned.
        encoder_fingerprint: what measures the distances.
        others: digest of the benchmark's questions, where the settings ask for a margin to them.
    """
    return recipe_key(item, chain.name, chain.data_digests(item), settings, encoder_fingerprint, others)


def recipe_key(
    item: Item,
    strategy: str,
    data: Sequence[str],
    settings: PerturbationSection,
    encoder_fingerprint: str,
    others: str | None = None,
) -> str:
    """The key from what is known of a chain where it cannot be made: its name and its data digests for the item."""
    gate: tuple[str | float, ...] = (
        GATE_VERSION,
        settings.min_semantic_distance,
        settings.max_semantic_distance,
        settings.max_token_overlap,
        settings.max_containment,
        settings.min_edit_distance,
        *(("strict_relations",) if settings.strict_relations else ()),
    )
    if settings.min_margin is not None:
        # Only then, so that rows of gates without a margin keep their keys.
        gate += (settings.min_margin, others or "")
    recipe = _recipe(strategy, settings.seed, gate, encoder_fingerprint, settings.num_variants_per_item)
    # The content hash leaves out what wordings are filled from, which most items do not have.
    plain = not item.dimension and not item.metadata
    filled_from = _NO_FILLING if plain else canonical_json([item.dimension, item.metadata])
    return bytes_digest(recipe % (_written(tuple(data)), filled_from, item.content_hash.encode()))


@lru_cache(maxsize=64)
def _written(data: tuple[str, ...]) -> bytes:
    """Data digests as canonical JSON: a rule's are the same for every item."""
    return canonical_json(list(data))


@lru_cache(maxsize=64)
def _recipe(strategy: str, seed: int, gate: tuple[str | float, ...], encoder: str, variants: int) -> bytes:
    """The canonical JSON behind a key, with gaps for the three members that are the item's.

    Written once for a recipe: a key is made for every item that is asked for, whether or not the library knows it.
    """
    fixed = {
        "schema": _SCHEMA,
        "strategy": strategy,
        "seed": seed,
        "gate": list(gate),
        "encoder": encoder,
        "variants": variants,
    }
    members = {name: canonical_json(value).replace(b"%", b"%%") for name, value in fixed.items()}
    members |= {"data": b"%b", "filled_from": b"%b", "item": b'"%b"'}
    # Canonical JSON has members in the order of their names.
    return b"{" + b",".join(b'"' + name.encode() + b'":' + members[name] for name in sorted(members)) + b"}"


@contextmanager
def _without_collections() -> Iterator[None]:
    """Garbage collection off: it takes as long as the reading itself, and what is read holds no cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class VariantLibrary:
    """Outcomes by key, in the record store."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def find(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes that are there.

        Raises:
            StoreError: for a row that is not an outcome.
            NewerVersionError: for one that needs a newer Proctor.
        """
        found: dict[str, Outcome] = {}
        rows = self._rows.library_get(sorted(set(keys)))
        with _without_collections():
            for key, row in rows.items():
                try:
                    found[key] = Outcome.model_validate_json(row)
                except ValidationError as error:
                    if unknown_fields(error):
                        raise reading(f"the variant library's row {key}", error) from None
                    raise StoreError(
                        f"the variant library's row {key} is damaged ({error.error_count()} faults): delete that row "
                        "of the table variant_library, and it is made again"
                    ) from None
        return found

    def origins(self, keys: Iterable[str]) -> dict[str, Origin]:
        """What made the rows of these keys; rows that are older than this record are left out."""
        rows = self._rows.library_origins(sorted(set(keys)))
        return {key: Origin.model_validate(row) for key, row in rows.items()}

    def add(self, outcomes: Mapping[str, Outcome], origin: Origin | None = None) -> int:
        """Append outcomes; the first writer of a key wins. Returns how many were new.

        Args:
            outcomes: outcomes by key.
            origin: what made them; by default this Proctor's own build.
        """
        if not outcomes:
            return 0
        written = (origin or Origin.here()).model_dump(exclude={"created_at"})
        return self._rows.library_put({key: outcome.plain() for key, outcome in outcomes.items()}, written)

    def hold(self, held: Iterable[HeldVariant], rule: str) -> None:
        """Note what an answering check holds for reading; what the first check by a rule found of one stays.

        Args:
            held: the rewordings.
            rule: `AnsweringCheckSection.rule_digest` of the check.
        """
        rows = {_held_key(one.variant_id, rule): one.plain() for one in held}
        if rows:
            self._rows.library_put(rows)

    def held(self, variant_ids: Iterable[str], rule: str) -> dict[str, HeldVariant]:
        """Of these rewordings the ones that an answering check by this rule held, by their identifiers.

        Raises:
            NewerVersionError: for a row that needs a newer Proctor.
        """
        found: dict[str, HeldVariant] = {}
        for key, row in self._rows.library_get(sorted({_held_key(one, rule) for one in variant_ids})).items():
            try:
                one = HeldVariant.model_validate_json(row)
            except ValidationError as error:
                raise reading(f"the variant library's row {key}", error) from None
            found[one.variant_id] = one
        return found


def _held_key(variant_id: str, rule: str) -> str:
    """A row of its own beside the item's: that is never changed, and another rule may say otherwise."""
    return json_digest({"schema": "held/1", "variant": variant_id, "rule": rule})
