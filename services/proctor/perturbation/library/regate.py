"""A file's variants before this machine's gate: as their distances stand there, or measured again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Rejection, Variant
from proctor.formats.faults import Faults, shown
from proctor.formats.variant_lines import Entry, Header, VariantsFile
from proctor.perturbation.admission.gate import GATE_VERSION, Placed, rounded_distance, screen, weigh
from proctor.perturbation.admission.renaming import CURRENCIES, RENAMED, STRATEGY
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder, distances
from proctor.perturbation.library.store import Outcome, recipe_key
from proctor.perturbation.strategies.option_relabel import OptionRelabel
from proctor.text.invariants import CHECKS

_REMEASURE: Final = "or give --remeasure, which measures and weighs every variant again with what is here"
#: The check that any renaming breaks.
_NAMES: Final = "entity"
#: Texts embedded together: enough for full batches, and their vectors take little memory.
_TEXTS_AT_ONCE: Final = 4096


class Admitted(NamedTuple):
    """An item of a file with the key and the outcome that it has here."""

    entry: Entry
    key: str
    outcome: Outcome


def check_measurable(file: VariantsFile) -> None:
    """Refuse to measure again what was weighed against a benchmark that is not in the file.

    Raises:
        BadInputError: for a gate with a margin, with the mend.
    """
    margin = file.header.settings.min_margin
    if margin is not None:
        raise BadInputError(
            f"{file.source}:1: the gate asks for a margin of {margin:g} to the other items of the benchmark, whose "
            "questions are not in the file, so it cannot be measured again: import without --remeasure, or run "
            "`proctor variants build` on the suite"
        )


def check_measured_here(file: VariantsFile, encoder: Encoder) -> None:
    """Refuse a file whose measurements are another encoder's, or whose verdicts are another gate's.

    Raises:
        BadInputError: naming both, and the mend.
    """
    header = file.header
    if header.gate != GATE_VERSION:
        raise BadInputError(
            f"{file.source}:1: the variants were admitted by gate {shown(header.gate)}, and here is gate "
            f"{GATE_VERSION!r}: export them with this version of Proctor, {_REMEASURE}"
        )
    if header.encoder_fingerprint != encoder.fingerprint:
        raise BadInputError(
            f"{file.source}:1: the distances were measured by the encoder {shown(header.encoder)} (fingerprint "
            f"{header.encoder_fingerprint[:19]}), and here is {encoder.name} (fingerprint {encoder.fingerprint[:19]}): "
            f"name the file's encoder in PROCTOR_ENCODER, {_REMEASURE}"
        )


def check_recipes(file: VariantsFile, faults: Faults, *, keys: bool) -> None:
    """Note every entry that is not of the header's settings; with `keys`, also one under a key that is not its own.

    Raises:
        TooManyFaults: when going on would only repeat what is known.
    """
    for entry in file.entries:
        fault = _recipe_fault(file.header, entry)
        if fault is None and keys and (key := _key(file.header, entry, file.header.encoder_fingerprint)) != entry.key:
            fault = f"its key is {entry.key[:19]}, and its item, data and the header's settings have {key[:19]}"
        if fault is not None:
            faults.add(entry.line, f"{shown(entry.item.item_id)}: {fault}")


def gate_as_stated(file: VariantsFile, faults: Faults) -> list[Admitted]:
    """Every entry under its own key; a variant that the gate does not pass at its stated distance is a fault.

    Raises:
        TooManyFaults: when going on would only repeat what is known.
    """
    admitted = []
    for entry in file.entries:
        for place, variant in enumerate(entry.variants):
            fault = _gate_fault(file.header, entry, variant)
            if fault is not None:
                faults.add(entry.line + place, f"{shown(entry.item.item_id)}: {fault}")
        outcome = Outcome(variants=entry.variants, rejections=entry.rejections, distances=entry.distances)
        admitted.append(Admitted(entry, entry.key, outcome))
    return admitted


def gate_again(file: VariantsFile, encoder: Encoder) -> list[Admitted]:
    """Every entry under the key that it has here, its variants put through this gate with this encoder.

    Raises:
        EncoderError: when the distances cannot be measured.
    """
    header = file.header
    measured = _measure(file, encoder)
    admitted = []
    for entry in file.entries:
        verdicts: list[Variant | Rejection] = []
        spread: list[float] = []
        for variant in entry.variants:
            distance = measured.get((entry.item.question, variant.question))
            if distance is not None:
                spread.append(rounded_distance(distance))
            verdicts.append(_gated(header, entry, variant, Placed(distance or 0.0)))
        outcome = Outcome(
            variants=tuple(one for one in verdicts if isinstance(one, Variant)),
            rejections=tuple(one for one in verdicts if isinstance(one, Rejection)),
            distances=tuple(spread),
        )
        admitted.append(Admitted(entry, _key(header, entry, encoder.fingerprint), outcome))
    return admitted


def _key(header: Header, entry: Entry, encoder_fingerprint: str) -> str:
    return recipe_key(
        entry.item,
        header.settings.perturbation_strategy,
        entry.data,
        header.settings,
        encoder_fingerprint,
        header.others,
    )


def _recipe_fault(header: Header, entry: Entry) -> str | None:
    strategy, wanted = header.settings.perturbation_strategy, header.settings.num_variants_per_item
    names = strategy.split("+")
    if len(entry.data) != len(names):
        return f"it has data of {len(entry.data)} strategies, and the header names {strategy!r}"
    if len(entry.variants) > wanted:
        return f"it has {len(entry.variants)} variants, and the header's settings ask for {wanted}"
    for variant in entry.variants:
        # A chain leaves out a rule that finds no place in an item, so the level may be below the number of strategies.
        if variant.strategy != strategy or not 1 <= variant.level <= len(names):
            return (
                f"a variant is by {shown(variant.strategy)} at level {variant.level}, and the header names {strategy!r}"
            )
        if variant.labels is not None and OptionRelabel.name not in names:
            return f"a variant has the labels {variant.labels.value!r}, which {strategy!r} does not make"
        fault = _renaming_fault(variant.provenance, names)
        if fault is not None:
            return fault
    return None


def _renaming_fault(provenance: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The gate undoes a declared renaming before it compares, so a forged one could hide any change."""
    if STRATEGY not in provenance:
        return None
    if STRATEGY not in names:
        return f"a variant declares a renaming, which {'+'.join(names)!r} does not make"
    declared = provenance[STRATEGY]
    pairs = declared.get(RENAMED) if isinstance(declared, dict) else None
    if not isinstance(pairs, dict) or not all(isinstance(new, str) and new and old for old, new in pairs.items()):
        return "a variant declares a renaming that is no map of names to names"
    if len(set(pairs.values())) < len(pairs):
        return "a variant declares a renaming of two names to one, which nothing can undo"
    odd = next((pair for pair in pairs.items() if not _renames(*pair)), None)
    return None if odd is None else f"a variant declares {shown(odd[0])} renamed to {shown(odd[1])}: that is no name"


