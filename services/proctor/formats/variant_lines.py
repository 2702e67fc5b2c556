"""What stands on the lines of an exported variant library."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

from pydantic import FailFast, Field

from proctor.domain.base import Frozen
from proctor.domain.item import Item, Rejection, Variant
from proctor.domain.suite import PerturbationSection
from proctor.domain.versions import added

SCHEMA: Final = "proctor-variants/1"

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Distance = Annotated[float, Field(ge=0.0, le=2.0)]


class Header(Frozen):
    """The first line: where the variants come from, what admitted them, and how many there are."""

    schema_name: Literal["proctor-variants/1"] = Field(default="proctor-variants/1", alias="schema")
    proctor: str
    """Version that wrote the file."""
    suite: str
    suite_fingerprint: Digest
    benchmark: str
    encoder: str
    """Name and weights' digest of the encoder that measured the distances."""
    encoder_fingerprint: Digest
    gate: str
    """Version of the gate that admitted the variants."""
    settings: PerturbationSection
    """The suite's perturbation section: strategy, seed, window."""
    others: Digest | None = added(None, since=2)
    """Digest of the benchmark's questions to which the settings ask for a margin. None where they ask for none."""
    items: int = Field(ge=0)
    """Items that have a line."""
    variants: int = Field(ge=0)
    rejections: int | None = Field(ge=0)
    """None where rejections were left out."""
    lines_digest: Digest
    """SHA-256 of all bytes after this line."""


class ItemPart(Frozen):
    """What the lines of one item have in common."""

    item: Item
    key: Digest
    """The library's key: the digest of the item, the settings, the encoder and `data`."""
    data: Annotated[tuple[str, ...], FailFast()]
    """What each strategy drew on for this item: a version and a digest."""
    distances: Annotated[tuple[Distance, ...], FailFast()]
    """Semantic distances of all candidates that reached the encoder, admitted or not."""


class VariantLine(ItemPart):
    """An admitted rewording."""

    kind: Literal["variant"] = "variant"
    place: int = Field(ge=0)
    """Its place among the item's variants, from 0."""
    variant: Variant


class RejectionLine(ItemPart):
    """A rewording that was turned away."""

    kind: Literal["rejection"] = "rejection"
    place: int = Field(ge=0)
    rejection: Rejection


Line = VariantLine | RejectionLine


class Entry(NamedTuple):
    """One item of the file with its variants, in their order, and its rejections."""

    line: int
    """Where it begins."""
    item: Item
    key: str
    data: tuple[str, ...]
    distances: tuple[float, ...]
    variants: tuple[Variant, ...]
    rejections: tuple[Rejection, ...]


class VariantsFile(NamedTuple):
    """A file that holds together: every line is well formed and the digest is that of the lines."""

    source: str
    header: Header
    entries: tuple[Entry, ...]
    digest: str
    """Of the whole file: what a team pins."""
