"""Rough distances held to the decisions of exact ones: what lies near an end of the window is measured exactly.

A pair is decided by its rough distance only where that is farther from both ends of the window than the margin, which
is at least twice the largest error that was observed. Every pair that is measured both ways is an observation: those
near an end, and a share of all the others. Where an observation widens the margin, all that this batch has decided
roughly and lies within the wider one is measured exactly too.

A margin to other items is the difference of two distances, so it may be off by twice as much.

So the decisions are the exact encoder's wherever no error is larger than the margin: `rough.LEAST_MARGIN`, or twice
the largest error observed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

from proctor.domain.errors import EncoderError
from proctor.perturbation.admission.gate import Placed, rounded_distance, rounded_margin
from proctor.perturbation.encoder.rough import ROUGH_DIGITS, ObservedErrors

log = logging.getLogger(__name__)

Pair = tuple[str, str]
Window = tuple[float, float]
Measure = Callable[[Sequence[Pair]], list[Placed]]

#: One pair in so many is measured exactly wherever it lies: observations for 4 % of the time.
_OBSERVE_ONE_IN: Final = 64
#: Observations before the share above is enough: below, the margin would stand on little in a small build.
_LEAST_OBSERVED: Final = 8
#: The gate weighs exact distances rounded to 4 digits, which moves them by half a unit of the fourth.
_GATE_ROUNDING: Final = 0.5e-4
_RANK_BYTES: Final = 8


class Rechecks:
    """The distances of one batch of a build: rough ones with `ROUGH_DIGITS` decimals, near an end exact ones.

    Args:
        rough: where pairs stand, quickly.
        exact: the same by the distances whose decisions are to be made.
        errors: what was observed so far of their difference; added to.
        window: the least and the greatest distance that are admitted.
        min_margin: the least margin to other items that is admitted; None where none is asked for.
    """

    def __init__(
        self,
        rough: Measure,
        exact: Measure,
        errors: ObservedErrors,
        window: Window,
        min_margin: float | None = None,
    ) -> None:
        self._rough, self._exact = rough, exact
        self._errors = errors
        # No distance is below 0 or above 2, so an end there decides nothing.
        self._low, self._high = window
        self._ends = [end for end in window if 0.0 < end < 2.0]
        self._min_margin = min_margin
        self._open: dict[Pair, Placed] = {}
        self._settled: dict[Pair, Placed] = {}

    def placed(self, pairs: Sequence[Pair]) -> list[Placed]:
        """Where each pair stands.

        Raises:
            EncoderError: when texts cannot be embedded, or a pair that was answered for earlier turns out to be on the
                other side of an end: the answer was used, and cannot be taken back.
        """
        answered, margin = set(self._open), self._errors.margin
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._open and pair not in self._settled]
        self._open.update(zip(new, self._rough(new), strict=True))
        check = self._observed_besides(new) | set(self._near(self._open))
        while check:
            self._recheck([pair for pair in self._open if pair in check], answered)
            check = set(self._near(self._open))
        if self._errors.margin > margin:
            log.warning(
                "bf16 distances of this encoder are off by up to %.4f, so pairs nearer than %.4f to an end of the "
                "window are measured in fp32 from now on; batches before this one went by %.4f",
                self._errors.largest,
                self._errors.margin,
                margin,
            )
        return [self._settled[pair] if pair in self._settled else _kept(self._open[pair]) for pair in pairs]

    def _recheck(self, pairs: Sequence[Pair], answered: set[Pair]) -> None:
        for pair, exactly in zip(pairs, self._exact(pairs), strict=True):
            before = self._open.pop(pair)
            self._errors.observe(_error(before, exactly))
            self._settled[pair] = exactly
            if pair in answered and self._side(_kept(before)) != self._side(exactly):
                raise EncoderError(
                    f"the encoder's bf16 distances are off by up to {self._errors.largest:.4f}, and one by which a "
                    "rewording was decided is on the other side of the window in fp32: set "
                    "PROCTOR_ENCODER_PRECISION=fp32 for this encoder"
                )

    def _near(self, pairs: dict[Pair, Placed]) -> list[Pair]:
        return [pair for pair, placed in pairs.items() if self._is_near(placed)]

    def _is_near(self, placed: Placed) -> bool:
        reach = self._errors.margin + _GATE_ROUNDING
        if any(abs(placed.distance - end) <= reach for end in self._ends):
            return True
        if self._min_margin is None or placed.margin is None:
            return False
        return abs(placed.margin - self._min_margin) <= 2 * self._errors.margin + _GATE_ROUNDING

    def _side(self, placed: Placed) -> tuple[int, bool]:
        distance = rounded_distance(placed.distance)
        enough = self._min_margin is None or placed.margin is None or rounded_margin(placed.margin) >= self._min_margin
        return (distance >= self._low) + (distance > self._high), enough

    def _observed_besides(self, pairs: Sequence[Pair]) -> set[Pair]:
        """Pairs to be observed wherever they lie, by a digest of their texts: the same ones in whatever order."""
        if not self._ends and self._min_margin is None:
            return set()
        ranked = sorted((_rank(pair), pair) for pair in pairs)
        missing = _LEAST_OBSERVED - self._errors.pairs
        return {pair for place, (rank, pair) in enumerate(ranked) if place < missing or rank * _OBSERVE_ONE_IN < 1.0}


def kept(distance: float) -> float:
    """A rough distance with the digits that it has; rounding error below 0 is 0."""
    return max(0.0, round(distance, ROUGH_DIGITS))


def _kept(placed: Placed) -> Placed:
    margin = None if placed.margin is None else round(placed.margin, ROUGH_DIGITS)
    return Placed(kept(placed.distance), margin)


def _error(rough: Placed, exactly: Placed) -> float:
    """How far a rough distance was off, as the errors that are observed are counted."""
    own = abs(rough.distance - exactly.distance)
    if rough.margin is None or exactly.margin is None:
        return own
    return max(own, abs(rough.margin - exactly.margin) / 2)


def _rank(pair: Pair) -> float:
    """Uniform on [0, 1) over pairs, and always the same for one."""
    data = "\0".join(pair).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(data).digest()[:_RANK_BYTES], "big") / (1 << 8 * _RANK_BYTES)
