"""Items with variants that a real gate admitted, a library in memory, and the export of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.item import Item
from proctor.domain.suite import PerturbationSection
from proctor.formats.rewordings import MatchedRewordings, Rewording
from proctor.formats.variant_lines import Header
from proctor.formats.variants_file import write_variants
from proctor.perturbation.admission.gate import GATE_VERSION
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.engine import reword
from proctor.perturbation.library.exchange import entries_of
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.strategies.compose import Chain
from proctor.perturbation.strategies.imported import Imported

SECTION = PerturbationSection(
    perturbation_strategy="imported",
    rewordings_path="r.jsonl",
    num_variants_per_item=2,
    min_semantic_distance=0.0,
    max_semantic_distance=1.9,
)
ITEMS = (
    Item(item_id="b-1", question="How many apples does Mia have if she buys 3 and then 4 more?", target="7"),
    Item(item_id="b-2", question="A train goes 60 miles in 2 hours. How fast is it?", target="30"),
    Item(item_id="b-3", question="What is 5 plus 6?", target="11"),
)
REWORDINGS = {
    "b-1": ("Mia buys 3 apples, then 4 more. What is her total?", "If Mia gets 3 apples and 4 more, what is the sum?"),
    "b-2": ("In 2 hours a train covers 60 miles. What is its speed?",),
    "b-3": ("Add 7 to 6. What do you get?",),
}


class MemoryRows:
    """The record store's part for the library, in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.origins: dict[str, dict[str, str]] = {}

    def library_get(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> int:
        new = {key: json.dumps(row) for key, row in rows.items() if key not in self.rows}
        self.rows |= new
        if origin is not None:
            self.origins |= {key: {**origin, "created_at": "2026-01-01T00:00:00+00:00"} for key in new}
        return len(new)

    def library_origins(self, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        return {key: self.origins[key] for key in keys if key in self.origins}


class HashedEncoder:
    """A direction for each text, drawn from its digest: for what needs distances, and no meaning in them."""

    def __init__(self, name: str = "hashed") -> None:
        self.name = name
        self.digest = bytes_digest(name.encode())
        self.fingerprint = bytes_digest(f"{name} whole".encode())
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        rows = [np.frombuffer(hashlib.sha256((self.name + text).encode()).digest(), dtype=np.uint8) for text in texts]
        vectors = np.asarray(rows, dtype=np.float32).reshape(len(texts), -1 if rows else 32) + 1
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


def chain(rewordings: Mapping[str, Sequence[str]] = REWORDINGS) -> Chain:
    by_item = {
        item_id: tuple(Rewording(line=line, question=text) for line, text in enumerate(texts, start=1))
        for item_id, texts in rewordings.items()
    }
    return Chain([Imported(MatchedRewordings(by_item, ()))])


def header(encoder: HashedEncoder, section: PerturbationSection = SECTION) -> Header:
    return Header(
        proctor="1.2.3",
        suite="s",
        suite_fingerprint="sha256:" + "0" * 64,
        benchmark="b",
        encoder=f"{encoder.name}@{encoder.digest}",
        encoder_fingerprint=encoder.fingerprint,
        gate=GATE_VERSION,
        settings=section,
        items=0,
        variants=0,
        rejections=None,
        lines_digest="sha256:" + "0" * 64,
    )


def exported(*, with_rejections: bool = False, encoder: HashedEncoder | None = None) -> bytes:
    """The export of a library that was just built."""
    encoder = encoder or HashedEncoder()
    library = VariantLibrary(MemoryRows())
    reword(ITEMS, SECTION, chain=chain(), encoder=encoder, library=library)
    entries = entries_of(ITEMS, header(encoder), chain(), encoder.fingerprint, library)
    return write_variants(header(encoder), entries, with_rejections=with_rejections)


def resealed(lines: Sequence[Mapping[str, Any]], **head: Any) -> bytes:
    """A file of these lines (the first is the header), with the digest that a forger would put there."""
    body = b"".join(canonical_json(line) + b"\n" for line in lines[1:])
    return canonical_json({**lines[0], "lines_digest": bytes_digest(body), **head}) + b"\n" + body


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]