def _renames(old: str, new: str) -> bool:
    """Whether one name takes the place of another, or one currency: no number, unit, negation or comparison changes."""
    if CURRENCIES.get(old) == new:
        return True
    return all(
        name.isalpha() and name.istitle() for name in (old, new)
    ) and all(keeps(old, new) for check, keeps in CHECKS.items() if check != _NAMES)  # fmt: skip


def _gate_fault(header: Header, entry: Entry, variant: Variant) -> str | None:
    measured = variant.measurements
    if header.settings.min_margin is not None and measured.margin is None and variant.question != entry.item.question:
        return "the header's settings ask for a margin to the benchmark's other items, and this variant states none"
    verdict = _gated(header, entry, variant, Placed(measured.semantic_distance, measured.margin))
    if isinstance(verdict, Rejection):
        return f"the gate does not admit this variant: {verdict.reason} ({verdict.detail})"
    return None if verdict == variant else "the measurements of this variant are not those of its text"


def _gated(header: Header, entry: Entry, variant: Variant, placed: Placed) -> Variant | Rejection:
    candidate = _candidate(variant)
    screened = screen(entry.item, candidate, header.settings)
    if isinstance(screened, Rejection):
        return screened
    return weigh(entry.item, candidate, screened, placed, header.settings)


def _candidate(variant: Variant) -> Candidate:
    return Candidate(
        variant.question, variant.choices, variant.strategy, variant.level, variant.provenance, variant.labels
    )


def _measure(file: VariantsFile, encoder: Encoder) -> dict[tuple[str, str], float]:
    """The distance of every original and variant that get as far as the encoder; equal texts are at 0."""
    pairs = dict.fromkeys(
        (entry.item.question, variant.question)
        for entry in file.entries
        for variant in entry.variants
        if not isinstance(screen(entry.item, _candidate(variant), file.header.settings), Rejection)
    )
    measured = {pair: 0.0 for pair in pairs if pair[0] == pair[1]}
    others = [pair for pair in pairs if pair[0] != pair[1]]
    for start in range(0, len(others), _TEXTS_AT_ONCE // 2):
        some = others[start : start + _TEXTS_AT_ONCE // 2]
        places = {text: place for place, text in enumerate(dict.fromkeys(text for pair in some for text in pair))}
        vectors = encoder.encode(list(places))
        found = distances(vectors[[places[old] for old, _ in some]], vectors[[places[new] for _, new in some]])
        measured.update(zip(some, map(float, found), strict=True))
    return measured
