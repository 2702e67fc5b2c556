"""Rewordings that were made elsewhere: what can be measured of them, and what the gate says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.domain.item import Item, Measurements, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import (
    EMPTY,
    NOT_TEXT,
    TOO_LONG,
    Screened,
    rounded_distance,
    screen,
    surface,
    weigh,
)
from proctor.perturbation.admission.renaming import undone
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder, distances
from proctor.text.invariants import broken_invariants

#: What the gate turns away as no text to measure.
_NOT_MEASURED: Final = frozenset({EMPTY, NOT_TEXT, TOO_LONG})


class ItemPair(NamedTuple):
    """An item and a rewording of it."""

    item: Item
    candidate: Candidate


class Measured(NamedTuple):
    """A pair's measurements, whether or not the gate admits it."""

    measurements: Measurements | None
    """None where the rewording is no text that can be measured: empty, too long."""
    broken: tuple[str, ...]
    """The answer invariants that the rewording does not keep, the gravest first."""
    rejection: Rejection | None
    """Why the gate turns it away; None when it admits it."""


def measure(pairs: Sequence[ItemPair], settings: PerturbationSection, encoder: Encoder) -> list[Measured]:
    """Measure pairs, each text embedded once.

    Unlike a build, which stops at the first check that a candidate fails, this measures the distance of every pair:
    a window can be judged only from those outside it.

    Raises:
        EncoderError: when distances cannot be measured.
    """
    screened = [screen(pair.item, pair.candidate, settings) for pair in pairs]
    texts = list(
        dict.fromkeys(
            text
            for pair, result in zip(pairs, screened, strict=True)
            if not _unmeasurable(result)
            for text in (pair.item.question, pair.candidate.question)
        )
    )
    rows = {text: row for row, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    measured = []
    for pair, result in zip(pairs, screened, strict=True):
        if isinstance(result, Rejection) and _unmeasurable(result):
            measured.append(Measured(None, (), result))
            continue
        left, right = rows[pair.item.question], rows[pair.candidate.question]
        # Two embeddings of one text may differ in their last digits, a text from itself may not.
        distance = float(distances(vectors[[left]], vectors[[right]])[0]) if left != right else 0.0
        measured.append(_judged(pair, result, distance, settings))
    return measured


def _unmeasurable(result: object) -> bool:
    return isinstance(result, Rejection) and result.reason in _NOT_MEASURED


def _judged(pair: ItemPair, screened: Screened | Rejection, distance: float, settings: PerturbationSection) -> Measured:
    item, candidate = pair
    if isinstance(screened, Screened):
        # What passed keeps every invariant, and looking again would cost more than all the rest.
        broken: tuple[str, ...] = ()
        verdict = weigh(item, candidate, screened, distance, settings)
    else:
        broken = tuple(broken_invariants(item.question, undone(candidate.question, candidate.provenance)))
        verdict = screened
    measurements = Measurements(semantic_distance=rounded_distance(distance), **surface(item, candidate)._asdict())
    return Measured(measurements, broken, verdict if isinstance(verdict, Rejection) else None)
