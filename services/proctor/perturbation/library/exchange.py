"""Variants out of one library and into another: what an export holds, and how a file is admitted.

Keys are content addresses: a file cannot put its variants under a key that is not the digest of the item, settings,
encoder and strategies' data that stand beside them. What a file says that the strategies made is believed; that it asks
the same question is not, so every variant passes this machine's gate again (`regate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from proctor.domain.item import Item
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.variant_lines import Entry, Header, VariantsFile
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.library.regate import (
    Admitted,
    check_measurable,
    check_measured_here,
    check_recipes,
    gate_again,
    gate_as_stated,
)
from proctor.perturbation.library.store import Origin, Outcome, VariantLibrary, library_key
from proctor.perturbation.strategies.compose import Chain


class Imported(NamedTuple):
    """What an import came to."""

    items: int
    """Items of the file with an admitted variant, or with the rejections of an item that has none."""
    new: int
    """Library rows that are new; the others were there, and the same."""
    variants: int
    """Variants of the file that are admitted here."""
    rejected: dict[str, int]
    """Variants of the file that are not admitted here, by reason: only where they were measured again."""


def entries_of(
    items: Sequence[Item], header: Header, chain: Chain, encoder_fingerprint: str, library: VariantLibrary
) -> list[Entry]:
    """The items that the library knows under the header's settings, with what became of them."""
    keys = [library_key(item, chain, header.settings, encoder_fingerprint, header.others) for item in items]
    known = library.find(keys)
    entries = []
    for item, key in zip(items, keys, strict=True):
        if (outcome := known.get(key)) is not None:
            mine = outcome.of_item(item.item_id)
            data = tuple(chain.data_digests(item))
            entries.append(Entry(0, item, key, data, mine.distances, mine.variants, mine.rejections))
    return entries


def admit_file(file: VariantsFile, *, encoder: Encoder, library: VariantLibrary, remeasure: bool = False) -> Imported:
    """Admit a file's variants into the library: all of them, or on any fault none.

    Distances are believed where the file's encoder is this one (the same weights, tokenizer and pooling); the rest
    of the gate is always run again. With `remeasure` everything is measured here, whatever encoder and gate the
    file comes from: what is admitted stands under the keys of this encoder and gate, what is not is counted, and an
    item of which nothing is admitted is left for the next build.

    Raises:
        BadInputError: for another encoder or gate, a key that is not of what stands beside it, a variant that the gate
            does not admit, or an item for which the library holds another row; with file and line.
        EncoderError: when distances have to be measured and cannot be.
    """
    if remeasure:
        check_measurable(file)
    else:
        check_measured_here(file, encoder)
    faults = Faults(file.source)
    admitted: list[Admitted] = []
    rows: dict[str, Outcome] = {}
    try:
        check_recipes(file, faults, keys=not remeasure)
        if not faults:
            admitted = gate_again(file, encoder) if remeasure else gate_as_stated(file, faults)
            rows = _rows(admitted, file.header, library, faults)
    except TooManyFaults:
        pass
    if faults:
        faults.refuse()
    rejected = Counter(one.reason for each in admitted for one in each.outcome.rejections) if remeasure else Counter()
    return Imported(
        items=sum(each.key in rows for each in admitted),
        new=library.add(rows, Origin.here(file=file.digest)),
        variants=sum(len(each.outcome.variants) for each in admitted),
        rejected=dict(rejected),
    )


def _rows(admitted: Sequence[Admitted], header: Header, library: VariantLibrary, faults: Faults) -> dict[str, Outcome]:
    """The rows to write, none of which says something else than the library or another row of the file."""
    kept = [each for each in admitted if each.outcome.variants or header.rejections is not None]
    known = library.find(each.key for each in kept)
    rows: dict[str, Outcome] = {}
    for entry, key, outcome in kept:
        there = rows.get(key) or known.get(key)
        if there is not None and not _same(there.of_item(entry.item.item_id), outcome, header):
            faults.add(
                entry.line,
                f"the library has other variants of {shown(entry.item.item_id)} under the same key, and its rows are "
                "never changed: import into another --home",
            )
        rows.setdefault(key, outcome)
    return rows


def _same(there: Outcome, here: Outcome, header: Header) -> bool:
    """Whether a row of the library is what the file says, as far as it says it."""
    return there.variants == here.variants and (header.rejections is None or there.rejections == here.rejections)
