"""ConStat's estimator: the benchmark's accuracy against that which a smoothing spline through clean models expects.

Dekoninck, Müller and Vechev 2024, "ConStat: Performance-Based Contamination Detection in Large Language Models",
NeurIPS 2024, section 4: reference models' accuracies on the rewordings are the abscissae, those on the benchmark the
ordinates, both sorted; a model that guesses is one of them; a bootstrap over items and models gives the p-value. Beyond
the models the curve goes on straight, where the paper's code draws it to 0 and 1 by points of next to no weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import make_smoothing_spline

FloatArray = npt.NDArray[np.float64]
#: It asks for no fewer, and a cubic spline needs as many distinct ones.
FEWEST: Final = 5
REPLICATES: Final = 500


class Measured(NamedTuple):
    """What the estimator says of one model."""

    points: float
    """Accuracy on the benchmark beyond the expected one, in points."""
    p_value: float
    """Share of the bootstrap's reflected replicates without an excess."""


class Answers(NamedTuple):
    """One model's right answers, 0 to 1 an item, on the benchmark and on what it is compared with."""

    benchmark: FloatArray
    reference: FloatArray


def constat(
    model: Answers,
    clean: Sequence[Answers],
    *,
    chance: float,
    rng: np.random.Generator,
    replicates: int = REPLICATES,
) -> Measured | None:
    """Measure one model against clean ones; None where they are too few or too alike."""
    if len(clean) < FEWEST:
        return None
    y, x = np.array([one.benchmark for one in clean]), np.array([one.reference for one in clean])
    deltas = []
    for _ in range(replicates):
        items = rng.integers(y.shape[1], size=y.shape[1])
        others = rng.integers(x.shape[1], size=x.shape[1])
        models = rng.integers(len(clean), size=len(clean))
        at = float(model.reference[others].mean())
        guessed = (_guessed(chance, x.shape[1], rng), _guessed(chance, y.shape[1], rng))
        expected = _expected(x[models][:, others].mean(1), y[models][:, items].mean(1), at, *guessed)
        if expected is not None:
            deltas.append(model.benchmark[items].mean() - expected)
    if len(deltas) < max(1, replicates // 2):
        return None
    found = np.array(deltas)
    reflected = 2 * found.mean() - found
    return Measured(100 * float(found.mean()), float((reflected <= 0).mean()))


def _guessed(chance: float, items: int, rng: np.random.Generator) -> float:
    return chance + float(rng.normal(0, np.sqrt(chance * (1 - chance) / items)))


def _expected(x: FloatArray, y: FloatArray, at: float, x_guess: float, y_guess: float) -> float | None:
    abscissae, first = np.unique(np.sort([x_guess, *x]), return_index=True)
    if len(abscissae) < FEWEST:
        return None
    ordinates = np.sort([y_guess, *y])[first]
    try:
        curve = make_smoothing_spline(abscissae, ordinates)
    except ValueError:
        # Models that are all but alike.
        return None
    return float(np.clip(curve(at), 0.0, 1.0))
