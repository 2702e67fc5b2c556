"""Rewordings that were made elsewhere: what can be measured of them, and what the gate says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item, Measurements, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import (
    EMPTY,
    NOT_TEXT,
    TOO_LONG,
    Placed,
    Screened,
    rounded_distance,
    rounded_margin,
    screen,
    surface,
    weigh,
)
from proctor.perturbation.admission.renaming import undone
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.distances import PairDistances
from proctor.perturbation.encoder import Encoder
from proctor.perturbation.other_items import OtherItems
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


def measure(
    pairs: Sequence[ItemPair],
    settings: PerturbationSection,
    encoder: Encoder,
    *,
    others: OtherItems | None = None,
) -> list[Measured]:
    """Measure pairs, each text embedded once.

    Unlike a build, which stops at the first check that a candidate fails, this measures the distance of every pair:
    a window can be judged only from those outside it.

    Args:
        pairs: items with rewordings.
        settings: the suite's, with the window and the margin that a calibrated gate has learned.
        encoder: measures the distances.
        others: the benchmark's questions, where the settings ask for a margin.

    Raises:
        BadInputError: when the settings ask for a margin, and there are no other items to measure it from.
        EncoderError: when distances cannot be measured.
    """
    if settings.min_margin is not None and others is None:
        raise BadInputError(
            f"the gate asks for a margin of {settings.min_margin:g} to the benchmark's other items, and their "
            "questions did not come with the pairs"
        )
    screened = [screen(pair.item, pair.candidate, settings) for pair in pairs]
    texts = [
        (pair.item.question, pair.candidate.question)
        for pair, result in zip(pairs, screened, strict=True)
        if not _unmeasurable(result)
    ]
    placed = iter(PairDistances(encoder, others=others).placed(texts))
    return [
        Measured(None, (), result)
        if isinstance(result, Rejection) and _unmeasurable(result)
        else _judged(pair, result, next(placed), settings)
        for pair, result in zip(pairs, screened, strict=True)
    ]


def _unmeasurable(result: object) -> bool:
    return isinstance(result, Rejection) and result.reason in _NOT_MEASURED


def _judged(pair: ItemPair, screened: Screened | Rejection, placed: Placed, settings: PerturbationSection) -> Measured:
    item, candidate = pair
    if isinstance(screened, Screened):
        # What passed keeps every invariant, and looking again would cost more than all the rest.
        broken: tuple[str, ...] = ()
        verdict = weigh(item, candidate, screened, placed, settings)
    else:
        broken = tuple(broken_invariants(item.question, undone(candidate.question, candidate.provenance)))
        verdict = screened
    measurements = Measurements(
        semantic_distance=rounded_distance(placed.distance),
        margin=None if placed.margin is None else rounded_margin(placed.margin),
        **surface(item, candidate)._asdict(),
    )
    return Measured(measurements, broken, verdict if isinstance(verdict, Rejection) else None)
