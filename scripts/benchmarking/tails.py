"""How far the approximated tail of the exchangeability test is from the exact one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import signal, stats

from proctor.evidence.answers import FloatArray, IntArray
from proctor.evidence.perturbation.exchangeability import EXACT_LIMIT, exact_upper_tail, saddlepoint_upper_tail
from proctor.evidence.planning.families import Family
from proctor.evidence.planning.pattern_chances import pattern_chances

#: The p-values at which the two are compared, as near as whole items allow.
_P_VALUES: Final = (0.5, 0.05, 0.001, 1e-6)


class TailError(NamedTuple):
    """The approximation beside the exact tail."""

    items: int
    """Informative ones."""
    relative: float
    """Largest |approximate − exact| / exact over the p-values."""
    exact: str
    """How the exact one was computed."""


def tail_errors(family: Family, variants: int, sizes: Sequence[int]) -> Iterator[TailError]:
    """Compare the tails for as many informative items as each size says, their totals as the family's are."""
    chances = np.arange(1, variants + 1) / (variants + 1)
    of_pattern = pattern_chances(family, variants)
    of_total = of_pattern[0, 1:] + of_pattern[1, :-1]
    for size in sizes:
        counts = np.rint(size * of_total / of_total.sum()).astype(np.int64)
        exactly = size <= EXACT_LIMIT
        mass = np.zeros(0) if exactly else _mass(counts, chances)
        errors = []
        for observed in (_observed(counts, chances, p_value) for p_value in _P_VALUES):
            exact = exact_upper_tail(counts, chances, observed) if exactly else float(np.sort(mass[observed:]).sum())
            errors.append(abs(saddlepoint_upper_tail(counts, chances, observed) - exact) / exact)
        how = "the exact convolution" if exactly else "a convolution by Fourier transform"
        yield TailError(int(counts.sum()), max(errors), f"against {how}")


def _observed(counts: IntArray, chances: FloatArray, p_value: float) -> int:
    """The count whose normal tail is this p-value."""
    mean = float((counts * chances).sum())
    spread = float((counts * chances * (1 - chances)).sum()) ** 0.5
    observed: int = round(mean + spread * float(stats.norm.isf(p_value)))
    return observed


def _mass(counts: IntArray, chances: FloatArray) -> FloatArray:
    """The whole distribution. A Fourier transform errs by 1e-16 of the largest mass: far below a tail of 1e-6."""
    mass: FloatArray = np.ones(1)
    for count, chance in zip(counts.tolist(), chances.tolist(), strict=True):
        mass = signal.fftconvolve(mass, stats.binom.pmf(np.arange(count + 1), count, chance))
    return mass
